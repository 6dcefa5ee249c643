package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"exp/harness/run"
)

// Card is a rank's message to the process that launched it, a file in the job's folder.
type Card struct {
	Rank  int    `json:"rank"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Error string `json:"error,omitempty"` // why it ends the job
	Code  int    `json:"code,omitempty"`  // the exit code of that error, if it has one
	Help  string `json:"help,omitempty"`  // and its advice
	// WaitsFor lists ranks that it has waited for too long.
	WaitsFor []int `json:"waits_for,omitempty"`
	run.Standing
}

// NewCard returns the card of this process.
func NewCard(rank int) Card {
	host, _ := os.Hostname()
	return Card{Rank: rank, Host: host, PID: os.Getpid()}
}

// Leave writes the card. A card that cannot be written costs a message its details, not the
// run.
func (c Card) Leave(dir string) {
	b, err := json.Marshal(c)
	if err != nil {
		return
	}
	_ = write(filepath.Join(dir, strconv.Itoa(c.Rank)+".json"), b)
}

// String names the rank.
func (c Card) String() string {
	return fmt.Sprintf("rank %d on %s (pid %d)", c.Rank, c.Host, c.PID)
}

// where says where in its work the rank is, if it has begun.
func (c Card) where() string {
	if c.Run.IsZero() {
		return ""
	}
	return " in " + c.Standing.String()
}

func readCard(dir string, rank int) (c Card, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(rank)+".json"))
	return c, err == nil && json.Unmarshal(b, &c) == nil
}

// LeaveCode writes the exit code of the job; the first rank does so.
func LeaveCode(dir string, code int) error {
	return write(filepath.Join(dir, "exit"), []byte(strconv.Itoa(code)))
}

func exitCode(dir string) (code int, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, "exit"))
	if err != nil {
		return 0, false
	}
	code, err = strconv.Atoi(string(b))
	return code, err == nil
}

// Stopped reports whether the job has been told to stop.
func Stopped(dir string) bool {
	_, err := os.Stat(stopFile(dir))
	return err == nil
}

// StoppedBy returns the text of what made the launching process stop the job, such as its signal's.
func StoppedBy(dir string) string {
	b, _ := os.ReadFile(stopFile(dir))
	return string(b)
}

func stopFile(dir string) string { return filepath.Join(dir, "stop") }

// write replaces a file at once.
func write(path string, b []byte) error {
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(part, b, 0o666); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// Launchers' words for a rank that a signal ended: Open MPI's and srun's name the rank,
// MPICH's the signal alone.
var (
	rankSignal = regexp.MustCompile(`process rank (\d+) .*exited on\s+signal (\d+)`)
	taskKilled = regexp.MustCompile(`task (\d+): Killed`)
	exitSignal = regexp.MustCompile(`EXIT CODE: (\d+)`)
)

// named returns the rank and the signal that a launcher's last words name; rank is -1 if
// they name the signal alone.
func named(text string) (rank, signal int, ok bool) {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	if m := rankSignal.FindStringSubmatch(text); m != nil {
		return number(m[1]), number(m[2]), true
	}
	if m := taskKilled.FindStringSubmatch(text); m != nil {
		return number(m[1]), 9, true
	}
	if m := exitSignal.FindStringSubmatch(text); m != nil && number(m[1]) < 64 {
		return -1, number(m[1]), true
	}
	return 0, 0, false
}

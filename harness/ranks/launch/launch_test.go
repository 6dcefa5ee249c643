package launch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/harness/ranks/nccl"
	"exp/harness/run"
	"exp/train/ranks"
)

// The last words of launchers about a rank that a signal ended.
func TestNamed(t *testing.T) {
	tests := []struct {
		text         string
		rank, signal int
		ok           bool
	}{
		{"mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).", 2, 9, true},
		{"mpirun noticed that process rank 1 with PID 7 on node a-1 exited on\nsignal 11 (Segmentation fault).", 1, 11, true},
		{"srun: error: node7: task 3: Killed", 3, 9, true},
		{"=   PID 5458 RUNNING AT vm\n=   EXIT CODE: 9\n", -1, 9, true},
		{"=   EXIT CODE: 255\n", 0, 0, false},
		{"", 0, 0, false},
	}
	for _, tt := range tests {
		rank, signal, ok := named(tt.text)
		if rank != tt.rank || signal != tt.signal || ok != tt.ok {
			t.Errorf("%q: rank %d, signal %d, %v", tt.text, rank, signal, ok)
		}
	}
}

// script makes a launcher of shell commands; $DIR is the job's folder.
func script(t *testing.T, dir, commands string) Launcher {
	t.Helper()
	path := filepath.Join(t.TempDir(), "launcher")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nDIR="+dir+"\n"+commands+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Launcher{Path: path}
}

// A job ends with the code that its first rank left, or with the rank that was lost.
func TestRun(t *testing.T) {
	at := Card{Rank: 1, Host: "node7", PID: 4711, Standing: run.Standing{Run: ident.Sum(nil), Stage: "train", Step: 57,
		Phase: "policy"}}
	first := Card{Rank: 0, Host: "node1", PID: 12, Standing: at.Standing}
	first.Checkpoint = 50
	tests := []struct {
		name, commands string
		change         func(c *Card)
		cards          bool
		code           int // of the job, or of its error
		want, hint     string
	}{
		{name: "done", commands: "echo -n 5 > $DIR/exit; exit 1", cards: true, code: 5},
		{name: "killed", commands: "echo 'process rank 1 with PID 0 on node node7 exited on signal 9' >&2; exit 137", cards: true,
			want: "rank 1 on node7 (pid 4711) was killed by signal 9 in step 57, phase policy; last checkpoint: step 50"},
		{name: "failed", commands: "exit 1", cards: true, change: func(c *Card) { c.Error = "no room" },
			want: "rank 1 on node7 (pid 4711) failed in step 57, phase policy: no room; last checkpoint: step 50"},
		{name: "failed for want of room", commands: "exit 1", cards: true,
			change: func(c *Card) { c.Error, c.Code, c.Help = "no room", 7, "make it smaller" }, code: 7,
			want: "rank 1 on node7 (pid 4711) failed in step 57, phase policy: no room; last checkpoint: step 50",
			hint: "make it smaller; then exp resume e3b0c442"},
		{name: "killed, and the first stopped for it", cards: true,
			commands: "echo 'process rank 1 with PID 0 on node node7 exited on signal 9' >&2; echo -n 143 > $DIR/exit; exit 137",
			want:     "rank 1 on node7 (pid 4711) was killed by signal 9 in step 57, phase policy; last checkpoint: step 50"},
		{name: "stopped, and another killed as it took too long", cards: true, code: 143,
			commands: "echo 'process rank 1 with PID 0 on node node7 exited on signal 9' >&2; touch $DIR/stop; echo -n 143 > $DIR/exit"},
		{name: "killed, and another failed for it", cards: true, change: func(c *Card) { c.Error, c.Code = "no room", 7 },
			commands: "echo 'process rank 0 with PID 0 on node node1 exited on signal 9' >&2; exit 137",
			want:     "was killed by signal 9 in step 57, phase policy; last checkpoint: step 50"},
		{name: "unknown", commands: "exit 3", cards: true, want: "a rank ended without a word; last checkpoint: step 50"},
		{name: "not started", commands: "exit 3", want: "did not start the ranks: exit status 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.cards {
				c := at
				if tt.change != nil {
					tt.change(&c)
				}
				c.Leave(dir)
				first.Leave(dir)
			}
			var out, stderr bytes.Buffer
			job := Job{Launcher: script(t, dir, tt.commands), Ranks: 2, Dir: dir, Stdout: &out, Stderr: &stderr}
			got, err := job.Run(context.Background())
			if tt.want == "" {
				if got != tt.code || err != nil {
					t.Errorf("code %d, %v; want %d", got, err, tt.code)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			var lost *LostError
			code, hint := cmp.Or(tt.code, 10), cmp.Or(tt.hint, "exp resume e3b0c442")
			if tt.cards && (!errors.As(err, &lost) || lost.ExitCode() != code || !strings.HasPrefix(lost.Hint(), hint)) {
				t.Errorf("%+v", lost)
			}
		})
	}
}

// A job that is told to stop leaves a message for its first rank and waits for the end.
// A lost job's ranks have ended when Run returns, though they live longer than their launcher.
func TestRunAwaitsRanks(t *testing.T) {
	dir := t.TempDir()
	end := filepath.Join(dir, "ended")
	commands := `(sleep 0.4; touch $DIR/ended) >/dev/null 2>&1 &
printf '{"rank":0,"host":"%s","pid":%d}' "$(hostname)" $! > $DIR/0.json
exit 137`
	job := Job{Launcher: script(t, dir, commands), Ranks: 1, Dir: dir, Stdout: io.Discard, Stderr: io.Discard}
	_, err := job.Run(context.Background())
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Errorf("Run = %v", err)
	}
	if _, err := os.Stat(end); err != nil {
		t.Errorf("the rank lives on: %v", err)
	}
}

func TestStop(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("terminated"))
	job := Job{Launcher: script(t, dir, "while [ ! -e $DIR/stop ]; do sleep 0.02; done; echo -n 130 > $DIR/exit"), Ranks: 1,
		Dir: dir, Stdout: os.Stdout, Stderr: os.Stderr}
	if code, err := job.Run(ctx); code != 130 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	if !Stopped(dir) || StoppedBy(dir) != "terminated" {
		t.Errorf("stopped: %v, by %q", Stopped(dir), StoppedBy(dir))
	}
}

// A rank that leaves no sign of life ends its job, unless the run has ended; the others go on.
func TestHung(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	for _, tt := range []struct{ name, code, want string }{
		{"after the run, and the first rank has ended", "echo -n 5 > $DIR/exit; ", ""},
		{"within the run", "", "rank 1 on node7 (pid 4711) hangs in step 57, phase policy: no answer for 100ms; " +
			"last checkpoint: step 50"},
		{"after the run", "echo -n 5 > $DIR/exit; ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			at := Card{Rank: 1, Host: "node7", PID: 4711, Standing: run.Standing{Run: ident.Sum(nil), Step: 57, Phase: "policy"}}
			at.Leave(dir)
			first := Card{Rank: 0, Host: "node1", PID: 12, Standing: at.Standing}
			if strings.Contains(tt.name, "ended") {
				first.Host, first.PID = host, ended.Process.Pid
			}
			first.Checkpoint = 50
			first.Leave(dir)
			live := "echo 1 > $DIR/1.life; while sleep 0.02; do date +%N > $DIR/0.life; done"
			job := Job{Launcher: script(t, dir, tt.code+live), Ranks: 2, Dir: dir, Timeout: 100 * time.Millisecond,
				Stdout: os.Stdout, Stderr: os.Stderr}
			code, err := job.Run(context.Background())
			if tt.want == "" {
				if code != 5 || err != nil {
					t.Errorf("code %d, %v; want 5", code, err)
				}
				return
			}
			var hung *HungError
			if !errors.As(err, &hung) || err.Error() != tt.want || hung.ExitCode() != 10 {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if hint := hung.Hint(); !strings.HasPrefix(hint, "exp resume e3b0c442 --ranks 2;") {
				t.Error(hint)
			}
		})
	}
}

// lateGroup is a group in which some ranks do not answer.
type lateGroup struct {
	ranks.Group
	peers []int
}

func (g lateGroup) Exchange([]ranks.Part) error {
	return &ranks.LateError{Peers: g.peers, Limit: time.Second}
}

// Of ranks that wait in vain for each other, the one that hangs is the one that does not
// wait.
func TestMember(t *testing.T) {
	dir := t.TempDir()
	waits := [][]int{{1, 2}, nil, {1}}
	var all sync.WaitGroup
	for r, g := range ranks.InProcess(3) {
		m := Join(lateGroup{g, waits[r]}, dir, 400*time.Millisecond)
		m.At(run.Standing{Step: 3, Phase: "sampling", Run: ident.Sum(nil)})
		if waits[r] == nil {
			m.Close()
			continue
		}
		all.Go(func() {
			defer m.Close()
			err := m.Exchange(nil)
			if err == nil || !strings.HasPrefix(err.Error(), "rank 1 on ") ||
				!strings.HasSuffix(err.Error(), " hangs in step 3, phase sampling: no answer for 400ms") {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
	first := Join(ranks.InProcess(1)[0], dir, time.Minute)
	defer first.Close()
	first.At(run.Standing{Step: 3, Phase: "policy", Run: ident.Sum(nil), Checkpoint: 2})
	err := first.Explain(&nccl.Error{Op: "Send and Recv", Code: 3, Text: "internal error"})
	var lost *LostError
	if !errors.As(err, &lost) || lost.ExitCode() != 10 || !strings.Contains(err.Error(),
		" failed in step 3, phase policy: NCCL: Send and Recv: internal error (code 3); last checkpoint: step 2") {
		t.Errorf("Explain = %v", err)
	}
	l := newLife(dir, 3, 400*time.Millisecond)
	if silent := l.silent(); silent != nil {
		t.Errorf("ranks %v are silent at once", silent)
	}
	l.seen[1] = time.Now().Add(-time.Minute)
	if silent := l.silent(); !slices.Equal(silent, []int{1}) {
		t.Errorf("ranks %v are silent, want 1", silent)
	}
}

// A Slurm job starts ranks by srun, unless EXP_LAUNCHER names another launcher.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"srun", "mpiexec", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" 1.0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "mpiexec"},
		{map[string]string{"SLURM_JOB_ID": "1"}, "srun"},
		{map[string]string{"SLURM_JOB_ID": "1", Variable: "mpiexec"}, "mpiexec"},
		{map[string]string{Variable: filepath.Join(dir, "other")}, "other"},
		{map[string]string{Variable: "mpirun"}, "no MPI launcher: EXP_LAUNCHER names mpirun, which is not in PATH"},
	} {
		l, err := Find(func(name string) string { return tt.env[name] })
		got := filepath.Base(l.Path)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: %s, want %s", tt.env, got, tt.want)
		}
	}
}

// A launcher starts all ranks here unless it has other hosts.
func TestHere(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want int
	}{
		{nil, 8},
		{map[string]string{Variable: "mpiexec"}, 8},
		{map[string]string{Variable: "/opt/launch-on-cluster"}, 1},
		{map[string]string{"PBS_NODEFILE": "nodes"}, 1},
		{map[string]string{"SLURM_JOB_ID": "1"}, 8},
		{map[string]string{"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "1"}, 8},
		{map[string]string{"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "3"}, 3},
	} {
		if got := Here(func(name string) string { return tt.env[name] }, 8); got != tt.want {
			t.Errorf("%v: %d ranks here, want %d", tt.env, got, tt.want)
		}
	}
}

// A member that is closed writes nothing more, so that its job's folder can go.
func TestClose(t *testing.T) {
	for range 100 {
		dir := t.TempDir()
		Join(ranks.InProcess(1)[0], dir, time.Minute).Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

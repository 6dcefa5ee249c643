// Package launch starts the ranks of a run with the installed MPI launcher, and explains the
// loss of one. The launching process is not a rank, so it outlives the job.
package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Launcher is a program that starts the ranks of a job.
type Launcher struct {
	Path    string
	Version string // its first line
	args    []string
	name    string // as PATH has it; empty: started by its path
}

// NoLauncherError says that no launcher is installed.
type NoLauncherError struct{ Names []string }

func (e *NoLauncherError) Error() string {
	if len(e.Names) == 1 {
		return "no MPI launcher: " + Variable + " names " + e.Names[0] + ", which is not in PATH"
	}
	return "no MPI launcher: " + strings.Join(e.Names, " and ") + " are not in PATH"
}

// Hint says what to install.
func (*NoLauncherError) Hint() string {
	return "install one (Debian: apt install openmpi-bin), or add its folder to PATH"
}

// ExitCode is the code for something that this machine lacks.
func (*NoLauncherError) ExitCode() int { return 7 }

// Variable names a launcher in place of the one that Find would choose.
const Variable = "EXP_LAUNCHER"

// Find returns srun within a Slurm job, else mpirun or mpiexec.
func Find(getenv func(string) string) (Launcher, error) {
	names := []string{"mpirun", "mpiexec"}
	if name := getenv(Variable); name != "" {
		names = []string{name}
	} else if getenv("SLURM_JOB_ID") != "" {
		if path, err := exec.LookPath("srun"); err == nil {
			return Launcher{Path: path, Version: firstLine(path), args: []string{"--kill-on-bad-exit=1"}}, nil
		}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		l := Launcher{Path: path, Version: firstLine(path), name: name}
		if l.openMPI() {
			// Fewer cores than ranks are allowed; --threads sets the threads of a rank.
			l.args = []string{"--oversubscribe", "--bind-to", "none"}
			if os.Geteuid() == 0 {
				l.args = append(l.args, "--allow-run-as-root")
			}
		}
		return l, nil
	}
	return Launcher{}, &NoLauncherError{names}
}

// hostFiles are variables that name the hosts on which launchers start ranks.
func hostFiles() []string {
	return []string{"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
		"PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE"}
}

// Here returns how many of n ranks the launcher of Find starts on this machine, at least. These are
// all of them, unless Slurm has lent several nodes, a file lists other hosts, or Variable names a
// launcher that may know some.
func Here(getenv func(string) string, n int) int {
	name := getenv(Variable)
	set := func(variable string) bool { return getenv(variable) != "" }
	switch {
	case name != "" && name != "mpirun" && name != "mpiexec", slices.ContainsFunc(hostFiles(), set):
		return 1
	case set("SLURM_JOB_ID"):
		if nodes, err := strconv.Atoi(getenv("SLURM_JOB_NUM_NODES")); err == nil && nodes > 0 {
			return (n + nodes - 1) / nodes
		}
	}
	return n
}

// openMPI reports whether the launcher is Open MPI's.
func (l Launcher) openMPI() bool {
	return strings.Contains(l.Version, "Open MPI") || strings.Contains(l.Version, "OpenRTE")
}

// Starts reports whether the launcher starts ranks of Open MPI's library (openMPI) or of
// another one. Slurm's starts both.
func (l Launcher) Starts(openMPI bool) bool {
	return strings.HasPrefix(l.Version, "slurm") || l.openMPI() == openMPI
}

// firstLine returns the first line that a launcher prints about itself.
func firstLine(path string) string {
	out, err := exec.Command(path, "--version").CombinedOutput()
	if err != nil && len(out) == 0 {
		return err.Error()
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return strings.Join(strings.Fields(line), " ")
}

// Job is a command to start on several ranks.
type Job struct {
	Launcher       Launcher
	Ranks          int
	Args           []string      // the program and its arguments, for every rank
	Dir            string        // where ranks leave their cards
	Timeout        time.Duration // without a sign of life a rank hangs; 0: no limit
	Stdout, Stderr io.Writer
	Env            []string // variables beyond this process's
}

// Run starts the job and waits for its end. It returns the exit code that the first rank
// left, or a *LostError. When ctx is cancelled it tells the first rank to stop.
func (j Job) Run(ctx context.Context) (code int, err error) {
	args := append(append([]string{}, j.Launcher.args...), "-n", strconv.Itoa(j.Ranks))
	cmd := exec.Command(j.Launcher.Path, append(args, j.Args...)...)
	if j.Launcher.name != "" { // by its path, Open MPI would put its folder first in PATH
		cmd.Args[0] = j.Launcher.name
	}
	tail := &lastBytes{to: j.Stderr}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = j.Stdout, tail, attributes()
	cmd.Env = append(os.Environ(), j.Env...)
	runtime.LockOSThread() // the launcher is told when the thread that started it ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = write(stopFile(j.Dir), []byte(context.Cause(ctx).Error())) })()
	noticed := make(chan notice, 1)
	ended := make(chan struct{})
	go func() { noticed <- j.watch(cmd.Process, ended) }()
	err = cmd.Wait()
	close(ended)
	saw := <-noticed
	if saw.hung != nil {
		return 0, saw.hung
	}
	if code, ok := exitCode(j.Dir); ok && (ctx.Err() != nil || !j.onlyEnded(code, tail.String())) {
		return code, nil
	}
	j.awaitRanks()
	return 0, j.lost(saw.missing, err, tail.String())
}

// awaitRanks waits until the ranks of this machine have ended, up to ten seconds: some live on a moment after their
// launcher, and the first one holds the run, which the caller may want to read or execute.
func (j Job) awaitRanks() {
	host, _ := os.Hostname()
	lives := func(r int) bool {
		c, ok := readCard(j.Dir, r)
		return ok && c.Host == host && !gone(c.PID)
	}
	for r, tries := 0, 0; r < j.Ranks && tries < 500; tries++ {
		if lives(r) {
			time.Sleep(20 * time.Millisecond)
		} else {
			r++
		}
	}
}

// onlyEnded reports whether the first rank stopped, with this code, only because the launcher ended all ranks: one was
// killed, and nobody asked the job to stop. A batch system that asks the ranks alone, and kills one that is too slow,
// looks the same.
func (j Job) onlyEnded(code int, stderr string) bool {
	_, _, killed := named(stderr)
	return killed && !Stopped(j.Dir) && (code == 128+int(syscall.SIGTERM) || code == 128+int(syscall.SIGINT))
}

// notice is the launching process's view of its ranks before the job ends.
type notice struct {
	missing int        // the first rank of this machine whose process is gone; -1: none
	hung    *HungError // a rank that left no sign of life, for which the job was ended
}

// watch looks after the ranks until the job ends. It ends a job with a rank that hangs, also if another one
// is gone, for which the launcher has not ended it.
func (j Job) watch(launcher *os.Process, ended <-chan struct{}) notice {
	host, _ := os.Hostname()
	l, saw := newLife(j.Dir, j.Ranks, j.Timeout), notice{missing: -1}
	for {
		for r := 0; r < j.Ranks && saw.missing < 0; r++ {
			if c, ok := readCard(j.Dir, r); ok && c.Host == host && gone(c.PID) {
				saw.missing = r
			}
		}
		if silent := l.silent(); silent != nil {
			if _, done := exitCode(j.Dir); !done && saw.missing < 0 { // else it hangs after the run's end
				saw.hung = newHungError(j.Dir, silent, j.Ranks, j.Timeout)
			}
			j.end(launcher, ended)
			return saw
		}
		select {
		case <-ended:
			return saw
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end ends a job: the launcher ends the ranks if it can, within some seconds. A stopped rank may
// survive it and is killed. Handles taken before that never mean a later process with its number.
func (j Job) end(launcher *os.Process, ended <-chan struct{}) {
	host, _ := os.Hostname()
	var here []*os.Process
	for r := range j.Ranks {
		if c, ok := readCard(j.Dir, r); ok && c.Host == host {
			if p, err := os.FindProcess(c.PID); err == nil {
				here = append(here, p)
			}
		}
	}
	_ = launcher.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = launcher.Kill()
	}
	for _, p := range here {
		_ = p.Kill()
		_ = p.Release()
	}
}

// StartError says that a launcher did not start the ranks; its own words are on stderr.
type StartError struct{ Launcher, Text string }

func (e *StartError) Error() string {
	return fmt.Sprintf("%s did not start the ranks: %s", e.Launcher, e.Text)
}

// Hint says where to look.
func (e *StartError) Hint() string {
	return "exp doctor names the library and the launcher, which must belong together"
}

// ExitCode is the code for something that this machine lacks.
func (e *StartError) ExitCode() int { return 7 }

// lastBytes passes bytes on and keeps the last ones.
type lastBytes struct {
	to   io.Writer
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (b *lastBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const most = 16 << 10
	b.kept = append(b.kept, p...)
	if over := len(b.kept) - most; over > 0 {
		b.kept = bytes.Clone(b.kept[over:])
	}
	return b.to.Write(p)
}

func (b *lastBytes) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Event is a line of the progress that a process reports (exp --progress json). Its
// fields depend on the kind of event.
type Event struct {
	Event   string            `json:"event"` // run_start, stage_start, step, stage_end, run_end, note, warning
	Stage   string            `json:"stage"`
	Label   string            `json:"label"`
	Status  string            `json:"status"`
	Step    int               `json:"step"`
	Of      int               `json:"of"`
	Metrics json.RawMessage   `json:"metrics"` // {"reward":0.5,…} in the order of display
	Facts   map[string]string `json:"facts"`
	WallS   float64           `json:"wall_s"`
	Text    string            `json:"text"`
}

// StageName is the stage as people read it: "eval.gen[test]".
func (e *Event) StageName() string {
	if e.Label == "" {
		return e.Stage
	}
	return e.Stage + "[" + e.Label + "]"
}

// Process is an exp that runs as a child of this one.
type Process struct {
	Program string
	Args    []string
	Env     []string    // added to this process's environment
	CPUs    []int       // processors that it may use; none: all that this process may use
	Heard   func(Event) // called for each line of progress
	Log     io.Writer   // receives its other output; may be nil
	// AskByInput closes the standard input to stop the process; a signal would end ssh.
	AskByInput bool
}

// End says how a process ended.
type End struct {
	Code   int            // exit code; -1 if a signal ended it or it never started
	Signal syscall.Signal // that ended it; 0: none
	Said   string         // what it wrote to standard error in place of progress
	Err    error          // why it never started
	Lost   bool           // its slot can execute nothing: a host that cannot be reached
}

// Run implements Executor: it starts the process and waits for its end. The process is in a
// new process group, so Ctrl-C in a terminal reaches only this program, which passes it on.
func (p *Process) Run(stop, kill context.Context) End {
	cmd := exec.Command(p.Program, p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = p.Log
	ask := func() { _ = cmd.Process.Signal(syscall.SIGINT) } // it may have ended, so the error says nothing
	pipe, err := cmd.StderrPipe()
	if err == nil && p.AskByInput {
		var in io.Closer
		in, err = cmd.StdinPipe()
		ask = func() { _ = in.Close() }
	}
	if err == nil {
		err = startOn(cmd, p.CPUs)
	}
	if err != nil {
		return End{Code: -1, Err: err}
	}
	defer context.AfterFunc(stop, ask)()
	defer context.AfterFunc(kill, func() { _ = cmd.Process.Kill() })()
	said := p.listen(pipe)
	end := End{Said: said}
	var exit *exec.ExitError
	switch err := cmd.Wait(); {
	case errors.As(err, &exit):
		end.Code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			end.Signal = status.Signal()
		}
		if end.Signal == syscall.SIGINT && stop.Err() != nil { // asked before it listened for signals
			end.Code, end.Signal = 128+int(syscall.SIGINT), 0
		}
	case err != nil:
		end.Code, end.Err = -1, err
	}
	return end
}

// saidLines is the number of a process's last lines, except progress, in an error about it.
const saidLines = 40

// listen passes on progress until the stream ends, and returns the last other lines.
func (p *Process) listen(r io.Reader) string {
	var said []string
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		var e Event
		switch text := strings.TrimRight(line, "\n"); {
		case text == "":
		case strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &e) == nil && e.Event != "":
			p.Heard(e)
		default:
			said = append(said, text)
			if p.Log != nil {
				_, _ = io.WriteString(p.Log, text+"\n") // a full disk must not stop the run
			}
		}
		if len(said) > saidLines {
			said = append(said[:saidLines/2], said[len(said)-saidLines/2:]...)
		}
		if err != nil {
			return strings.Join(said, "\n")
		}
	}
}

// Crashed reports whether the program died, rather than ended with an error of its own: a
// signal ended it, itself or as a shell counts signals, or Go's runtime gave up.
func (e *End) Crashed() bool {
	const kill, abort, segv = 128 + int(syscall.SIGKILL), 128 + int(syscall.SIGABRT), 128 + int(syscall.SIGSEGV)
	switch e.Code {
	case kill, abort, segv:
		return true
	case 2:
		return strings.Contains(e.Said, "\ngoroutine ")
	}
	return e.Signal != 0
}

// why says for people how a process ended that did not succeed.
func (e *End) why() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != 0:
		return fmt.Sprintf("signal %d (%v)", e.Signal, e.Signal)
	case e.Said == "":
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return fmt.Sprintf("exit code %d: %s", e.Code, e.Said)
}

package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"exp/train/program"
	"exp/train/rollout"
)

// CommandOptions configure a tool that is a program of the user's.
type CommandOptions struct {
	Argv       []string
	DataSource string        // for calls whose problem names none
	Workers    int           // processes, each with one call at a time
	Limit      time.Duration // longest time for an answer
	Retries    int           // of a call whose process ended or fell silent
	Log        func(line string)
}

// Command asks a program and keeps its processes running. The program reads one call per line from its standard
// input,
//
//	{"id": "7", "problem": "…", "turn": 1, "name": "…", "arguments": {…}, "input": "…", "response": "…",
//	 "prompt": "…", "gold": "…", "data_source": "…", "extra": {…}}
//
// and writes one answer per line to its standard output:
//
//	{"id": "7", "output": "what the policy reads"}
//	{"id": "7", "end": true}
//	{"id": "7", "error": "why the tool is broken"}
//
// "name" and "arguments" are a JSON call's, and absent in other formats; "input" is its text, "response" the
// completion so far. "end" ends the completion, "error" the run. The answer must depend on the call alone.
type Command struct {
	opt  CommandOptions
	idle chan *program.Process // nil entries are started when they are needed
	last atomic.Int64          // id of the last call
	mu   sync.Mutex            // of Log
}

// NewCommand prepares a program; the first call starts it. Close it afterwards.
func NewCommand(o CommandOptions) *Command {
	if len(o.Argv) == 0 || o.Workers < 1 || o.Limit <= 0 {
		panic("toolcall: command without program, workers or limit")
	}
	c := &Command{opt: o, idle: make(chan *program.Process, o.Workers)}
	for range o.Workers {
		c.idle <- nil
	}
	return c
}

// request is a line of the program's input.
type request struct {
	ID         string          `json:"id"`
	Problem    string          `json:"problem"`
	Turn       int             `json:"turn"`
	Name       string          `json:"name,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Input      string          `json:"input"`
	Response   string          `json:"response"`
	Prompt     string          `json:"prompt"`
	Gold       string          `json:"gold"`
	DataSource string          `json:"data_source"`
	Extra      json.RawMessage `json:"extra,omitempty"`
}

// response is a line of its output.
type response struct {
	ID     string  `json:"id"`
	Output *string `json:"output"`
	End    bool    `json:"end"`
	Error  string  `json:"error"`
}

// BrokenError says that the program does not work as a tool.
type BrokenError struct {
	Program string
	Err     error
}

func (e *BrokenError) Error() string { return fmt.Sprintf("tool %s: %v", e.Program, e.Err) }
func (e *BrokenError) Unwrap() error { return e.Err }

// ExitCode is the code of an infrastructure that failed.
func (e *BrokenError) ExitCode() int { return 8 }

// Hint says how to continue.
func (e *BrokenError) Hint() string {
	return "run it by hand on a call to see why (exp config explain rollout.tools.command shows one), then run " +
		"again: the run continues from its last checkpoint"
}

// silence says that a process ended or gave no answer in time; the call may be retried.
type silence struct{ text string }

func (s *silence) Error() string { return s.text }

// Try starts the program once and returns a *BrokenError if it ends within a while: a program that works waits for
// calls.
func (c *Command) Try(while time.Duration) error {
	p, err := program.Start(c.opt.Argv)
	if err != nil {
		return c.broken(err)
	}
	select {
	case <-p.Ended():
		err = c.broken(fmt.Errorf("it ended (%s) before any call%s", p.State(), p.Said()))
	case <-time.After(while):
	}
	p.Stop(0)
	return err
}

// Answer implements rollout.Tool.
func (c *Command) Answer(ctx context.Context, call rollout.ToolCall) (rollout.ToolAnswer, error) {
	p := call.Problem
	line, err := json.Marshal(request{ID: fmt.Sprint(c.last.Add(1)), Problem: p.ID, Turn: call.Turn, Name: call.Name,
		Arguments: call.Arguments, Input: call.Input, Response: call.Response, Prompt: p.Prompt, Gold: p.Answer,
		DataSource: p.DataSource(cmp.Or(p.Kind, c.opt.DataSource)), Extra: p.Data})
	if err != nil {
		return rollout.ToolAnswer{}, err
	}
	line = append(line, '\n')
	var process *program.Process
	select {
	case process = <-c.idle:
	case <-ctx.Done():
		return rollout.ToolAnswer{}, ctx.Err()
	}
	defer func() { c.idle <- process }()
	for try := 0; ; try++ {
		if process == nil {
			if process, err = program.Start(c.opt.Argv); err != nil {
				process = nil
				return rollout.ToolAnswer{}, c.broken(err)
			}
		}
		a, err := c.exchange(ctx, process, line)
		c.say(process)
		if err == nil {
			return a, nil
		}
		process.Stop(0)
		process = nil
		var quiet *silence
		if !errors.As(err, &quiet) || try == c.opt.Retries {
			return rollout.ToolAnswer{}, err
		}
	}
}

func (c *Command) broken(err error) error { return &BrokenError{c.opt.Argv[0], err} }

// say passes on what a process wrote to standard error.
func (c *Command) say(p *program.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range p.TakeLog() {
		if c.opt.Log != nil {
			c.opt.Log(line)
		}
	}
}

// exchange sends a call and waits for its answer. The error is a *BrokenError, which may be a *silence, or ctx's.
func (c *Command) exchange(ctx context.Context, p *program.Process, line []byte) (rollout.ToolAnswer, error) {
	go p.Write(line)
	limit := time.NewTimer(c.opt.Limit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return rollout.ToolAnswer{}, ctx.Err()
		case <-limit.C:
			return rollout.ToolAnswer{}, c.broken(&silence{fmt.Sprintf("it gave no answer within %v "+
				"(rollout.tools.limit)%s", c.opt.Limit, p.Said())})
		case l, ok := <-p.Lines():
			switch {
			case !ok:
				<-p.Ended()
				return rollout.ToolAnswer{}, c.broken(&silence{fmt.Sprintf("it ended (%s) before it answered%s",
					p.State(), p.Said())})
			case l.Err != nil:
				return rollout.ToolAnswer{}, c.broken(fmt.Errorf("line %d of its output: %w", l.Number, l.Err))
			case len(l.Text) == 0:
				continue
			}
			a, err := parse(l, line)
			if err != nil {
				return rollout.ToolAnswer{}, c.broken(err)
			}
			return a, nil
		}
	}
}

// parse reads a line of output as the answer to a call.
func parse(l program.Line, call []byte) (rollout.ToolAnswer, error) {
	var asked request
	if err := json.Unmarshal(call, &asked); err != nil {
		return rollout.ToolAnswer{}, err
	}
	bad := func(text string) (rollout.ToolAnswer, error) {
		return rollout.ToolAnswer{}, fmt.Errorf("line %d of its output %s, while the call with id %s (problem %s) "+
			"waits: %s", l.Number, text, asked.ID, asked.Problem, program.Excerpt(l.Text))
	}
	var r response
	if err := json.Unmarshal(l.Text, &r); err != nil {
		return bad("is no JSON answer; everything else belongs on standard error")
	}
	switch {
	case r.ID != asked.ID:
		return bad("has another id")
	case r.Error != "":
		return rollout.ToolAnswer{}, fmt.Errorf("on problem %s it says: %s", asked.Problem, r.Error)
	case r.End:
		return rollout.ToolAnswer{End: true}, nil
	case r.Output == nil:
		return bad(`has neither "output" nor "end" nor "error"`)
	}
	return rollout.ToolAnswer{Text: *r.Output}, nil
}

// closeGrace is how long a program may keep running after its input has ended.
const closeGrace = 5 * time.Second

// Close ends the processes. No call may be under way.
func (c *Command) Close() error {
	for range c.opt.Workers {
		if p := <-c.idle; p != nil {
			p.Stop(closeGrace)
			c.say(p)
		}
	}
	return nil
}

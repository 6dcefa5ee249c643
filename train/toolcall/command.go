package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"exp/train/program"
	"exp/train/rollout"
)

// CommandOptions configure a tool that is a program of the user's.
type CommandOptions struct {
	Argv       []string
	DataSource string            // for calls whose problem names none
	Workers    int               // processes, each with one call at a time
	Limit      time.Duration     // longest time for an answer
	Retries    int               // of a call whose process ended or fell silent
	Log        func(text string) // of lines on standard error that came together
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
	pool *program.Pool
	last atomic.Int64 // id of the last call
}

// NewCommand prepares a program; the first call starts it. Close it afterwards.
func NewCommand(o CommandOptions) *Command {
	return &Command{opt: o, pool: program.NewPool(program.PoolOptions{Argv: o.Argv, Workers: o.Workers, Each: 1,
		Limit: o.Limit, LimitKey: "rollout.tools.limit", Retries: o.Retries, Noun: "call",
		Example: example, Log: o.Log})}
}

// example is an answer, for errors.
const example = `{"id": …, "output": "…"}`

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

// response is a line of its output, but for its id.
type response struct {
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

// Try starts the program once and returns a *BrokenError if it ends within a while: a program that works waits for
// calls.
func (c *Command) Try(while time.Duration) error {
	if err := c.pool.Try(while); err != nil {
		return c.broken(err)
	}
	return nil
}

// Answer implements rollout.Tool. The error is a *BrokenError, or ctx's.
func (c *Command) Answer(ctx context.Context, call rollout.ToolCall) (a rollout.ToolAnswer, err error) {
	p := call.Problem
	asked := request{ID: fmt.Sprint(c.last.Add(1)), Problem: p.ID, Turn: call.Turn, Name: call.Name,
		Arguments: call.Arguments, Input: call.Input, Response: call.Response, Prompt: p.Prompt, Gold: p.Answer,
		DataSource: p.DataSource(cmp.Or(p.Kind, c.opt.DataSource)), Extra: p.Data}
	line, err := json.Marshal(asked)
	if err != nil {
		return a, err
	}
	line = append(line, '\n')
	name := fmt.Sprintf("the call with id %s (problem %s)", asked.ID, asked.Problem)
	begin := func() ([]byte, error) { return line, nil }
	read := func(l program.Line) (err error) {
		a, err = parse(l, &asked)
		return err
	}
	err = c.pool.Ask(ctx, program.Request{ID: asked.ID, Name: name, Begin: begin, Read: read})
	if err != nil && ctx.Err() == nil {
		err = c.broken(err)
	}
	return a, err
}

func (c *Command) broken(err error) error { return &BrokenError{c.opt.Argv[0], err} }

// parse reads a line of output as the answer to a call.
func parse(l program.Line, asked *request) (rollout.ToolAnswer, error) {
	bad := func(text string) (rollout.ToolAnswer, error) {
		return rollout.ToolAnswer{}, fmt.Errorf("line %d of its output %s, while the call with id %s (problem %s) "+
			"is open: %s", l.Number, text, asked.ID, asked.Problem, program.Excerpt(l.Text))
	}
	var r response
	if err := json.Unmarshal(l.Text, &r); err != nil {
		return bad("is not an answer such as " + example)
	}
	switch {
	case r.Error != "":
		return rollout.ToolAnswer{}, fmt.Errorf("on problem %s it says: %s", asked.Problem, r.Error)
	case r.End:
		return rollout.ToolAnswer{End: true}, nil
	case r.Output == nil:
		return bad(`has neither "output" nor "end" nor "error"`)
	}
	return rollout.ToolAnswer{Text: *r.Output}, nil
}

// Close ends the processes. No call may be under way.
func (c *Command) Close() error { return c.pool.Close() }

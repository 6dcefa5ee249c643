// Package interpreter is the tool with which a policy runs Python programs in the sandbox.
package interpreter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"exp/sandbox"
	"exp/train/rollout"
)

// Name is the tool's name in calls that name one. verl's SandboxFusionTool has it, too.
const Name = "code_interpreter"

// Definition describes the tool for chat templates: a JSON list of one function.
const Definition = `[{"type":"function","function":{"name":"code_interpreter","description":"Run a Python program and ` +
	`return what it prints.","parameters":{"type":"object","properties":{"code":{"type":"string","description":` +
	`"The program. It prints what you want to see, or ends with an expression; nothing is kept between calls."}},"required":["code"]}}}]`

// Runner runs programs: a *sandbox.Pool.
type Runner interface {
	Run(ctx context.Context, r sandbox.Request) sandbox.Result
}

// Python runs each call's program in a fresh process without input. Programs that read no clock print the same
// every time: hashes, addresses and module random begin alike.
type Python struct {
	Run    Runner
	Limits sandbox.Limits
}

// seed is what module random begins with.
const seed = 1

// BrokenError says that the sandbox failed, not the program.
type BrokenError struct{ Detail string }

func (e *BrokenError) Error() string { return "the tool's sandbox failed: " + e.Detail }

// ExitCode is the code of an infrastructure that failed.
func (e *BrokenError) ExitCode() int { return 8 }

// Hint says how to continue.
func (e *BrokenError) Hint() string {
	return "exp sandbox check shows what it lacks; then run again: the run continues from its last checkpoint"
}

// Answer implements rollout.Tool: what the program printed, the value of an expression that ends it, and how it
// failed.
func (p *Python) Answer(ctx context.Context, c rollout.ToolCall) (rollout.ToolAnswer, error) {
	code, wrong := program(c)
	if wrong != "" {
		return rollout.ToolAnswer{Text: wrong}, nil
	}
	r := p.Run.Run(ctx, sandbox.Request{Source: code, Seed: seed, Echo: true, Limits: p.Limits})
	if err := ctx.Err(); err != nil {
		return rollout.ToolAnswer{}, err
	}
	if len(r.Runs) == 0 || r.Verdict == sandbox.InfraError {
		detail := "no run"
		if len(r.Runs) > 0 {
			detail = r.Runs[len(r.Runs)-1].Detail
		}
		return rollout.ToolAnswer{}, &BrokenError{detail}
	}
	return rollout.ToolAnswer{Text: p.said(r.Runs[0])}, nil
}

// program returns the code that a call wants to run, or an error message for the model.
func program(c rollout.ToolCall) (code, wrong string) {
	if c.Name == "" {
		return unfenced(c.Input), ""
	}
	if c.Name != Name {
		return "", fmt.Sprintf("Error: there is no tool %q; the only one is %s.", c.Name, Name)
	}
	var args map[string]any
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return "", "Error: the arguments are no JSON object."
	}
	code, ok := args["code"].(string)
	if !ok {
		return "", `Error: the argument "code", a text, is missing.`
	}
	return unfenced(code), ""
}

// unfenced returns a program without the Markdown fence around it, if it has one.
func unfenced(code string) string {
	text := strings.TrimSpace(code)
	if !strings.HasPrefix(text, "```") {
		return code
	}
	_, text, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "```")
}

// said returns what a run shows to the policy.
func (p *Python) said(r sandbox.Run) string {
	out := strings.ToValidUTF8(string(r.Stdout), "\uFFFD")
	add := func(text string) {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += text
	}
	switch r.Status {
	case sandbox.TimeLimit:
		add("TimeoutError: the program ran too long and was ended.")
	case sandbox.MemoryLimit:
		add("MemoryError: the program used too much memory and was ended.")
	case sandbox.OutputLimit:
		add("Error: the program wrote too much and was ended.")
	case sandbox.SecurityViolation:
		add("PermissionError: the program did what it may not, and was ended.")
	default:
		if text := strings.ToValidUTF8(string(r.Stderr), "\uFFFD"); text != "" {
			add(text)
		} else if r.Status != sandbox.OK {
			add(fmt.Sprintf("Error: the program ended with status %d.", r.ExitCode))
		}
	}
	return strings.TrimRight(out, "\n")
}

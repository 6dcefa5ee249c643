// Package code grades programs that a model wrote. It finds the program in a response (extract.go), runs it
// in package sandbox on a problem's tests, and compares actual with expected results (output.go, value.go).
//
// Expected outputs and values are compared here, in Go; they never enter a process that runs the program.
// Tests that are Python programs (HumanEval, MBPP, EvalPlus) run in a separate process, which alone can
// report a pass.
//
// There are two sets of rules. Strict is ours: it finds a program wherever a reader would, and compares
// token by token, in order. Upstream reproduces how published scores were made, mistakes included. It
// accepts some wrong outputs; use it only to compare with such scores.
//
// Package layout loads published files.
package code

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"exp/sandbox"
)

// Family says who published a problem; it decides what Upstream means.
type Family string

// The families. All but the last two, whose tests are programs, have an upstream comparator.
const (
	LiveCodeBench Family = "livecodebench"
	TACO          Family = "taco" // with APPS, CodeContests and PrimeIntellect
	Codeforces    Family = "codeforces"
	HumanEval     Family = "humaneval" // with EvalPlus
	MBPP          Family = "mbpp"
)

// Problem is a task that a program solves. Exactly one of Tests and Asserts is nonempty. Problems are
// immutable.
type Problem struct {
	ID     string `json:"id"`
	Family Family `json:"family"`
	// Prompt is the text shown to a model, before any chat template.
	Prompt string `json:"prompt"`
	// Cluster names problems that are not independent, such as the problems of one contest.
	Cluster string `json:"cluster,omitempty"`
	// Date is the publication date, such as 2024-08-31; empty if unknown.
	Date string `json:"date,omitempty"`

	// Starter is code before the program: imports, helpers and the head of a function. A response may
	// repeat it or just continue it.
	Starter string `json:"starter,omitempty"`
	// Entry is the function to call, or a method of class Solution; empty if the program reads stdin.
	Entry string `json:"entry,omitempty"`
	// Prelude imports the usual modules before the program.
	Prelude bool `json:"prelude,omitempty"`

	Tests []Test `json:"tests,omitempty"`
	// Tolerance is the absolute or relative error that the statement allows; 0: none.
	Tolerance float64 `json:"tolerance,omitempty"`
	// Wrapped: each expected value is a list of one element, and the function may return either the list or
	// the element (TACO, APPS).
	Wrapped bool `json:"wrapped,omitempty"`

	// Asserts are trusted programs that call Entry and fail by raising an exception; each is a test. Setup
	// precedes each of them.
	Asserts []string `json:"asserts,omitempty"`
	Setup   string   `json:"setup,omitempty"`
	// Uses lists further names of the program that Asserts use: classes.
	Uses []string `json:"uses,omitempty"`

	Limits sandbox.Limits `json:"limits"`
	// Solution is a program known to be right; may be empty.
	Solution string `json:"solution,omitempty"`
}

// Test is an input with its expected result: Stdin and Stdout, or Args and Expect if the problem has an
// Entry.
type Test struct {
	Stdin  string          `json:"stdin,omitempty"`
	Stdout string          `json:"stdout,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`   // a JSON list
	Expect json.RawMessage `json:"expect,omitempty"` // JSON
}

// Total is the number of tests.
func (p *Problem) Total() int { return max(len(p.Tests), len(p.Asserts)) }

// identifier matches a name of Python.
var identifier = regexp.MustCompile(`^[\p{L}\p{Nl}_][\p{L}\p{N}\p{M}_]*$`)

// ErrNoTests is wrapped by Check's error for a problem without tests.
var ErrNoTests = errors.New("no tests")

// Check validates a problem.
func (p *Problem) Check() error {
	switch {
	case p.ID == "":
		return fmt.Errorf("problem without id")
	case len(p.Tests) == 0 && len(p.Asserts) == 0:
		return fmt.Errorf("problem %s has %w", p.ID, ErrNoTests)
	case len(p.Tests) > 0 && len(p.Asserts) > 0:
		return fmt.Errorf("problem %s has two kinds of tests", p.ID)
	case len(p.Asserts) > 0 && p.Entry == "":
		return fmt.Errorf("problem %s does not say which function its tests call", p.ID)
	case p.Entry != "" && !identifier.MatchString(p.Entry):
		return fmt.Errorf("problem %s: %q is not the name of a function", p.ID, p.Entry)
	}
	for i, test := range p.Asserts {
		if regexp.MustCompile(`(?m)^(async[ \t]+)?def[ \t]+` + regexp.QuoteMeta(p.Entry) + `\b`).MatchString(test) {
			return fmt.Errorf("problem %s: test %d defines %s itself, so that every program would pass", p.ID, i+1,
				p.Entry)
		}
	}
	for i, t := range p.Tests {
		if p.Entry == "" {
			continue
		}
		var args []any
		if err := sandbox.DecodeValue(t.Args, &args); err != nil {
			return fmt.Errorf("problem %s: test %d: the arguments must be a JSON list: %w", p.ID, i+1, err)
		}
		var want any
		if err := sandbox.DecodeValue(t.Expect, &want); err != nil {
			return fmt.Errorf("problem %s: test %d: the expected value must be JSON: %w", p.ID, i+1, err)
		}
	}
	return nil
}

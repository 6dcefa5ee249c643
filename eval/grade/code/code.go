// Package code grades programs that a model wrote. It finds the program in a response
// (extract.go), runs it in package sandbox on a problem's tests, and compares what it
// gave with what it should (output.go, value.go).
//
// Expected outputs and values are compared here, in Go; they are never in a process
// that runs the program. Tests that are Python programs (HumanEval, MBPP, EvalPlus) run
// in a process of their own, which alone can report a pass.
//
// There are two ways to grade, by name. Strict is ours: it finds a program wherever a
// reader would, and compares token by token, in order. Upstream is what published
// scores were made with, rules and mistakes as they are: it accepts wrong outputs, and
// is for comparing with such scores only.
//
// Loaders of published files are in package codefile.
package code

import (
	"encoding/json"
	"fmt"

	"exp/sandbox"
)

// Family is who published a problem; it decides what Upstream means.
type Family string

// The families. An upstream comparator belongs to each but the last two, whose tests
// are programs.
const (
	LiveCodeBench Family = "livecodebench"
	TACO          Family = "taco" // with APPS, CodeContests and PrimeIntellect
	Codeforces    Family = "codeforces"
	HumanEval     Family = "humaneval" // with EvalPlus
	MBPP          Family = "mbpp"
)

// Problem is a task that a program solves. Exactly one of Tests and Asserts is not
// empty. Problems are not changed once made.
type Problem struct {
	ID     string `json:"id"`
	Family Family `json:"family"`
	// Prompt is the text that a model is shown; no chat template is applied.
	Prompt string `json:"prompt"`
	// Cluster is what it must not be counted independently of: a contest.
	Cluster string `json:"cluster,omitempty"`
	// Date is when it was published, 2024-08-31; empty where nobody says.
	Date string `json:"date,omitempty"`

	// Starter is code before the program: imports, helpers and the head of a function,
	// which a response may repeat or only continue.
	Starter string `json:"starter,omitempty"`
	// Entry is the function that is called, or a method of class Solution; empty where
	// the program reads stdin.
	Entry string `json:"entry,omitempty"`
	// Prelude: the usual modules are imported before the program.
	Prelude bool `json:"prelude,omitempty"`

	Tests []Test `json:"tests,omitempty"`
	// Tolerance is how far a number may be from the expected one, absolutely or
	// relatively, as the statement declares; 0: not at all.
	Tolerance float64 `json:"tolerance,omitempty"`
	// Wrapped: each expected value is a list of one, and it is not said whether the
	// function returns that list or what is in it (TACO, APPS).
	Wrapped bool `json:"wrapped,omitempty"`

	// Asserts are trusted programs that call Entry and fail by an exception; each is a
	// test. Setup goes before each of them.
	Asserts []string `json:"asserts,omitempty"`
	Setup   string   `json:"setup,omitempty"`
	// Uses are further names of the program that Asserts use: classes.
	Uses []string `json:"uses,omitempty"`

	Limits sandbox.Limits `json:"limits"`
	// Solution is a program that is known to be right; empty where none is.
	Solution string `json:"solution,omitempty"`
}

// Test is an input with what it must give: Stdin and Stdout, or Args and Expect where
// the problem has an Entry.
type Test struct {
	Stdin  string          `json:"stdin,omitempty"`
	Stdout string          `json:"stdout,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`   // a JSON list
	Expect json.RawMessage `json:"expect,omitempty"` // JSON
}

// Total is the number of tests.
func (p *Problem) Total() int { return max(len(p.Tests), len(p.Asserts)) }

// Check says what is wrong with a problem.
func (p *Problem) Check() error {
	switch {
	case p.ID == "":
		return fmt.Errorf("a problem has no id")
	case len(p.Tests) == 0 && len(p.Asserts) == 0:
		return fmt.Errorf("problem %s has no tests", p.ID)
	case len(p.Tests) > 0 && len(p.Asserts) > 0:
		return fmt.Errorf("problem %s has tests of two kinds", p.ID)
	case len(p.Asserts) > 0 && p.Entry == "":
		return fmt.Errorf("problem %s does not say which function its tests call", p.ID)
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

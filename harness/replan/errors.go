package replan

import (
	"fmt"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/quantity"
)

// ForeignError says that another program executed the run, so only its results are recorded.
type ForeignError struct {
	Run ident.Digest
	By  string // "verl"
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("run %s was imported from %s: it cannot be executed again or continued here",
		e.Run.Short(), e.By)
}

// Hint says what can be done.
func (e *ForeignError) Hint() string {
	return "exp show and exp metrics show its record; exp verify --level blobs checks its files"
}

// ExitCode is the code for a command that does not fit the run.
func (e *ForeignError) ExitCode() int { return codeUsage }

// NumericsError says that this machine computes in a different numerics class than the
// run's (results agree bit for bit only within a class).
type NumericsError struct {
	Run            ident.Digest
	Recorded, Here string
}

func (e *NumericsError) Error() string {
	return fmt.Sprintf("run %s was computed in numerics class %s; this machine, with this program, is of class %s",
		e.Run.Short(), e.Recorded, e.Here)
}

// Hint says what to do.
func (e *NumericsError) Hint() string {
	return "bits agree only within a class: use a machine of that class, or set EXP_CPU if this one supports it " +
		"(exp doctor lists what it supports)"
}

// ExitCode is the code for something that this machine lacks.
func (e *NumericsError) ExitCode() int { return codeResource }

// SourcesError says that a run was made by other sources than this program's.
type SourcesError struct {
	Run   ident.Digest
	Kinds []string // kinds of stages
	Files []string // files that differ, or the compiler; nil if the store lacks the sources
}

func (e *SourcesError) Error() string {
	text := fmt.Sprintf("run %s was made by other sources than this program's: of %s",
		e.Run.Short(), strings.Join(e.Kinds, ", "))
	if len(e.Files) > 0 {
		text += fmt.Sprintf(" (%s)", quantity.AtMost(e.Files, 6))
	}
	return text
}

// Hint says how to build the program that made the run.
func (e *SourcesError) Hint() string {
	return "the store keeps them: exp show " + e.Run.Short() +
		" --source DIR, then in DIR: go build -trimpath -o exp ./cmd/exp"
}

// ExitCode is the code for something that this machine lacks.
func (e *SourcesError) ExitCode() int { return codeResource }

// InputsError says that an external input of a run has changed.
type InputsError struct {
	Run, Plan ident.Digest
	Changed   []string // roles of the inputs; nil if unknown
}

func (e *InputsError) Error() string {
	what := "its configuration, data, weights or tokenizer changed"
	switch len(e.Changed) {
	case 0:
	case 1:
		what = "its " + e.Changed[0] + " changed"
	default:
		what = "its " + strings.Join(e.Changed, ", ") + " changed"
	}
	return fmt.Sprintf("run %s cannot be planned again: %s (the plan's id is %s)", e.Run.Short(), what,
		e.Plan.Short())
}

// Hint says where to look.
func (e *InputsError) Hint() string {
	return "restore the files that the configuration names (exp show " + e.Run.Short() + " --config); with the " +
		"changed ones its configuration is another run: exp run CONFIG"
}

// ExitCode is the code for changed files.
func (e *InputsError) ExitCode() int { return codeIntegrity }

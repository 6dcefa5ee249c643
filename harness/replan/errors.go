package replan

import (
	"fmt"
	"strings"

	"exp/experiments/ident"
)

// NumericsError says that this machine computes in another class of numerics than the one
// of a run.
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
	return "bits agree only inside a class: use a machine of that class, " +
		"or EXP_CPU where this one has it (exp doctor lists what it has)"
}

// ExitCode is the one of what this machine lacks.
func (e *NumericsError) ExitCode() int { return codeResource }

// SourcesError says that other sources than this program's made a run.
type SourcesError struct {
	Run   ident.Digest
	Kinds []string // of stages
	Files []string // that differ, or the compiler; nil where the store does not have them
}

func (e *SourcesError) Error() string {
	text := fmt.Sprintf("run %s was made by other sources than this program's: of %s",
		e.Run.Short(), strings.Join(e.Kinds, ", "))
	if len(e.Files) > 0 {
		text += fmt.Sprintf(" (%s)", atMost(e.Files, 6))
	}
	return text
}

// Hint says how to build the program that made the run.
func (e *SourcesError) Hint() string {
	return "the store keeps them: exp show " + e.Run.Short() +
		" --source DIR, then in DIR: go build -trimpath -o exp ./cmd/exp"
}

// ExitCode is the one of what this machine lacks.
func (e *SourcesError) ExitCode() int { return codeResource }

// InputsError says that what a run took from outside is not what it was.
type InputsError struct {
	Run, Plan ident.Digest
	Changed   []string // roles of the inputs; nil where none is known
}

func (e *InputsError) Error() string {
	what := "its configuration, data, weights or tokenizer are not what they were"
	switch len(e.Changed) {
	case 0:
	case 1:
		what = "its " + e.Changed[0] + " is not what it was"
	default:
		what = "its " + strings.Join(e.Changed, ", ") + " are not what they were"
	}
	return fmt.Sprintf("run %s cannot be planned again: %s (the plan's id is %s)", e.Run.Short(), what, e.Plan.Short())
}

// Hint says where to look.
func (e *InputsError) Hint() string {
	return "files that the configuration names must be as they were: exp show " + e.Run.Short() + " --config"
}

// ExitCode is the one of changed files.
func (e *InputsError) ExitCode() int { return codeIntegrity }

package run

import (
	"context"
	"fmt"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/plan"
)

// InterruptedError is returned if the context was cancelled. Finished work is saved;
// executing the run again continues from there.
type InterruptedError struct {
	RID   ident.Digest
	Stage string
	Step  int64 // training steps recorded
	Err   error
}

func (e *InterruptedError) Error() string {
	text := fmt.Sprintf("run %s: stopped in %s", e.RID.Short(), e.Stage)
	if e.Step > 0 {
		text += " after " + quantity.Plural(int(e.Step), "step")
	}
	return text
}

// Unwrap returns the cause.
func (e *InterruptedError) Unwrap() error { return e.Err }

// interrupted returns the error for a stage that was stopped or did not begin.
func (x *execution) interrupted(ctx context.Context, s plan.Stage, cause error) error {
	e := &InterruptedError{RID: x.p.RID, Stage: s.Name(), Err: cause}
	if run, err := x.DB.RunByID(ctx, x.run.ID); err == nil {
		e.Step = run.Steps
	}
	return e
}

// StageError is an error in a stage.
type StageError struct {
	Stage string // kind and label
	Err   error
}

func (e *StageError) Error() string {
	text := e.Err.Error()
	if strings.HasPrefix(text, e.Stage+": ") {
		return text // from a package with the stage's name
	}
	return e.Stage + ": " + text
}

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// PanicError is a panic in a stage.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

package run

import (
	"context"
	"errors"
	"testing"

	"exp/experiments/store"
)

// A finished run stays done if an evaluation that joins it is interrupted, and the evaluation can be repeated.
func TestJoinedEvaluationStops(t *testing.T) {
	l := startedLab(t)
	l.execute(l.plan(0))
	l.options.Joins = true
	more := l.plan(0, "eval.final.n=64")
	ctx, cancel := context.WithCancel(context.Background())
	stopped, err := l.try(ctx, more, &quiet{began: func(stage string) {
		if stage == "eval.gen[test]" {
			cancel()
		}
	}})
	cancel()
	var e *InterruptedError
	if !errors.As(err, &e) || stopped.Run.Status != store.Done || stopped.Run.RID != l.plan(0).RID {
		t.Errorf("stopped with %v; the run is %s", err, stopped.Run.Status)
	}
	if res, q := l.execute(more); res.Run.Status != store.Done || len(q.started) == 0 {
		t.Errorf("again: the run is %s, executed %q", res.Run.Status, q.started)
	}
}

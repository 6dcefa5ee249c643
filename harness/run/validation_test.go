package run

import (
	"context"
	"errors"
	"maps"
	"testing"

	"exp/experiments/store"
)

// Validation curves begin at step 0, with the scores of the weights that training starts from:
// those are the same for every algorithm. A run that was stopped before its first step, or later,
// keeps them.
func TestValidationBeginsAtTheStart(t *testing.T) {
	l := startedLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	q := &quiet{progress: func(stage string, done int) {
		if stage == "train" && done == 0 {
			cancel()
		}
	}}
	var stopped *InterruptedError
	if _, err := l.try(ctx, l.plan(0), q); !errors.As(err, &stopped) || stopped.Stage != "train" {
		t.Fatalf("stopped with %v", err)
	}
	res, _ := l.execute(l.plan(0))
	other, _ := l.execute(l.plan(0, "algo.kind=ppo", "name=other"))
	start, err := scoresOf(t.Context(), l.db, res.Run.ID, 0)
	same, e := scoresOf(t.Context(), l.db, other.Run.ID, 0)
	if err != nil || e != nil || len(start) == 0 || !maps.Equal(start, same) {
		t.Errorf("the start scored %v, with another algorithm %v; %v, %v", start, same, err, e)
	}
	curves, err := l.db.Metrics(t.Context(), res.Run.ID, "val/pass@1", 0, store.AllSteps)
	if err != nil || len(curves) != 1 || len(curves[0].Steps) != 3 || curves[0].Steps[0] != 0 || curves[0].N != 3 {
		t.Errorf("curve %+v, %v; want points at 0, 2 and 4", curves, err)
	}
	if steps, err := l.db.Steps(t.Context(), res.Run.ID, 0, store.AllSteps); err != nil || len(steps) != 4 {
		t.Errorf("%d steps recorded, %v; want 4: step 0 does not count", len(steps), err)
	}
}

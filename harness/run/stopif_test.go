package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"exp/experiments/store"
)

// A run stops after the step where a condition holds, with a checkpoint and the reason; it stays
// stopped when it is executed again, and without the condition it becomes the run it would have
// been.
func TestStopIf(t *testing.T) {
	whole := newLab(t)
	want, _ := whole.execute(whole.plan(0, "train.steps=4"))
	l := newLab(t)
	p := l.plan(0, "train.steps=4", "run.stop_if=[training/global_step == 3, kl/ref_k3 > 1000]")
	if p.RID != want.Run.RID {
		t.Fatal("the condition changes the run's id, though not its steps")
	}
	for attempt := 1; attempt <= 2; attempt++ {
		res, err := l.try(context.Background(), p, &quiet{})
		var held *StoppedError
		if !errors.As(err, &held) || held.Step != 3 || held.Of != 4 || res.Run.Status != store.Stopped || res.Run.Steps != 3 {
			t.Fatalf("attempt %d: %v, status %s after %d steps; want stopped after 3", attempt, err, res.Run.Status, res.Run.Steps)
		}
		reason, err := l.db.Reason(context.Background(), res.Run.ID)
		if says := "training/global_step == 3 at step 3 of 4 (training/global_step = 3)"; err != nil || reason != says {
			t.Errorf("reason %q, %v; want %q", reason, err, says)
		}
		saved, err := l.db.Checkpoints(context.Background(), res.Run.ID)
		if err != nil || len(saved) == 0 || saved[0].Step != 3 {
			t.Errorf("checkpoints %+v, %v; want one of step 3", saved, err)
		}
		stages, err := l.db.Stages(context.Background(), res.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range stages {
			if s.Kind == "merge" || s.Kind == "train" && s.Status != store.Interrupted {
				t.Errorf("attempt %d: stage %s is %s", attempt, s.Name(), s.Status)
			}
		}
	}
	got, _ := l.execute(l.plan(0, "train.steps=4"))
	if got.Run.Status != store.Done || got.Run.Chain != want.Run.Chain {
		t.Errorf("status %s, chain %s; want done, %s", got.Run.Status, got.Run.Chain.Short(), want.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(got.Run.ID), whole.outputs(want.Run.ID))
}

// A condition that holds after the last step stops nothing, and one on a metric that the run does
// not measure warns once.
func TestStopIfAtTheEnd(t *testing.T) {
	l := newLab(t)
	res, q := l.execute(l.plan(0, "train.steps=2", "run.stop_if=[training/global_step == 2, critic/vf_loss > 0]"))
	if res.Run.Status != store.Done {
		t.Errorf("status %s, want done", res.Run.Status)
	}
	if len(q.warnings) != 1 || !strings.Contains(q.warnings[0], "step 1 did not measure critic/vf_loss") {
		t.Errorf("warnings %q", q.warnings)
	}
}

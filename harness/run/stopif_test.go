package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/plan"
	"exp/harness/stage"
)

// A run stops after the step where a condition holds, with a checkpoint and the reason; it stays
// stopped when it is executed again, and without the condition it becomes the run it would have
// been.
func TestStopIf(t *testing.T) {
	whole := startedLab(t)
	want, _ := whole.execute(whole.plan(0, "train.steps=4"))
	l := startedLab(t)
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
	l := startedLab(t)
	res, q := l.execute(l.plan(0, "train.steps=2", "run.stop_if=[training/global_step == 2, critic/vf_loss > 0]"))
	if res.Run.Status != store.Done {
		t.Errorf("status %s, want done", res.Run.Status)
	}
	if len(q.warnings) != 1 || !strings.Contains(q.warnings[0], "critic/vf_loss was not measured at step 1") {
		t.Errorf("warnings %q", q.warnings)
	}
}

// Metrics of the validation are looked for when there is one.
func TestStopIfOfValidation(t *testing.T) {
	l := startedLab(t)
	_, q := l.execute(l.plan(0, "train.steps=3", "eval.online.every_steps=2",
		"run.stop_if=[val/pass@1 > 2 and val/acuracy < 0]"))
	if len(q.warnings) != 1 || !strings.Contains(q.warnings[0], "val/acuracy was not measured at step 2") {
		t.Errorf("warnings %q", q.warnings)
	}
}

// A run whose updates are skipped stops at once, and stays there.
func TestStopIfNonFinite(t *testing.T) {
	l := startedLab(t)
	p := l.plan(0, "train.steps=3", "algo={kind: grpo, entropy_coef: 1e300}",
		"run.stop_if=[actor/grad_norm > 10, nonfinite > 0]")
	for attempt := 1; attempt <= 2; attempt++ {
		_, err := l.try(context.Background(), p, &quiet{})
		var held *StoppedError
		if !errors.As(err, &held) || held.Step != 1 || held.reason() != "nonfinite > 0 at step 1 of 3 (nonfinite = 1)" {
			t.Errorf("attempt %d: %v; want stopped at step 1 by one metric", attempt, err)
		}
	}
	if res, q := l.execute(l.plan(0, "train.steps=3", "run.stop_if=[nonfinite > 0]")); res.Run.Status != store.Done ||
		len(q.warnings) > 0 {
		t.Errorf("status %s, warnings %q; want done, none", res.Run.Status, q.warnings)
	}
}

// The steps of a critic's warm-up stop nothing and warn of nothing: later ones measure the policy.
func TestStopIfWarmup(t *testing.T) {
	l := startedLab(t)
	res, q := l.execute(l.plan(0, "train.steps=2", "algo={kind: ppo, critic: {warmup_steps: 1}}",
		"run.stop_if=[not actor/grad_norm < 1e9, actor/grad_norm != 1e9 and training/global_step == 1, timing_s/testing > 1e9]"))
	if res.Run.Status != store.Done || len(q.warnings) > 0 {
		t.Errorf("status %s, warnings %q; want done, none", res.Run.Status, q.warnings)
	}
}

// A run stops at its last recorded step at the earliest: a rerun then stops there again.
func TestStopIfReplays(t *testing.T) {
	l, settings := died(t) // three steps are recorded
	with := func(condition string) *plan.Run { return l.plan(0, append(settings, "run.stop_if=["+condition+"]")...) }
	stops := func(p *plan.Run, at int64, replays bool) {
		t.Helper()
		q := &quiet{}
		_, err := l.try(context.Background(), p, q)
		var held *StoppedError
		if !errors.As(err, &held) || held.Step != at {
			t.Fatalf("%v; want stopped at step %d", err, at)
		}
		if got := strings.Contains(strings.Join(q.notes, "\n"), "bit-identical"); got != replays {
			t.Errorf("notes %q; want a replay: %v", q.notes, replays)
		}
	}
	l.options.UpTo = 1                                // from the start
	stops(with("training/global_step <= 4"), 3, true) // holds at steps 1 and 2 too
	l.options.UpTo = 0
	stops(with("training/global_step <= 4"), 3, false)
	l.options.UpTo = 2
	stops(with("training/global_step <= 4"), 3, true)
	l.options.UpTo = 0
	saved, err := filepath.Glob(filepath.Join(stage.CheckpointsDir(l.db.RunDir(with("training/global_step <= 4").RID)), "train-*", "step-00000003"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("checkpoints of step 3: %q, %v", saved, err)
	}
	if err := os.RemoveAll(saved[0]); err != nil {
		t.Fatal(err)
	}
	stops(with("training/global_step <= 4"), 3, true) // and saves
	if _, err := os.Stat(saved[0]); err != nil {
		t.Errorf("stopped without a checkpoint: %v", err)
	}
}

// Repeating a finished run with a condition, or interrupting that, leaves the run done.
func TestStopIfRepeated(t *testing.T) {
	l := startedLab(t)
	want, _ := l.execute(l.plan(0, "train.steps=3"))
	l.options.NoCache = true
	p := l.plan(0, "train.steps=3", "run.stop_if=[training/global_step == 2]")
	if res, err := l.try(context.Background(), p, &quiet{}); err != nil || res.Run.Status != store.Done || res.Run.ID != want.Run.ID {
		t.Errorf("status %s, %v; want done", res.Run.Status, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	q := &quiet{progress: func(string, int) { cancel() }}
	res, err := l.try(ctx, p, q)
	var interrupted *InterruptedError
	if !errors.As(err, &interrupted) || res.Run.Status != store.Done {
		t.Errorf("interrupted: status %s, %v; want done", res.Run.Status, err)
	}
}

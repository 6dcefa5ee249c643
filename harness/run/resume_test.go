package run

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/stage"
)

// died makes a run that dies in step 4, after the checkpoint of step 2.
func died(t *testing.T, sets ...string) (l *lab, settings []string) {
	t.Helper()
	settings = append([]string{"train.steps=6", "checkpoint.every_steps=2", "checkpoint.keep=3"}, sets...)
	l = newLab(t)
	good := l.be
	l.be = &breaking{Backend: good, at: 30 + 2*4} // 30 of sft, 2 a step
	if _, err := l.try(context.Background(), l.plan(0, settings...), &quiet{}); err == nil {
		t.Fatal("it did not die")
	}
	l.be = good
	l.options.Resume = true
	return l, settings
}

// Resuming says which checkpoint it takes and what it proved again.
func TestResume(t *testing.T) {
	l, settings := died(t)
	whole := startedLab(t)
	want, _ := whole.execute(whole.plan(0, settings...))
	got, q := l.execute(l.plan(0, settings...))
	if len(q.notes) != 2 || !strings.HasPrefix(q.notes[0], "checkpoint step 2 ok (digest ") || !strings.HasSuffix(q.notes[0], "steps recorded up to 3") ||
		q.notes[1] != "replayed 3–3: 1/1 steps bit-identical" || len(q.warnings) != 0 {
		t.Errorf("notes %q, warnings %q", q.notes, q.warnings)
	}
	if got.Run.Chain != want.Run.Chain || got.Run.Steps != 6 {
		t.Errorf("%d steps, chain %s; want 6, %s", got.Run.Steps, got.Run.Chain.Short(), want.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(got.Run.ID), whole.outputs(want.Run.ID))
	attempts, err := l.db.Attempts(context.Background(), got.Run.ID)
	if err != nil || len(attempts) != 2 || attempts[1].Kind != store.AttemptResume {
		t.Errorf("attempts %+v, %v", attempts, err)
	}
	if again, q := l.execute(l.plan(0, settings...)); again.Executed != 0 || len(q.notes) != 0 {
		t.Errorf("nothing was left to do, but %d stages were executed, %q", again.Executed, q.notes)
	}
}

// A run killed between writing a checkpoint and recording it goes on from there and records it: no later
// step writes it again.
func TestResumeRecordsItsCheckpoint(t *testing.T) {
	l, settings := died(t)
	l.sql(`DELETE FROM checkpoints WHERE step = 2`)
	res, _ := l.execute(l.plan(0, settings...))
	saved, err := l.db.Checkpoints(context.Background(), res.Run.ID)
	if err != nil || len(saved) != 2 || saved[1].Step != 2 {
		t.Fatalf("checkpoints %+v, %v; want steps 4 and 2", saved, err)
	}
	dirs, err := filepath.Glob(filepath.Join(l.db.RunDir(res.Run.RID), "ckpt", "train-*", "step-00000002"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%q, %v", dirs, err)
	}
	digest, size, err := manifestOf(dirs[0])
	steps, e := l.db.Steps(context.Background(), res.Run.ID, 2, 2)
	if err := errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	if got := saved[1]; got.Digest != digest || got.Bytes != size || got.Chain != steps[0].Chain {
		t.Errorf("recorded %+v, want digest %s, %d bytes and chain %s", got, digest, size, steps[0].Chain)
	}
}

// A step that does not come out as recorded ends the run, named with its field.
func TestResumeDivergence(t *testing.T) {
	l, settings := died(t)
	l.be = crooked{l.be}
	res, err := l.try(context.Background(), l.plan(0, settings...), &quiet{})
	var d *store.DivergenceError
	if !errors.As(err, &d) || d.Step != 3 || d.Field != "params" || res.Run.Status != store.Failed {
		t.Fatalf("error %v, status %s; want a divergence at step 3 in params", err, res.Run.Status)
	}
	list, err := l.db.Divergences(context.Background(), res.Run.ID)
	if err != nil || len(list) != 1 || list[0].What.Step != 3 {
		t.Errorf("recorded: %+v, %v", list, err)
	}
}

// A checkpoint that is whole and yet not the recorded one is passed over, with an
// event; the one before it is taken, or none.
func TestResumePassesOver(t *testing.T) {
	for _, tt := range []struct {
		name, change, says string
		steps              string
	}{
		{"chain", `UPDATE steps SET chain = unhex('ab' || hex(zeroblob(31))) WHERE step = 2`, "but the recorded step has ab000000", ""},
		{"manifest", `UPDATE checkpoints SET digest = unhex('ab' || hex(zeroblob(31))) WHERE step = 2`, "but ab000000 is recorded", "replayed 1–3: 3/3 steps bit-identical"},
		{"lost step", `DELETE FROM steps WHERE step = 1`, "only 1 of the 2 steps", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, settings := died(t)
			l.sql(tt.change)
			q := &quiet{}
			res, err := l.try(context.Background(), l.plan(0, settings...), q)
			if len(q.warnings) != 1 || !strings.Contains(q.warnings[0], tt.says) {
				t.Errorf("warnings %q, want %q", q.warnings, tt.says)
			}
			events, e := l.db.Events(context.Background(), res.Run.ID, 0)
			if e != nil || !slices.ContainsFunc(events, func(e store.Event) bool { return e.Kind == "checkpoint-passed-over" }) {
				t.Errorf("events %+v, %v", events, e)
			}
			switch tt.name {
			case "chain": // the recorded step itself is wrong
				var d *store.DivergenceError
				if !errors.As(err, &d) || d.Step != 2 {
					t.Errorf("error %v, want a divergence at step 2", err)
				}
			case "manifest":
				if err == nil && !slices.Contains(q.notes, tt.steps) {
					t.Errorf("notes %q", q.notes)
				}
			}
		})
	}
}

// --from takes an older checkpoint.
func TestResumeFrom(t *testing.T) {
	settings := []string{"train.steps=6", "checkpoint.every_steps=1", "checkpoint.keep=5"}
	l := newLab(t)
	l.be = &breaking{Backend: l.be, at: 30 + 2*5}
	if _, err := l.try(context.Background(), l.plan(0, settings...), &quiet{}); err == nil {
		t.Fatal("it did not die")
	}
	l.be = l.be.(*breaking).Backend
	l.options.Resume, l.options.UpTo = true, 2
	_, q := l.execute(l.plan(0, settings...))
	if len(q.notes) != 2 || !strings.HasPrefix(q.notes[0], "checkpoint step 2 ok") || q.notes[1] != "replayed 3–4: 2/2 steps bit-identical" {
		t.Errorf("notes %q", q.notes)
	}
}

// A longer run that continues a shorter one equals the run that trains from the start.
func TestExtend(t *testing.T) {
	l := startedLab(t)
	parent, _ := l.execute(l.plan(0))
	l.options.Resume, l.options.Parent = true, &parent.Run
	child, q := l.execute(l.plan(0, "train.steps=7", "name=longer"))
	if len(q.notes) != 2 || !strings.HasPrefix(q.notes[0], "checkpoint step 2 ok") || q.notes[1] != "replayed 3–4: 2/2 steps bit-identical" {
		t.Errorf("notes %q, warnings %q", q.notes, q.warnings)
	}
	whole := startedLab(t)
	want, _ := whole.execute(whole.plan(0, "train.steps=7"))
	if child.Run.RID != want.Run.RID || child.Run.Chain != want.Run.Chain || child.Run.Steps != 7 || child.Run.Parent != parent.Run.ID {
		t.Errorf("run %s with %d steps, chain %s, parent %d; want %s, 7, %s, %d", child.Run.RID.Short(), child.Run.Steps, child.Run.Chain.Short(), child.Run.Parent,
			want.Run.RID.Short(), want.Run.Chain.Short(), parent.Run.ID)
	}
	sameOutputs(t, l.outputs(child.Run.ID), whole.outputs(want.Run.ID))
	got, err := recordedSteps(context.Background(), l.db, child.Run.ID, store.AllSteps)
	if err != nil || len(got) != 7 || len(got[0].Measured) == 0 {
		t.Errorf("%d steps are recorded, %v", len(got), err)
	}
	mine, err := scoresOf(context.Background(), l.db, child.Run.ID, 0)
	theirs, e := scoresOf(context.Background(), l.db, parent.Run.ID, 0)
	if err != nil || e != nil || len(mine) == 0 || !maps.Equal(mine, theirs) {
		t.Errorf("the start scored %v, in the parent %v, %v, %v", mine, theirs, err, e)
	}
	if v := l.verify(l.plan(0, "train.steps=7"), VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verified: %+v", v.Findings)
	}

	// The steps that both have are proved equal.
	l.be = crooked{l.be}
	_, err = l.try(context.Background(), l.plan(0, "train.steps=8"), &quiet{})
	var d *store.DivergenceError
	if !errors.As(err, &d) || d.RID != parent.Run.RID || d.Step != 3 || d.Field != "params" {
		t.Errorf("error %v, want a divergence from the parent at step 3 in params", err)
	}

	if err := Extendable(smoke(t)); err != nil {
		t.Error(err)
	}
	if err := Extendable(smoke(t, "train.optim.schedule=cosine")); !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), "train.optim.schedule is cosine") {
		t.Errorf("cosine: %v", err)
	}
}

// --no-cache executes from the first step, whatever checkpoints there are, and takes
// nothing of the record away.
func TestNoCacheStartsFresh(t *testing.T) {
	l, settings := died(t)
	l.options = Options{NoCache: true}
	updates := &breaking{Backend: l.be, at: -1}
	l.be = updates
	res, q := l.execute(l.plan(0, settings...))
	if len(q.warnings) != 0 || updates.updates != 30+2*6 {
		t.Errorf("%d updates, want all 42; warnings %q", updates.updates, q.warnings)
	}
	whole := newLab(t)
	want, _ := whole.execute(whole.plan(0, settings...))
	sameOutputs(t, l.outputs(res.Run.ID), whole.outputs(want.Run.ID))

	// A merged model that is not the recorded one does not take its place.
	l.sql(`UPDATE stage_io SET digest = unhex('ab' || hex(zeroblob(31))) WHERE role = ? AND dir = 'out'`, stage.MergedWeights)
	path := filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir, stage.MergedWeights)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.try(context.Background(), l.plan(0, settings...), &quiet{})
	var d *store.DivergenceError
	if after, e := os.Stat(path); !errors.As(err, &d) || e != nil || !os.SameFile(before, after) {
		t.Errorf("error %v, want a divergence; the merged weights were replaced: %v", err, e)
	}
}

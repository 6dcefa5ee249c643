package run

import (
	"context"
	"fmt"

	"exp/experiments/store"
	"exp/harness/stage"
)

// start says where the train stage begins: at the newest checkpoint that matches the
// record. The recorded steps after it are executed again, and the StepWriter compares
// each with the record.
func (x *execution) start(e *stage.Env, rec *stepRecord) error {
	last, err := x.lastStep()
	if err != nil {
		return err
	}
	rec.replay = replay{to: last, from: 1}
	if err := x.startConditions(e, last); err != nil || x.stopped != nil {
		return err
	}
	e.Start.UpTo, e.Start.Accept = x.Options.UpTo, x.acceptCheckpoint
	if x.Options.Parent != nil {
		if e.Start.Parent, err = x.parent(rec); err != nil {
			return err
		}
	}
	if !x.Options.Resume {
		return nil
	}
	rec.note = x.Watch.Note
	e.Hooks.Resumed = func(s stage.Saved) {
		rec.replay.from = int64(s.Step) + 1
		digest, _, err := manifestOf(s.Dir)
		if err != nil { // it was readable a moment ago
			x.Watch.Warn(err.Error())
		}
		x.Watch.Note(fmt.Sprintf("checkpoint step %d ok (digest %s); steps recorded up to %d", s.Step, digest.Short(),
			max(rec.replay.to, int64(s.Step))))
	}
	return nil
}

// replay is the range of recorded steps that are executed again; empty if from > to.
type replay struct{ from, to int64 }

// say reports the proof.
func (r replay) say(note func(string)) {
	n := r.to - r.from + 1
	note(fmt.Sprintf("replayed %d–%d: %d/%d steps bit-identical", r.from, r.to, n, n))
}

// lastStep returns the last recorded step.
func (x *execution) lastStep() (int64, error) {
	run, err := x.DB.RunByID(context.Background(), x.run.ID)
	return run.Steps, err
}

// acceptCheckpoint checks a checkpoint against the record, and records one that a process killed
// right after writing it did not: nothing writes it again.
func (x *execution) acceptCheckpoint(c stage.Saved) error {
	ctx := context.Background()
	steps, err := x.DB.Steps(ctx, x.run.ID, 1, int64(c.Step))
	switch {
	case err != nil:
		return err
	case len(steps) != c.Step:
		return fmt.Errorf("only %d of the %d steps before it are recorded", len(steps), c.Step)
	case c.Step > 0 && steps[c.Step-1].Chain != c.Chain:
		return fmt.Errorf("its chain is %s, but the recorded step has %s", c.Chain.Short(),
			short(steps[c.Step-1].Chain))
	}
	if err := checkAnnounced(ctx, x.DB, x.run.ID, c); err != nil {
		return err
	}
	return x.announce(c.Dir, c.Step, c.Chain)
}

// checkAnnounced compares a checkpoint's manifest with the recorded one, which is missing
// if the process was killed in between.
func checkAnnounced(ctx context.Context, db *store.DB, run int64, c stage.Saved) error {
	announced, err := db.Checkpoints(ctx, run)
	if err != nil {
		return err
	}
	digest, _, err := manifestOf(c.Dir)
	if err != nil {
		return err
	}
	for _, a := range announced {
		if a.Step == int64(c.Step) && a.Digest != digest {
			return fmt.Errorf("its manifest has digest %s, but %s is recorded", digest.Short(), short(a.Digest))
		}
	}
	return nil
}

package train

import (
	"context"
	"fmt"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
)

// tuner is what learning from examples in files has in common: one model, steps over examples in a new random order
// each epoch, and a state that can be saved between steps.
type tuner struct {
	be       kernels.Backend
	ranks    ranks.Group
	clock    func() time.Time
	recorder Recorder
	waiting  Waiting
	steps    int // to take
	learner  *learner
	passes   *passes
	order    order
	step     int // finished steps
}

// open allocates the optimizer of m, named for messages and buffers, and workspaces for rows. All other fields are
// set.
func (t *tuner) open(name string, m *model.Model, c Optim, rows Rows, off Offload, keep model.Keep, tensor int) error {
	if t.clock == nil {
		t.clock = time.Now
	}
	if t.ranks == nil {
		t.ranks = ranks.Alone{}
	}
	data, err := dataGroup(t.ranks, tensor, rows.Slices)
	if err != nil {
		return err
	}
	if t.learner, err = newLearner(t.be, name, m, c, rows.Slices, off, t.ranks, data); err != nil {
		return err
	}
	if t.passes, err = newPasses(t.be, data, m.Config, m.Heads, rows, false, keep); err != nil {
		t.learner.close()
		return err
	}
	return nil
}

// Close frees the optimizer and workspaces.
func (t *tuner) Close() {
	t.learner.close()
	t.passes.close()
}

// run takes the remaining steps with take. Between steps it calls stop; if that returns true, it returns ErrStopped.
// All ranks stop if one is asked to.
func (t *tuner) run(ctx context.Context, stop func() bool, take func() (*Step, error)) error {
	for t.step < t.steps {
		if stopped, err := ranks.Any(t.ranks, stop != nil && stop()); err != nil {
			return err
		} else if stopped {
			return ErrStopped
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := take()
		if err != nil {
			return err
		}
		if err := t.recorder.Step(rec); err != nil {
			return err
		}
	}
	return nil
}

// refers tells how many completions the reference has scored, before the next batch of them. It returns ErrStopped if
// any rank is to stop.
func (t *tuner) refers(done, total int) error {
	if t.waiting.Phase != nil {
		t.waiting.Phase(0, "reference", done, total)
	}
	stopped, err := ranks.Any(t.ranks, t.waiting.Stop != nil && t.waiting.Stop())
	if err == nil && stopped {
		err = ErrStopped
	}
	return err
}

// dropAdapters enables the dropout of adapters, if any, for rows r0 to r1 of b, which are loaded for training. The
// masks of a row follow from the step, its problem's id and its number among that problem's rows, not from its place.
func (t *tuner) dropAdapters(b *batch, step, r0, r1 int) {
	if a := t.learner.m.Heads.Adapters; a == nil || a.Dropout == 0 {
		return
	}
	seeds := make([]uint64, r1-r0)
	for i, row := range b.traj[r0:r1] {
		seeds[i] = t.order.seed(fmt.Sprintf("dropout/step=%d/problem=%s/sample=%d", step, row.Problem.ID, row.Sample))
	}
	t.passes.train.DropAdapters(seeds)
}

// State returns the state after the last finished step.
func (t *tuner) State() State { return State{Step: t.step, PolicyUpdates: t.learner.opt.Steps()} }

// Buffers returns the buffers of everything that learns.
func (t *tuner) Buffers() []NamedBuffer { return t.learner.buffers() }

// WithBuffers is Trainer.WithBuffers.
func (t *tuner) WithBuffers(f func(list []NamedBuffer) error) error {
	return withBuffers(t.ranks, t.be, t.Buffers(), f)
}

// WithPolicy is Trainer.WithPolicy.
func (t *tuner) WithPolicy(f func(list []NamedBuffer) error) error { return t.learner.withTensors(f) }

// Restore is Trainer.Restore.
func (t *tuner) Restore(s State) error {
	if err := spread(t.ranks, &s, t.learner); err != nil {
		return err
	}
	t.step = s.Step
	t.learner.restore(s.PolicyUpdates)
	return nil
}

package run

import (
	"context"
	"errors"
	"fmt"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
)

// ErrSchedule is returned for a run that cannot be extended because its steps depend on
// their number.
var ErrSchedule = errors.New("its steps depend on train.steps")

// Extendable checks that with more or fewer steps a run takes the same steps, so that one
// trajectory is a prefix of the other. Only then can a run continue from a checkpoint of
// another and still match its id.
func Extendable(r *config.Resolved) error {
	kinds := map[string]string{"train.optim.schedule": r.Run.Train.Optim.Schedule}
	if r.Has("algo.critic.optim.schedule") {
		kinds["algo.critic.optim.schedule"] = r.Run.Algo.Critic.Optim.Schedule
	}
	if r.Has("algo.prime.optim.schedule") {
		kinds["algo.prime.optim.schedule"] = r.Run.Algo.Prime.Optim.Schedule
	}
	for _, key := range sortedKeys(kinds) {
		if kinds[key] != "constant" {
			return fmt.Errorf("%w: %s is %s", ErrSchedule, key, kinds[key])
		}
	}
	if n := r.Run.Rollout.Staleness; n > 0 {
		return fmt.Errorf("%w: rollout.staleness is %d, so the last steps sample nothing ahead", ErrSchedule, n)
	}
	return nil
}

// parent lets training continue from a checkpoint of the run that this one extends or cuts. The
// earlier steps are copied into this run's record, under its own chain.
func (x *execution) parent(rec *stepRecord) (*stage.Parent, error) {
	ctx := context.Background()
	run := x.Options.Parent
	stages, err := x.DB.Stages(ctx, run.ID)
	if err != nil {
		return nil, err
	}
	var sid ident.Digest
	for _, s := range stages {
		if s.Kind == string(config.Train) {
			sid = s.SID
		}
	}
	if sid.IsZero() {
		return nil, nil // it never began training
	}
	rec.parent = run
	rec.replay.to = max(rec.replay.to, min(run.Steps, int64(x.p.Config.Run.Train.Steps)))
	return &stage.Parent{Dir: x.DB.RunDir(run.RID), SID: sid, Accept: func(c stage.Saved) (ident.Digest, error) {
		if err := checkAnnounced(ctx, x.DB, run.ID, c); err != nil {
			return ident.Digest{}, err
		}
		return x.takeOver(ctx, rec, run, c)
	}}, nil
}

// takeOver records the parent's steps up to a checkpoint as this run's and returns the
// chain after them. It computes the chain from the record; recomputing the parent's chain
// too proves that the record is complete.
func (x *execution) takeOver(ctx context.Context, rec *stepRecord, parent *store.Run,
	c stage.Saved) (ident.Digest, error) {
	steps, err := recordedSteps(ctx, x.DB, parent.ID, int64(c.Step))
	if err != nil {
		return ident.Digest{}, err
	}
	if len(steps) != c.Step {
		return ident.Digest{}, fmt.Errorf("only %d of the %d steps before it are recorded", len(steps), c.Step)
	}
	theirs, ours := ident.ChainStart(parent.RID), ident.ChainStart(x.p.RID)
	var before map[string]float64
	for i := range steps {
		s := &steps[i]
		det, ok := store.ExactDet(s.Det, before, theirs, s.Chain)
		if !ok {
			return ident.Digest{}, fmt.Errorf("the chain of step %d does not follow from its record", s.Det.Step)
		}
		theirs, s.Det, before = s.Chain, det, det.Metrics
		if s.Chain, err = det.Next(ours); err != nil {
			return ident.Digest{}, err
		}
		ours = s.Chain
	}
	if theirs != c.Chain {
		return ident.Digest{}, fmt.Errorf("its chain is %s, but the recorded step has %s", c.Chain.Short(),
			theirs.Short())
	}
	start, err := scoresOf(ctx, x.DB, parent.ID, 0)
	if err != nil {
		return ident.Digest{}, err
	}
	if len(start) > 0 {
		if err := rec.writer.RecordScores(0, start); err != nil {
			return ident.Digest{}, err
		}
	}
	for _, s := range steps {
		if err := rec.writer.Record(s); err != nil {
			return ident.Digest{}, err
		}
	}
	return ours, rec.writer.Flush(ctx)
}

// checkParent compares a step with the same step of the run that this one extends.
func (r *stepRecord) checkParent(s stage.Step) error {
	if r.parent == nil || s.Det.Step > r.parent.Steps {
		return nil
	}
	ctx := context.Background()
	had, err := r.x.DB.Steps(ctx, r.parent.ID, s.Det.Step, s.Det.Step)
	if err != nil || len(had) == 0 {
		return err
	}
	// The last step of a run always has a digest of its parameters.
	if had[0].Det.Params.IsZero() || s.Det.Params.IsZero() {
		s.Det.Params = had[0].Det.Params
	}
	field, diverged, err := r.x.DB.CheckStep(ctx, r.parent.ID, &store.Step{Det: s.Det, Chain: s.Chain})
	if err != nil || field == "" {
		return err
	}
	return errors.Join(diverged, r.x.DB.AddDivergence(ctx, r.x.run.ID, r.x.attempt.ID, diverged))
}

// recordedSteps returns the first n steps of a run with their metrics, or fewer if
// fewer are recorded.
func recordedSteps(ctx context.Context, db *store.DB, run, n int64) ([]store.Step, error) {
	rows, err := db.Steps(ctx, run, 1, n)
	if err != nil {
		return nil, err
	}
	curves, err := db.Metrics(ctx, run, "", 1, n)
	if err != nil {
		return nil, err
	}
	steps := make([]store.Step, len(rows))
	byStep := make(map[int64]*store.Step, len(rows))
	for i, r := range rows {
		steps[i] = store.Step{Det: r.Det, Chain: r.Chain, Tokens: r.Tokens, Measured: map[string]float64{}}
		steps[i].Det.Metrics = map[string]float64{}
		byStep[r.Det.Step] = &steps[i]
	}
	for _, c := range curves {
		for i, step := range c.Steps {
			switch s := byStep[step]; {
			case s == nil:
			case c.Det:
				s.Det.Metrics[c.Name] = c.Values[i]
			default:
				s.Measured[c.Name] = c.Values[i]
			}
		}
	}
	return steps, nil
}

// scoresOf returns the recorded metrics of a step; those of step 0 are the scores of the weights that training started
// from.
func scoresOf(ctx context.Context, db *store.DB, run, step int64) (map[string]float64, error) {
	curves, err := db.Metrics(ctx, run, "", step, step)
	scores := map[string]float64{}
	for _, c := range curves {
		if len(c.Values) > 0 {
			scores[c.Name] = c.Values[0]
		}
	}
	return scores, err
}

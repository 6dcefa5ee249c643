package run

import (
	"context"
	"slices"

	"exp/experiments/store"
	"exp/harness/plan"
	"exp/harness/stage"
)

// StartScore returns pass@1, on the plan's first suite under its protocol, of the weights
// that a run's training started from; nil if they were not evaluated.
func StartScore(ctx context.Context, db *store.DB, p *plan.Run, run int64) (*float64, error) {
	_, value, err := scores(ctx, db, p, run, stage.StartSuffix)
	if v, ok := value["pass@1"]; ok {
		return &v, err
	}
	return nil, err
}

// scores returns a run's metrics on the plan's first suite under its protocol: of the
// trained weights, or of those before training with their suffix. A plan without suites has
// none, though the run may have been evaluated before.
func scores(ctx context.Context, db *store.DB, p *plan.Run, run int64, suffix string) (names []string,
	value map[string]float64, err error) {
	suites := p.Config.Run.Eval.Final.Suites
	if len(suites) == 0 {
		return nil, nil, nil
	}
	evals, err := db.Evals(ctx, run)
	if err != nil || len(evals) == 0 {
		return nil, nil, err
	}
	protocol, err := p.Protocol(suites[0])
	if err != nil {
		return nil, nil, err
	}
	suite := suiteName(p, suites[0]) + suffix
	value = map[string]float64{}
	for _, e := range evals {
		if e.SuiteName == suite && e.Protocol == protocol {
			names = append(names, e.Metric)
			value[e.Metric] = e.Value
		}
	}
	return names, value, nil
}

// OtherArms returns a run of each experiment, among the few newest finished runs, that learned the same task with
// another algorithm under another name, newest first.
func OtherArms(ctx context.Context, db *store.DB, run store.Run, few int) ([]store.Run, error) {
	runs, err := db.Runs(ctx, store.RunQuery{Status: store.Done, Limit: few})
	var others []store.Run
	for _, r := range runs {
		if r.Task == run.Task && r.Model == run.Model && r.Algo != run.Algo && r.Name != run.Name &&
			!slices.ContainsFunc(others, func(o store.Run) bool { return o.XID == r.XID }) {
			others = append(others, r)
		}
	}
	return others, err
}

package run

import (
	"context"
	"slices"
	"strings"

	"exp/experiments/store"
	"exp/harness/stage"
)

// StartScore returns pass@1, on the first suite, of the weights that a run's training
// started from; ok is false if they were not evaluated.
func StartScore(ctx context.Context, db *store.DB, run int64) (score float64, ok bool, err error) {
	evals, err := db.Evals(ctx, run)
	for _, e := range evals {
		if e.Metric == "pass@1" && strings.HasSuffix(e.SuiteName, stage.StartSuffix) {
			return e.Value, true, err
		}
	}
	return 0, false, err
}

// OtherArms returns the names of finished runs, among the few newest, that learned the
// same task with another algorithm, newest first.
func OtherArms(ctx context.Context, db *store.DB, run store.Run, few int) ([]string, error) {
	runs, err := db.Runs(ctx, store.RunQuery{Status: store.Done, Limit: few})
	var names []string
	for _, r := range runs {
		if r.Task == run.Task && r.Model == run.Model && r.Algo != run.Algo && r.Name != run.Name &&
			!slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return names, err
}

package compare

import (
	"fmt"
	"slices"

	"exp/experiments/store"
)

// FinishedArms returns the arms that have a finished run, and the indices of the others. If no arm has one, all are
// kept: Compare says why they do not count.
func FinishedArms(arms []Arm) (kept []Arm, left []int) {
	for i, a := range arms {
		if slices.ContainsFunc(a.Runs, finished) {
			kept = append(kept, a)
		} else {
			left = append(left, i)
		}
	}
	if len(kept) == 0 {
		return arms, nil
	}
	return kept, left
}

// FinishedRuns returns an arm without its unfinished runs, and these, except for named ones. An arm without a finished
// run keeps all.
func FinishedRuns(a Arm, named func(store.Run) bool) (kept Arm, left []store.Run) {
	if !slices.ContainsFunc(a.Runs, finished) {
		return a, nil
	}
	kept.Label = a.Label
	for _, r := range a.Runs {
		if finished(r) || named(r) {
			kept.Runs = append(kept.Runs, r)
		} else {
			left = append(left, r)
		}
	}
	return kept, left
}

func finished(r store.Run) bool { return r.Status == store.Done }

// Standing says how far an unfinished run came: "stopped at step 1 of 4".
func Standing(r store.Run) string {
	if r.Steps < r.StepsTotal {
		return fmt.Sprintf("%s at step %d of %d", r.Status, r.Steps, r.StepsTotal)
	}
	return string(r.Status)
}

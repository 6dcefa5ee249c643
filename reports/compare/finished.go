package compare

import (
	"fmt"
	"slices"

	"exp/experiments/quantity"
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

// Finished leaves out the arms that a selection need not mean: a single one of several experiments, such as a name,
// need not mean the ones without a finished run. The arm of Vs stays. left says which arms are left out, and why.
func (s Selection) Finished(arms []Arm) (kept []Arm, left []string) {
	if len(s.Runs) > 1 && s.By == "" {
		return arms, nil // each has been named
	}
	labels := Labels(arms)
	var against []Arm
	if n := len(arms); s.Vs != "" {
		arms, against = arms[:n-1], arms[n-1:]
	}
	kept, out := FinishedArms(arms)
	for _, i := range out {
		var list []string
		for _, r := range arms[i].Runs {
			list = append(list, fmt.Sprintf("run %s (seed %d) is %s", r.RID.Short(), r.Seed, Standing(r)))
		}
		left = append(left, fmt.Sprintf("%s, which has no finished run: %s", labels[i], quantity.AtMost(list, 3)))
	}
	return slices.Concat(kept, against), left
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

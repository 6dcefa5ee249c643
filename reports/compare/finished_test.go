package compare

import (
	"fmt"
	"slices"
	"testing"

	"exp/experiments/store"
)

func TestFinished(t *testing.T) {
	arm := func(states ...store.Status) (a Arm) {
		for i, s := range states {
			a.Runs = append(a.Runs, store.Run{ID: int64(i), Status: s, Steps: 1, StepsTotal: 4})
		}
		return a
	}
	arms := []Arm{arm(store.Running), arm(store.Failed, store.Done), arm(store.Pending, store.Stopped), arm(store.Done)}
	kept, left := FinishedArms(arms)
	if len(kept) != 2 || len(kept[0].Runs) != 2 || !slices.Equal(left, []int{0, 2}) {
		t.Errorf("kept %v, left %v", kept, left)
	}
	if kept, left := FinishedArms(arms[:1]); len(kept) != 1 || left != nil {
		t.Errorf("no arm is finished: kept %v, left %v", kept, left)
	}
	all := arm(store.Interrupted, store.Done, store.Failed)
	all.Label = "x"
	one, out := FinishedRuns(all, func(r store.Run) bool { return r.ID == 2 }) // the failed one is named
	if one.Label != "x" || len(one.Runs) != 2 || one.Runs[1].ID != 2 || len(out) != 1 || out[0].ID != 0 {
		t.Errorf("kept %v, left %v", one, out)
	}
	if one, out := FinishedRuns(arms[2], func(store.Run) bool { return false }); len(one.Runs) != 2 || out != nil {
		t.Errorf("none is finished: kept %v, left %v", one, out)
	}
	if got := fmt.Sprint(Standing(arms[0].Runs[0]), ", ", Standing(store.Run{Status: store.Failed})); got != "running at step 1 of 4, failed" {
		t.Error(got)
	}
}

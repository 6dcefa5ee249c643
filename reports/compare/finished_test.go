package compare

import (
	"fmt"
	"slices"
	"strings"
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
	one := Selection{Runs: []string{"a name"}}
	if kept, left := one.Finished(arms[:3]); len(kept) != 1 || len(left) != 2 || !strings.Contains(left[0], "(seed 0) is running at step 1 of 4") {
		t.Errorf("of a name: kept %v, left %q", kept, left)
	}
	one.Vs = "another"
	if kept, left := one.Finished(arms[:3]); len(kept) != 2 || len(kept[1].Runs) != 2 || kept[1].Runs[0].Status != store.Pending || len(left) != 1 {
		t.Errorf("against an arm: kept %v, left %q", kept, left)
	}
	for _, named := range []Selection{{Runs: []string{"a", "b"}}, {Runs: []string{"a", "b"}, By: "algo"}} {
		if kept, left := named.Finished(arms); len(kept) == 4 != (named.By == "") || len(left) == 0 != (named.By == "") {
			t.Errorf("%+v: kept %v, left %q", named, kept, left)
		}
	}
	all := arm(store.Interrupted, store.Done, store.Failed)
	all.Label = "x"
	done, out := FinishedRuns(all, func(r store.Run) bool { return r.ID == 2 }) // the failed one is named
	if done.Label != "x" || len(done.Runs) != 2 || done.Runs[1].ID != 2 || len(out) != 1 || out[0].ID != 0 {
		t.Errorf("kept %v, left %v", done, out)
	}
	if none, out := FinishedRuns(arms[2], func(store.Run) bool { return false }); len(none.Runs) != 2 || out != nil {
		t.Errorf("none is finished: kept %v, left %v", none, out)
	}
	if got := fmt.Sprint(Standing(arms[0].Runs[0]), ", ", Standing(store.Run{Status: store.Failed})); got != "running at step 1 of 4, failed" {
		t.Error(got)
	}
}

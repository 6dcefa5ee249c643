package reports

import (
	"errors"
	"slices"
	"testing"

	"exp/experiments/store"
)

// A run of several kinds of problems has curves of those that it recorded; reports of others do not say that they lack
// them.
func TestKindCurves(t *testing.T) {
	curve := func(values ...float64) store.Curve {
		return store.Curve{Series: store.Series{N: 3}, Steps: []int64{1, 2, 3}, Values: values}
	}
	r := &run{curves: map[string]store.Curve{"train/accuracy/math": curve(0.1, 0.2, 0.4),
		"train/score/math": curve(0.1, 0.2, 0.4), "val/pass@1/code": curve(0.5, 0.4, 0.6),
		"train/score/prompts": curve(-1, 0, 2)}}
	var drawn []string
	for _, d := range curveDrawings([]*arm{{label: "arm", Runs: []*run{r}}}) {
		var never notTheirs
		var same *sameAs
		switch {
		case d.group != groupKinds:
		case d.reason == nil:
			drawn = append(drawn, d.name)
		case errors.As(d.reason, &same):
			drawn = append(drawn, "equal: "+d.name)
		case !errors.As(d.reason, &never):
			t.Errorf("%s is missed: %v", d.name, d.reason)
		}
	}
	// With verdicts as rewards of 1 and 0 the reward is the accuracy.
	if want := []string{"train-accuracy-math", "equal: train-score-math", "accuracy-code", "train-score-prompts"}; !slices.Equal(drawn, want) {
		t.Errorf("drawn: %q, want %q", drawn, want)
	}
	f := curveKind{Name: "x", Metric: "train/accuracy/math", Group: groupKinds}.curve([]*arm{{label: "arm", Runs: []*run{r}}})
	if f.Title != "Accuracy on problems of kind math" || f.Y.Label != "accuracy" {
		t.Errorf("figure %q of %q", f.Title, f.Y.Label)
	}
}

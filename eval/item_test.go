package eval

import (
	"testing"

	"exp/train/rollout"
)

// The reward judges all problems of a run of one kind, and the problems of its own kind in a run of several.
func TestJudged(t *testing.T) {
	for _, tt := range []struct {
		kind string // of the problem
		want bool
	}{{"", true}, {"prompts", true}, {"math", false}} {
		items := []Item{{ProblemID: "a"}}
		Judged(items, []rollout.Problem{{ID: "a", Kind: tt.kind}}, "prompts")
		if items[0].Judged != tt.want {
			t.Errorf("of kind %q: %t", tt.kind, items[0].Judged)
		}
	}
}

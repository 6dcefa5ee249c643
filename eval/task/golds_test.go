package task

import (
	"testing"

	"exp/train/rollout"
)

func TestUnreadGolds(t *testing.T) {
	list, err := UnreadGolds([]rollout.Problem{{ID: "a", Answer: "12"}, {ID: "b", Answer: "\\frac{1}{"}, {ID: "c", Answer: "12 squared"}})
	if err != nil || len(list) != 2 || list[0].ID != "b" || list[1].ID != "c" || list[1].Err == nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestReadsTurns(t *testing.T) {
	for name, want := range map[string]bool{"exp": true, "exp_strict": true, "instructions": true, "ifeval": true,
		"ifeval_loose": true, "math_dapo": false, "countdown": false, "code": false, "verl": false} {
		if got := ReadsTurns(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

package stage

import (
	"strings"
	"testing"

	"exp/eval/task"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/train/rollout"
)

// TestCheckGolds: prepare counts the gold answers that our grader does not understand, and says which; a peer's
// grader reads them in its own way.
func TestCheckGolds(t *testing.T) {
	problems := []rollout.Problem{{ID: "a", Answer: "12"}, {ID: "b", Answer: "12 squared"}}
	for grader, want := range map[string]int{"exp": 1, "exp_strict": 1, "math_dapo": 0} {
		var events []string
		e := &Env{Config: &config.Resolved{Run: config.Run{Task: config.Task{Kind: "math", Math: config.Math{Grader: grader}}}},
			Hooks: Hooks{Event: func(kind, text string) { events = append(events, kind+": "+text) }}}
		n, err := e.checkGolds(dataset.Split{Name: task.Train}, problems)
		if err != nil || n != want || len(events) != want {
			t.Errorf("%s: %d, %v, %q", grader, n, err, events)
		}
		if want == 1 && !strings.Contains(events[0], `unread-golds: data.train: the grader does not understand 1 of 2 gold answers; b: "12 squared"`) {
			t.Errorf("%s: %q", grader, events)
		}
	}
}

// Columns are kept for reward.command, which grades nothing but training: validation and test files
// may lack them, and the digests of their problems do not depend on data.keep.
func TestKeepsColumnsOfTraining(t *testing.T) {
	c := &config.Run{Data: config.Data{Keep: []string{"extra_info"}}}
	for _, s := range dataset.Splits(c) {
		if kept := s.Source.Keep != nil; kept != (s.Role == RoleTrain) {
			t.Errorf("%s: %t", s.Role, kept)
		}
	}
}

package stage

import (
	"testing"

	"exp/harness/config"
	"exp/train/ranks"
	"exp/train/reward"
	"exp/train/rollout"
)

// Where the completions themselves give the reward every rank grades its share, as with the task's own reward: a
// grader of batches would leave all of it to the rank that judges.
func TestRanksGradeVotes(t *testing.T) {
	for kind, together := range map[string]bool{"task": false, config.Majority: false, config.Confidence: false, "command": true} {
		for _, g := range ranks.InProcess(2) {
			c := &config.Run{Reward: config.Reward{Kind: kind, Command: []string{"true"}, Workers: 1, Batch: 1, RowLimit: 1, BatchLimit: 1}}
			c.Task.Kind = "words"
			e := &Env{Config: &config.Resolved{Run: *c}, Ranks: g}
			got, end, err := e.newReward(plainGrader{})
			if err != nil {
				t.Fatal(err)
			}
			if _, batch := got.(rollout.BatchGrader); batch != together {
				t.Errorf("%s on rank %d: a grader of batches is %t, want %t", kind, g.Rank(), batch, together)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	}
}

// plainGrader grades nothing.
type plainGrader struct{ rollout.Grader }

// In a mixed task with prompts every rank has a grader of batches, and only one of them the reward.
func TestRanksGradeMixed(t *testing.T) {
	for _, g := range ranks.InProcess(2) {
		c := config.Run{Reward: config.Reward{Kind: "command", Command: []string{"true"}, Workers: 1, Batch: 1, RowLimit: 1,
			BatchLimit: 1, Components: []string{"correct"}}}
		c.Task = config.Task{Kind: config.MixedTask, Mixed: config.Mixed{Kinds: map[string]any{"a": "prompts", "b": "math"}}}
		e := &Env{Config: &config.Resolved{Run: c}, Ranks: g}
		got, end, err := e.newReward(plainGrader{})
		if err != nil {
			t.Fatal(err)
		}
		_, batch := got.(rollout.BatchGrader)
		_, routes := got.(*reward.Mixed)
		if names := rollout.ComponentNames(got); !batch || routes != (g.Rank() == 0) || len(names) != 1 {
			t.Errorf("rank %d: %T with parts %q", g.Rank(), got, names)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

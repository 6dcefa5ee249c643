package stage

import (
	"testing"

	"exp/harness/config"
	"exp/train/ranks"
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

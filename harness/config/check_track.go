package config

import (
	"fmt"

	"exp/train/rl"
)

// trackChecks checks what estimators of tracked values work with.
func trackChecks() []check {
	tracks := func(r *Run) bool {
		e, _ := rl.EstimatorNamed(r.Algo.Advantage)
		return e.Tracks
	}
	return []check{
		{[]string{"rollout.n", "algo.advantage"}, func(r *Run) (string, string) {
			if tracks(r) && r.Rollout.N != 1 {
				return fmt.Sprintf("rollout.n is %d, but %s compares the one completion of a problem with the "+
						"problem's tracked value", r.Rollout.N, r.Algo.Advantage),
					"rollout.n: 1, and more problems in a step"
			}
			return "", ""
		}},
		{[]string{"rollout.source", "algo.advantage"}, func(r *Run) (string, string) {
			if tracks(r) && r.Rollout.Source == "recorded" {
				return "rollout.source is recorded, but " + r.Algo.Advantage + " chooses the problems of a step, " +
					"and needs completions of the policy itself", "rollout.source: policy, or another algo.advantage"
			}
			return "", ""
		}},
		{[]string{"data.order", "algo.advantage"}, func(r *Run) (string, string) {
			if tracks(r) && r.Data.Order == "sequential" {
				return "data.order sequential has no effect: " + r.Algo.Advantage + " draws problems by their " +
					"tracked values", "leave data.order out"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "algo.advantage"}, func(r *Run) (string, string) {
			if tracks(r) && r.Reward.Self() {
				return "reward.kind " + r.Reward.Kind + " compares completions of a problem or is below 0, but " +
					r.Algo.Advantage + " tracks one completion's reward from 0 to 1", "another reward.kind"
			}
			return "", ""
		}},
		{[]string{"reward.correct", "reward.wrong", "reward.format", "algo.advantage"}, func(r *Run) (string, string) {
			w := r.Reward
			if tracks(r) && (min(w.Correct, w.Wrong, w.Format) < 0 || max(w.Correct, w.Wrong, w.Format) > 1) {
				return fmt.Sprintf("rewards are %s (right), %s (wrong) and %s (of the right format), but %s tracks "+
					"rewards from 0 to 1", formatFloat(w.Correct), formatFloat(w.Wrong), formatFloat(w.Format),
					r.Algo.Advantage), "reward.correct: 1, reward.wrong: 0"
			}
			return "", ""
		}},
	}
}

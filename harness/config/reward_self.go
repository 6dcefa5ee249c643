package config

import (
	"fmt"
	"slices"
)

func majorityReward() rewardKind {
	return rewardKind{name: Majority,
		about: "reward.correct for the answer that most completions of the problem have, else\n" +
			"reward.format, or reward.wrong without an answer: TTRL (arXiv:2504.16084 §2).\n" +
			"Answers are compared by the task's grader, without the gold answer; on a tie\n" +
			"the first one wins",
		self: true, blind: true, pays: []string{"correct", "wrong", "format"}, checks: majorityChecks}
}

func confidenceReward() rewardKind {
	return rewardKind{name: Confidence,
		about: "-entropy in nats, mean over the completion's tokens: RENT (arXiv:2505.22660)",
		self:  true, blind: true, checks: confidenceChecks}
}

func majorityChecks() []check {
	return []check{
		{[]string{"reward.kind", "task.kind"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Majority && !r.JudgesAlone() && !slices.Contains(oneAnswer(), r.Task.Kind) {
				return "reward.kind majority compares answers, but those of task " + r.Task.Kind +
					" are not values", "use it with task " + either(oneAnswer())
			}
			return "", ""
		}},
		{[]string{"reward.kind", "rollout.n"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Majority && r.Rollout.N < 3 {
				return fmt.Sprintf("rollout.n is %d, but reward.kind majority counts the answers of a problem's "+
					"completions", r.Rollout.N), "rollout.n: 3 or more; TTRL takes 32 of 64"
			}
			return "", ""
		}},
	}
}

func confidenceChecks() []check {
	return []check{
		{[]string{"reward.kind", "rollout.source"}, func(r *Run) (string, string) {
			if r.Reward.Kind == Confidence && r.Rollout.Source == "recorded" {
				return "reward.kind confidence needs entropies, which recorded rollouts do not have",
					"rollout.source: policy, or reward.kind: majority"
			}
			return "", ""
		}},
	}
}

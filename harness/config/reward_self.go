package config

func majorityReward() rewardKind {
	return rewardKind{name: Majority,
		about: "reward.correct for the answer that most completions of the problem have, else\n" +
			"reward.format, or reward.wrong without an answer: TTRL (arXiv:2504.16084 §2).\n" +
			"Answers are compared by the task's grader, without the gold answer; on a tie\n" +
			"the first one wins",
		self: true, blind: true, votes: true, pays: []string{"correct", "wrong", "format"}}
}

func confidenceReward() rewardKind {
	return rewardKind{name: Confidence,
		about: "-entropy in nats, mean over the completion's tokens: RENT (arXiv:2505.22660)",
		self:  true, blind: true, checks: confidenceChecks}
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

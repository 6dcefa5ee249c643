package metric

import "exp/eval"

// likelihoods describes rewards by the likelihood of reference answers.
func likelihoods() []Metric {
	const only = "only reward.kind likelihood measures it"
	return []Metric{
		{Name: "reward/likelihood", Title: "Likelihood of reference answers", Heading: "likely",
			Direction: eval.Up, Absent: only, Axis: Axis{Label: "likelihood of the reference answer"},
			Definition: "reward.likelihood.measure of the reference answer after a completion's reasoning, mean " +
				"over completions with a place for it, before any baseline"},
		{Name: "reward/likelihood_right", Title: "Likelihood after right completions", Absent: only,
			Axis:       Axis{Label: "likelihood of the reference answer"},
			Definition: "reward/likelihood of completions whose own answer is right"},
		{Name: "reward/likelihood_wrong", Title: "Likelihood after wrong completions", Absent: only,
			Axis:       Axis{Label: "likelihood of the reference answer"},
			Definition: "reward/likelihood of completions whose own answer is wrong"},
		{Name: "reward/likelihood_baseline", Title: "Likelihood without reasoning",
			Absent: "only reward.likelihood.baseline measures it",
			Axis:   Axis{Label: "likelihood of the reference answer"},
			Definition: "reward.likelihood.measure of the reference answer as a whole completion, mean over the " +
				"step's problems"},
		{Name: "reward/placed", Unit: Share, Per: "completions", Title: "Completions with a place for an answer",
			Heading: "placed", Direction: eval.Up, Absent: only,
			Axis: Axis{Label: "with a place for an answer", Zero: true},
			Definition: "share of graded completions in which the reference answer has a place and ends within " +
				"rollout.max_new_tokens; the others get reward.wrong"},
		{Name: "actor/answer_likelihood", Title: "Likelihood of answers in the objective",
			Absent: "only reward.likelihood.learn adds it to the objective",
			Axis:   Axis{Label: "likelihood of the reference answer"},
			Definition: "reward.likelihood.measure of the answers of a mini-batch under the current policy, summed " +
				"and divided by its completions, before its coefficient reward.likelihood.learn"},
		{Name: "actor/sft_loss", Unit: Nats, Per: "token", Title: "Loss of right completions", Direction: eval.Down,
			Absent: "only algo.sft_weight adds it to the loss, and only a mini-batch with a right completion has it",
			Definition: "negative log-prob of the tokens of a mini-batch's right completions under the current " +
				"policy, mean over these tokens, before its coefficient algo.sft_weight"},
		{Name: "actor/demonstration_prob", Title: "Probability of demonstrations", Direction: eval.Up,
			Absent: "only algo.demonstrations has them, and only a mini-batch with one measures it",
			Axis:   Axis{Label: "probability of a demonstration's token"},
			Definition: "probability of the tokens of a mini-batch's demonstrations under the current policy, mean " +
				"over these tokens"},
		{Name: "actor/demonstration_loss", Title: "Loss of demonstrations",
			Absent: "only algo.demonstrations adds it to the loss, and only a mini-batch with one has it",
			Definition: "the part of demonstrations in the policy loss: -advantage·p/(p + " +
				"algo.demonstrations.shaping) of their tokens, combined as algo.aggregation says, times " +
				"algo.demonstrations.weight"},
	}
}

package metric

import "exp/eval"

// preferences describes learning from preferences before reinforcement learning.
func preferences() []Metric {
	const only = "only learning from preferences has it (prefer.steps)"
	return []Metric{
		{Name: "prefer/loss", Unit: Nats, Per: "pair", Title: "Loss of preferences", Heading: "loss",
			Direction: eval.Down, Absent: only, Shown: OnProgress, Axis: Axis{Label: "loss"},
			Definition: "loss of a pair, mean over the step's pairs, plus prefer.sft_weight times prefer/nll; with " +
				"kto of an answer, mean over the step's answers"},
		{Name: "prefer/accuracy", Unit: "fraction", Title: "Accuracy of preferences", Heading: "accuracy",
			Direction: eval.Up, Absent: "only learning from pairs has it (prefer.steps)", Shown: OnProgress,
			Axis: Axis{Label: "accuracy"},
			Definition: "share of the step's pairs whose chosen answer has the greater reward (TRL: " +
				"rewards/accuracies)"},
		{Name: "prefer/margin", Title: "Margin of preferences", Heading: "margin", Absent: only, Shown: OnProgress,
			Axis: Axis{Label: "margin"},
			Definition: "reward of the chosen answer minus the rejected one's, mean over pairs; with kto the " +
				"difference of prefer/reward_chosen and prefer/reward_rejected, in steps that have both (TRL: " +
				"rewards/margins)"},
		{Name: "prefer/reward_chosen", Title: "Reward of chosen answers", Absent: only, Axis: Axis{Label: "reward"},
			Definition: "prefer.beta times the answer's log-ratio to the reference, mean over pairs; with kto over " +
				"good answers, in steps that have some (TRL: rewards/chosen)"},
		{Name: "prefer/reward_rejected", Title: "Reward of rejected answers", Absent: only,
			Axis:       Axis{Label: "reward"},
			Definition: "the same of rejected answers; with kto of bad ones (TRL: rewards/rejected)"},
		{Name: "prefer/log_prob_chosen", Unit: Nats, Per: "answer", Title: "Log-prob of chosen answers", Absent: only,
			Axis: Axis{Label: "log-prob"},
			Definition: "log-prob of an answer's learned tokens, summed, mean over pairs; with kto over good " +
				"answers (TRL: logps/chosen)"},
		{Name: "prefer/log_prob_rejected", Unit: Nats, Per: "answer", Title: "Log-prob of rejected answers",
			Absent: only, Axis: Axis{Label: "log-prob"},
			Definition: "the same of rejected answers; with kto of bad ones (TRL: logps/rejected)"},
		{Name: "prefer/kl", Unit: Nats, Per: "answer", Title: "KL divergence in KTO", Heading: "kl",
			Absent: "only with prefer.loss: kto", Axis: Axis{Label: "KL divergence", Zero: true},
			Definition: "log-ratio of the step's answers under prompts of others to the reference, mean over them, " +
				"and at least 0: what KTO compares an answer's log-ratio with (TRL: kl)"},
		{Name: "prefer/nll", Unit: Nats, Per: "token", Title: "Negative log-prob of chosen answers",
			Direction: eval.Down, Absent: "only with prefer.sft_weight above 0, as in orpo",
			Axis:       Axis{Label: "negative log-prob"},
			Definition: "negative log-prob of a chosen answer's learned token, mean over the step's (TRL: nll_loss)"},
		{Name: "prefer/log_odds", Unit: Nats, Per: "pair", Title: "Log odds ratio of preferences",
			Absent: "only with prefer.loss: orpo", Axis: Axis{Label: "log odds ratio"},
			Definition: "log of the odds of the chosen answer over the odds of the rejected one, mean over pairs; " +
				"odds are p/(1-p), p the geometric mean of an answer's probabilities (TRL: log_odds_chosen)"},
		{Name: "prefer/odds_loss", Unit: Nats, Per: "pair", Title: "Odds ratio loss of preferences",
			Direction: eval.Down, Absent: "only with prefer.loss: orpo", Axis: Axis{Label: "loss"},
			Definition: "-log sigmoid of a pair's log odds ratio, mean over pairs; prefer/loss has prefer.beta " +
				"times it (TRL: log_odds_ratio, negative)"},
		{Name: "prefer/entropy", Unit: Nats, Per: "token", Title: "Policy entropy on preferences", Absent: only,
			Axis:       Axis{Label: "entropy"},
			Definition: "entropy of the next-token distribution at both answers' tokens, mean over the step's"},
		{Name: "prefer/grad_norm", Title: "Gradient norm on preferences", Heading: "grad", Absent: only,
			Shown: OnProgress, Axis: Axis{Label: "gradient norm", Zero: true},
			Definition: "L2 norm of the gradient before clipping"},
		{Name: "prefer/lr", Title: "Learning rate on preferences", Absent: only, Axis: Axis{Label: "learning rate",
			Log: true},
			Definition: "learning rate of the optimizer in the step"},
		{Name: "prefer/epoch", Unit: "epochs", Title: "Epoch of preferences", Absent: only,
			Definition: "passes over the pairs completed before the step's pass"},
	}
}

package metric

import "exp/eval"

// rewardModels describes training a reward model before reinforcement learning.
func rewardModels() []Metric {
	const only = "only training of a reward model has it (reward_model.steps)"
	list := []Metric{
		{Name: "rm/loss", Unit: Nats, Per: "pair", Title: "Loss of the reward model", Heading: "loss",
			Direction: eval.Down, Shown: OnProgress, Axis: Axis{Label: "loss"},
			Definition: "negative log-probability that the chosen answer is the better one, with the term of " +
				"reward_model.center, mean over the step's pairs"},
		{Name: "rm/accuracy", Unit: "fraction", Title: "Accuracy of the reward model", Heading: "accuracy",
			Direction: eval.Up, Shown: OnProgress, Axis: Axis{Label: "accuracy"},
			Definition: "share of the step's pairs whose chosen answer has the greater reward (TRL: accuracy)"},
		{Name: "rm/margin", Title: "Margin of the reward model", Heading: "margin", Shown: OnProgress,
			Axis:       Axis{Label: "margin"},
			Definition: "reward of the chosen answer minus the rejected one's, mean over pairs (TRL: margin)"},
		{Name: "rm/reward_chosen", Title: "Reward of chosen answers", Axis: Axis{Label: "reward"},
			Definition: "score of a chosen answer's last token, mean over pairs"},
		{Name: "rm/reward_rejected", Title: "Reward of rejected answers", Axis: Axis{Label: "reward"},
			Definition: "the same of rejected answers"},
		{Name: "rm/reward_min", Title: "Least reward", Axis: Axis{Label: "reward"},
			Definition: "least reward of a step's answers (TRL: min_reward)"},
		{Name: "rm/reward_mean", Title: "Mean reward", Axis: Axis{Label: "reward"},
			Definition: "mean reward of a step's answers (TRL: mean_reward)"},
		{Name: "rm/reward_max", Title: "Greatest reward", Axis: Axis{Label: "reward"},
			Definition: "greatest reward of a step's answers (TRL: max_reward)"},
		{Name: "rm/grad_norm", Title: "Gradient norm of the reward model", Heading: "grad", Shown: OnProgress,
			Axis: Axis{Label: "gradient norm", Zero: true}, Definition: "L2 norm of the gradient before clipping"},
		{Name: "rm/lr", Title: "Learning rate of the reward model", Axis: Axis{Label: "learning rate", Log: true},
			Definition: "learning rate of the optimizer in the step"},
		{Name: "rm/epoch", Unit: "epochs", Title: "Epoch of a reward model's pairs",
			Definition: "passes over the pairs completed before the step's pass"},
	}
	for i := range list {
		list[i].Absent = only
	}
	return append(append(list, heldOutPairs()...), steps()...)
}

// steps describes training a reward model on labelled steps.
func steps() []Metric {
	list := []Metric{
		{Name: "rm/step_loss", Unit: Nats, Per: "step", Title: "Loss of the process reward model", Heading: "loss",
			Direction: eval.Down, Shown: OnProgress, Axis: Axis{Label: "loss"},
			Definition: "negative log-probability of a step's label by the score at its end, mean over the labelled " +
				"steps of an update's answers"},
		{Name: "rm/step_accuracy", Unit: "fraction", Title: "Accuracy of the process reward model",
			Heading: "accuracy", Direction: eval.Up, Shown: OnProgress, Axis: Axis{Label: "accuracy"},
			Definition: "share of labelled steps that are right with a positive score, or wrong without (TRL: " +
				"accuracy)"},
		{Name: "rm/steps_right", Unit: "fraction", Title: "Right steps", Axis: Axis{Label: "right steps"},
			Definition: "share of labelled steps that are right; always saying so has this accuracy"},
		{Name: "rm/score_right", Title: "Score of right steps", Axis: Axis{Label: "score"},
			Definition: "score of a right step, a logit, mean over steps"},
		{Name: "rm/score_wrong", Title: "Score of wrong steps", Axis: Axis{Label: "score"},
			Definition: "score of a wrong step, a logit, mean over steps"},
	}
	held := []Metric{
		{Name: "rm/val_step_loss", Unit: Nats, Per: "step", Title: "Loss on held-out steps", Direction: eval.Down,
			Axis: Axis{Label: "loss"}, Definition: "rm/step_loss on the answers of reward_model.val"},
		{Name: "rm/val_step_accuracy", Unit: "fraction", Title: "Accuracy on held-out steps", Heading: "held out",
			Direction: eval.Up, Shown: OnProgress, Axis: Axis{Label: "accuracy"},
			Definition: "rm/step_accuracy on the answers of reward_model.val"},
		{Name: "rm/val_steps_right", Unit: "fraction", Title: "Right held-out steps", Axis: Axis{Label: "right steps"},
			Definition: "share of the labelled steps of reward_model.val that are right"},
	}
	for i := range list {
		list[i].Absent = "only training of a reward model on steps has it (reward_model.kind: steps)"
	}
	for i := range held {
		held[i].Absent = "only validations on steps have it (reward_model.kind: steps, val, val_every)"
	}
	return append(list, held...)
}

// heldOutPairs describes validations of a reward model.
func heldOutPairs() []Metric {
	list := []Metric{
		{Name: "rm/val_loss", Unit: Nats, Per: "pair", Title: "Loss on held-out pairs", Direction: eval.Down,
			Axis: Axis{Label: "loss"}, Definition: "rm/loss on the pairs of reward_model.val"},
		{Name: "rm/val_accuracy", Unit: "fraction", Title: "Accuracy on held-out pairs", Heading: "held out",
			Direction: eval.Up, Shown: OnProgress, Axis: Axis{Label: "accuracy"},
			Definition: "share of the pairs of reward_model.val whose chosen answer has the greater reward"},
		{Name: "rm/val_margin", Title: "Margin on held-out pairs", Axis: Axis{Label: "margin"},
			Definition: "rm/margin on the pairs of reward_model.val"},
		{Name: "rm/val_reward_mean", Title: "Mean reward of held-out answers", Axis: Axis{Label: "reward"},
			Definition: "mean reward of both answers of the pairs of reward_model.val"},
		{Name: "rm/val_reward_std", Title: "Spread of held-out rewards", Axis: Axis{Label: "reward", Zero: true},
			Definition: "standard deviation of these rewards"},
	}
	for i := range list {
		list[i].Absent = "only validations have it (reward_model.val, val_every)"
	}
	return list
}

package metric

import (
	"slices"

	"exp/eval"
)

// onlyCritic explains why critic metrics may be absent.
const onlyCritic = "only algorithms with a critic have it (ppo, vc_ppo, vapo, pf_ppo)"

// lowestVariance is where the axis of explained variance begins; an untrained critic is
// far below.
var lowestVariance = -1.0

// critic describes the critic and its updates, under verl's names.
func critic() []Metric {
	list := []Metric{
		{Name: "critic/vf_loss", Title: "Value loss", Heading: "vf loss", Direction: eval.Down, Absent: onlyCritic,
			Shown: OverSteps, Axis: Axis{Label: "loss", Zero: true},
			Definition: "half the clipped squared error of the critic's values, aggregated as algo.aggregation " +
				"says"},
		{Name: "critic/vf_explained_var", Title: "Explained variance of the critic", Heading: "expl var",
			Direction: eval.Up, Absent: onlyCritic,
			Shown: OnProgress | OverSteps, Axis: Axis{Label: "explained variance", Least: &lowestVariance},
			Definition: "1 − Var(return − value) / (Var(return) + 1e-5) over the batch's tokens: 1 for a " +
				"perfect critic, 0 for one that knows the mean only"},
		{Name: "critic/vf_clipfrac", Unit: Share, Per: "tokens", Title: "Clipped values", Absent: onlyCritic,
			Axis:       Axis{Label: "clipped", Zero: true},
			Definition: "share of tokens whose value's change was clipped in the critic's loss"},
		{Name: "critic/vpred_mean", Unit: Reward, Title: "Value while the critic is updated", Absent: onlyCritic,
			Definition: "the critic's value of a token while the step's updates are made, mean over tokens"},
	}
	values := extent(Metric{Name: "critic/values", Unit: Reward, Title: "Value", Absent: onlyCritic,
		Definition: "the critic's estimate of the return from a token on, before the step's updates"}, "the "+
		"batch's tokens that count")
	return slices.Concat(list, values, []Metric{
		{Name: "critic/grad_norm", Title: "Gradient norm of the critic", Absent: onlyCritic,
			Axis:       Axis{Label: "gradient norm", Zero: true},
			Definition: "L2 norm of the critic's gradient before clipping, mean over the step's updates"},
		{Name: "critic/lr", Title: "Learning rate of the critic", Absent: onlyCritic,
			Axis:       Axis{Label: "learning rate", Log: true},
			Definition: "learning rate of the critic's optimizer in the step"},
	})
}

// fineTuning describes supervised fine-tuning before reinforcement learning.
func fineTuning() []Metric {
	const only = "only supervised fine-tuning has it (sft.steps)"
	return []Metric{
		{Name: "sft/loss", Unit: Nats, Per: "token", Title: "Loss of fine-tuning", Heading: "loss",
			Direction: eval.Down, Absent: only, Shown: OnProgress, Axis: Axis{Label: "loss"},
			Definition: "negative log-prob of a target's token, mean over the step's tokens"},
		{Name: "sft/entropy", Unit: Nats, Per: "token", Title: "Policy entropy while fine-tuning",
			Heading: "entropy", Absent: only, Shown: OnProgress, Axis: Axis{Label: "entropy"},
			Definition: "entropy of the next-token distribution at the targets' tokens, mean over the step's " +
				"tokens"},
		{Name: "sft/grad_norm", Title: "Gradient norm of fine-tuning", Heading: "grad", Absent: only,
			Shown: OnProgress, Axis: Axis{Label: "gradient norm", Zero: true},
			Definition: "L2 norm of the gradient before clipping"},
		{Name: "sft/lr", Title: "Learning rate of fine-tuning", Absent: only, Axis: Axis{Label: "learning rate",
			Log: true},
			Definition: "learning rate of the optimizer in the step"},
		{Name: "sft/epoch", Unit: "epochs", Title: "Epoch of fine-tuning", Absent: only,
			Definition: "passes over the examples completed before the step's pass"},
	}
}

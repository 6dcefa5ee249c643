package metric

import (
	"slices"

	"exp/eval"
)

// onlyPrime explains why metrics of the process reward model may be absent.
const onlyPrime = "only runs with a process reward model have it (prime)"

// process describes the process reward model of PRIME and its updates, under verl's names.
func process() []Metric {
	accuracy := func(suffix, when string) []Metric {
		return []Metric{
			{Name: "reward_model/dpo_acc" + suffix, Unit: Share, Per: "pairs", Direction: eval.Up,
				Title: "Right order by process rewards" + when,
				Absent: "only runs with a process reward model have it (prime), in steps with a problem that has " +
					"right and wrong completions",
				Axis: Axis{Label: "right order", Zero: true},
				Definition: "share of the pairs of a right and a wrong completion of a problem in which the right " +
					"one has the greater sum of process rewards" + when + ", ties counting half; mean over problems " +
					"with such pairs"},
			{Name: "reward_model/dpo_acc_abs" + suffix, Unit: Share, Per: "completions", Direction: eval.Up,
				Title: "Right sign of process rewards" + when, Absent: onlyPrime,
				Axis: Axis{Label: "right sign", Zero: true},
				Definition: "share of completions whose sum of process rewards" + when + " is above 0 if they are " +
					"right, below 0 if they are wrong, 0 counting half"},
		}
	}
	now := accuracy("", "")
	now[0].Heading, now[0].Shown = "prm acc", OnProgress|OverSteps
	return slices.Concat([]Metric{
		{Name: "reward_model/dpo_loss", Title: "Loss of the process reward model", Heading: "prm loss",
			Direction: eval.Down,
			Absent:    onlyPrime, Shown: OverSteps, Axis: Axis{Label: "loss", Zero: true},
			Definition: "loss of the process reward model (algo.prime.loss; ce: binary cross entropy of the " +
				"verdict, log 2 for a model that knows nothing), mean over a mini-batch's completions"},
	}, now, accuracy("_before", " before an update"), []Metric{
		{Name: "reward_model/reward", Unit: Reward, Title: "Process reward", Absent: onlyPrime,
			Axis:       Axis{Label: "process reward"},
			Definition: "sum of a completion's process rewards, after algo.prime.norm, mean over completions"},
		{Name: "reward_model/raw_reward", Unit: Nats, Title: "Log-ratio of the process reward model",
			Absent: onlyPrime, Axis: Axis{Label: "log-ratio"},
			Definition: "log-prob of a completion under the process reward model less that under the reference " +
				"policy, mean over completions"},
		{Name: "reward_model/grad_norm", Title: "Gradient norm of the process reward model", Absent: onlyPrime,
			Axis: Axis{Label: "gradient norm", Zero: true},
			Definition: "L2 norm of the process reward model's gradient before clipping, mean over the step's " +
				"updates"},
		{Name: "reward_model/lr", Title: "Learning rate of the process reward model", Absent: onlyPrime,
			Axis:       Axis{Label: "learning rate", Log: true},
			Definition: "learning rate of the process reward model's optimizer in the step (verl's rm/lr)"},
	})
}

package metric

import "exp/eval"

// rewardedSteps describes what a process reward model says of completions whose steps earn rewards.
func rewardedSteps() []Metric {
	list := []Metric{
		{Name: "reward/steps", Unit: "steps", Per: "completion", Title: "Steps of a completion", Heading: "steps",
			Shown: OverSteps, Axis: Axis{Label: "steps", Zero: true},
			Definition: "number of a completion's steps, as reward.split tells them apart, mean over completions; a " +
				"policy that exploits the reward model may write many empty ones, or one only"},
		{Name: "reward/step_right", Unit: Share, Title: "Probability that a step is right", Heading: "step right",
			Direction: eval.Up, Shown: OnProgress | OverSteps, Axis: Axis{Label: "step right", Zero: true},
			Definition: "probability by the process reward model that a step is right, mean over the steps of all " +
				"completions"},
		{Name: "reward/unsound", Unit: Share, Per: "completions", Title: "Completions with a wrong step",
			Heading: "unsound", Direction: eval.Down, Shown: OverSteps,
			Axis:       Axis{Label: "with a wrong step", Zero: true},
			Definition: "share of graded completions with a step that the process reward model holds for wrong"},
		{Name: "reward/steps_agree", Unit: Share, Per: "completions", Title: "Agreement of steps and verdict",
			Heading: "agree", Shown: OverSteps, Axis: Axis{Label: "agreement", Zero: true},
			Definition: "share of graded completions whose steps are all right by the process reward model and " +
				"whose answer is right, or with a wrong step and a wrong answer; it falls as a policy exploits the " +
				"model"},
		{Name: "reward/step_sum", Unit: Reward, Title: "Rewards of steps", Axis: Axis{Label: "rewards of steps"},
			Definition: "sum of what the steps of a completion earn, mean over completions"},
		{Name: "reward/outcome", Unit: Reward, Title: "Reward of the outcome", Axis: Axis{Label: "outcome"},
			Definition: "what a completion earns beside its steps, reward.outcome_weight times its verdict, mean " +
				"over completions"},
	}
	for i := range list {
		list[i].Absent = "only runs whose steps earn rewards have it (reward.credit)"
	}
	return list
}

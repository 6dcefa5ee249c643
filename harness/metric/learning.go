package metric

import (
	"slices"

	"exp/eval"
)

// extent describes the mean, maximum and minimum of a quantity: PREFIX/mean, /max and
// /min.
func extent(m Metric, over string) []Metric {
	var list []Metric
	for _, s := range []struct{ name, word string }{{"mean", "mean"}, {"max", "greatest"}, {"min", "least"}} {
		one := m
		one.Name += "/" + s.name
		one.Title += ", " + s.word
		one.Definition += ", " + s.word + " over " + over
		list = append(list, one)
	}
	return list
}

// extentWith is extent with a mean that has a longer description.
func extentWith(mean, m Metric, over string) []Metric {
	list := extent(m, over)
	mean.Name = list[0].Name
	list[0] = mean
	return list
}

// onlyKinds explains why a run may lack metrics of a kind of problems.
const onlyKinds = "only runs of several kinds of problems have it (task.kind mixed)"

// Sets that means and extremes are taken over.
const (
	full    = "completions that are not empty"
	counted = "the batch's tokens that count"
)

// learning describes how well the policy does on a batch: verl's data metrics
// (compute_data_metrics) and our metrics of the verdicts.
func learning() []Metric {
	list := extentWith(
		Metric{Unit: Reward, Title: "Mean reward", Heading: "reward", Direction: eval.Up,
			Shown: OnProgress | OverSteps, Axis: Axis{Label: "reward"},
			Definition: "the task's reward of the completions sampled in a step, before any KL penalty, mean " +
				"over the batch"},
		Metric{Name: "critic/score", Unit: Reward, Title: "Reward", Direction: eval.Up,
			Definition: "the task's reward of a completion, before any KL penalty"}, full)
	list = append(list,
		Metric{Name: "train/accuracy", Unit: Share, Per: "completions", Title: "Accuracy on training batches",
			Heading: "acc", Direction: eval.Up,
			Shown: OnProgress | OverSteps, Axis: Axis{Label: "accuracy", Zero: true},
			Definition: "share of right completions among those sampled for training, before the step's updates"},
		Metric{Name: "train/accuracy/KIND", Unit: Share, Per: "completions", Direction: eval.Up,
			Title: "Accuracy on problems of kind KIND", Absent: onlyKinds, Axis: Axis{Label: "accuracy", Zero: true},
			Definition: "share of right completions among the graded ones of problems of kind KIND, before the " +
				"step's updates"},
		Metric{Name: "train/score/KIND", Unit: Reward, Title: "Reward on problems of kind KIND", Direction: eval.Up,
			Absent: onlyKinds, Axis: Axis{Label: "reward"},
			Definition: "reward of a completion of a problem of kind KIND, mean over the step's graded ones"},
		Metric{Name: "train/solved", Unit: Share, Per: "problems", Title: "Problems solved in training batches",
			Heading: "solved", Direction: eval.Up,
			Axis:       Axis{Label: "solved", Zero: true},
			Definition: "share of a step's problems with at least one right completion"},
		Metric{Name: "train/distinct", Unit: "solutions", Per: "problem",
			Title: "Different right answers in training batches", Direction: eval.Up, Diversity: true,
			Definition: "different right answers among the completions of a problem, mean over the step's " +
				"problems"},
		Metric{Name: "train/not_graded", Unit: Share, Per: "completions", Title: "Completions without a verdict",
			Direction:  eval.Down,
			Definition: "share of the step's completions that the grader could not judge"},
		Metric{Name: "train/greedy_score", Unit: Reward, Title: "Reward of the greedy completions",
			Absent: "only ReMax samples greedy completions",
			Definition: "reward of the likeliest completion of a problem, ReMax's baseline, mean over those " +
				"graded (arXiv:2310.10505 alg. 1)"},
		Metric{Name: "reward/majority_share", Unit: Share, Per: "completions", Title: "Agreement of completions",
			Heading: "agree", Absent: "only reward.kind majority counts votes",
			Axis: Axis{Label: "most frequent answer", Zero: true},
			Definition: "share of a problem's completions that have its most frequent answer, mean over the " +
				"step's problems with an answer"},
		Metric{Name: "reward/majority_right", Unit: Share, Per: "problems", Title: "Right majorities",
			Direction: eval.Up, Absent: "only reward.kind majority counts votes",
			Axis: Axis{Label: "right majorities", Zero: true},
			Definition: "share of a step's problems with an answer whose most frequent one is right by the " +
				"gold answer, which training does not see"},
		Metric{Name: "reward/label_accuracy", Unit: Share, Per: "completions", Title: "Right labels",
			Direction: eval.Up, Absent: "only reward.kind majority counts votes",
			Axis: Axis{Label: "right labels", Zero: true},
			Definition: "share of graded completions for which being in the majority and being right are the same " +
				"(TTRL's reward accuracy)"},
		Metric{Name: "reward/suspicious", Unit: Share, Per: "completions", Title: "Right on a weak basis",
			Heading: "weak", Direction: eval.Down,
			Absent: "only our grader of mathematics says what a verdict rests on",
			Axis:   Axis{Label: "right on a weak basis", Zero: true},
			Definition: "share of graded completions that are right by a convention (per cent, rounding), by words " +
				"taken for a unit, or by a step that is not sure; if it rises, exp grade --audit RUN shows which"},
		Metric{Name: "reward/NAME/mean", Unit: Reward, Title: "Part NAME of the reward",
			Absent:     "only rewards of several named parts have it",
			Definition: "the reward's part NAME, mean over graded completions"})
	list = append(list, extent(Metric{Name: "critic/rewards", Unit: Reward, Title: "Reward with penalties",
		Definition: "sum of a completion's token rewards, less the KL penalty where algo.kl.reward_coef sets " +
			"one"}, full)...)
	list = append(list, extent(Metric{Name: "critic/advantages", Title: "Advantage",
		Definition: "the algorithm's estimate of how much better a token was than expected"}, counted)...)
	list = append(list, extent(Metric{Name: "critic/returns", Unit: Reward, Title: "Return",
		Definition: "discounted sum of the rewards from a token on, or what the advantage's estimator takes for " +
			"it"}, counted)...)
	return slices.Concat(list, likelihoods(), rewardedSteps(), conversation(), filtering())
}

// conversation describes completions of several turns.
func conversation() []Metric {
	const onlyTurns = "only runs with tools have it (rollout.tools)"
	const onlyStates = "only algo.kind gigpo compares turns in the same state"
	const messages = "messages of a conversation: the prompt, the policy's turns and the tools' answers (verl's " +
		"num_turns)"
	list := extentWith(Metric{Unit: "messages", Title: "Mean number of messages", Heading: "messages",
		Absent: onlyTurns, Shown: OverSteps, Axis: Axis{Label: "messages"},
		Definition: messages + ", mean over completions"},
		Metric{Name: "num_turns", Unit: "messages", Title: "Messages", Absent: onlyTurns, Definition: messages},
		"completions")
	return append(list,
		Metric{Name: "train/inserted", Unit: Share, Per: "tokens", Title: "Tokens from tools", Absent: onlyTurns,
			Definition: "share of completion tokens that tools and the text around their output wrote; they are " +
				"not trained on"},
		Metric{Name: "train/out_of_turns", Unit: Share, Per: "completions", Title: "Completions out of turns",
			Absent: onlyTurns, Direction: eval.Down,
			Definition: "share of completions that ended with a call beyond rollout.tools.max_turns"},
		Metric{Name: "train/conversations", Unit: "conversations", Per: "completions", Title: "Conversations",
			Absent:     "runs have it that learn from all conversations of an agent (rollout.tools.conversations)",
			Definition: "number of an episode's conversations, mean over completions"},
		Metric{Name: "train/turn_reward", Unit: Reward, Title: "Reward of a turn", Direction: eval.Up,
			Absent: "only steps have it in which an agent gives turns, or algo.kind gigpo tells them apart",
			Definition: "reward that the agent gives a turn of the policy, mean over turns; a score that the " +
				"turns leave unexplained is not part of it"},
		Metric{Name: "gigpo/step_group_size", Unit: "turns", Title: "Turns in a state", Absent: onlyStates,
			Axis: Axis{Label: "turns in a state"},
			Definition: "number of turns in the same state of a problem, its step group, mean over step groups; 1 " +
				"means that no turn has another to compare with"},
		Metric{Name: "gigpo/shared_states", Unit: Share, Per: "turns", Title: "Turns in shared states",
			Absent: onlyStates, Axis: Axis{Label: "turns in shared states", Zero: true},
			Definition: "share of turns whose state another turn of the problem was in; the others have the " +
				"advantage of their episodes alone"})
}

// filtering describes which groups and completions a step trains on.
func filtering() []Metric {
	const onlyFilter = "only runs that filter groups have it (algo.filter_groups)"
	const onlyOverlong = "only runs that punish overlong completions have it (algo.overlong)"
	return []Metric{
		{Name: "train/filter_batches", Unit: "batches", Title: "Batches sampled for a step", Absent: onlyFilter,
			Definition: "batches of problems sampled until enough groups passed the filter (DAPO's dynamic " +
				"sampling, arXiv:2503.14476 §3.2)"},
		{Name: "train/filter_passed", Unit: Share, Per: "groups", Title: "Groups that passed the filter",
			Absent:     onlyFilter,
			Definition: "share of the sampled groups whose completions differ in what the filter looks at"},
		{Name: "train/filter_spread", Unit: Reward, Title: "Least standard deviation of a group",
			Absent: "only runs that filter groups by their spread have it (algo.filter_groups.spread)",
			Definition: "standard deviation of a problem's rewards from which it passes the filter: the moving " +
				"average over the steps before times algo.filter_groups.spread"},
		{Name: "train/overlong_reward", Unit: Reward, Title: "Punishment of overlong completions",
			Absent: onlyOverlong,
			Definition: "added to the score for a length near the limit, 0 or less, mean over " +
				"completions (arXiv:2503.14476 eq. 13; verl's overlong_reward)"},
		{Name: "train/overlong", Unit: Share, Per: "completions", Title: "Overlong completions",
			Absent:     onlyOverlong,
			Definition: "share of completions that are punished for their length (verl's overlong)"},
		{Name: "training/global_step", Unit: "steps", Title: "Step",
			Definition: "number of the training step, from 1"},
		{Name: "training/epoch", Unit: "epochs", Title: "Epoch",
			Definition: "passes over the training problems completed before the step's pass"},
	}
}

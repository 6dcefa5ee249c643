package config

import (
	"fmt"
	"slices"
	"strings"
)

// Keys of the reward: of training and, where nothing else judges, of evaluations.

func rewardKeys() []Key {
	keys := []Key{
		{Path: "reward.kind", Kind: Enum, Default: is("task"),
			Words: rewardsThat(func(*rewardKind) bool { return true }),
			Help:  "what scores completions in training; of task prompts also in evaluations"},
		{Path: "reward.correct", Kind: Float, Default: is(1.0), When: paying("correct"),
			Help: "reward of a right answer"},
		{Path: "reward.wrong", Kind: Float, Default: is(0.0), When: paying("wrong"),
			Help: "reward of a wrong answer; with reward.kind likelihood, of a completion without an answer"},
		{Path: "reward.format", Kind: Float, Default: sameAs("reward.wrong"), When: paying("format"),
			Help: "reward of a wrong answer in the right format. With task.math.grader geo3k a right answer in " +
				"another format than <think>…</think> … \\boxed{…} gets so much less, too"},
		{Path: "reward.components", Kind: String, List: true, Default: byKind("reward.components", is([]string{})), Pattern: pattern("a name of small letters, digits and _", `[a-z][a-z0-9_]*`),
			Help: "named parts of the reward, in the order in which algorithms weigh them; recorded as " +
				"reward/NAME/mean"},
		{Path: "reward.max_not_graded", Kind: Float, Default: is(0.1), Range: above(0).upTo(1), Unit: "fraction",
			Role: Nonsemantic,
			Help: "share of a step's completions that may go without a verdict; they are not trained on, and more " +
				"end the run (exit 8)"},
		{Path: "reward.retries", Kind: Int, Default: retriesByKind(), Range: between(0, 100),
			Role: Nonsemantic,
			When: ofReward(rewardsThat(func(k *rewardKind) bool { return k.retries > 0 })...),
			Help: "how often to ask again about a completion after a program died or fell silent, or a server was " +
				"busy or did not answer"},
	}
	for _, k := range rewardKinds() {
		if k.keys == nil {
			continue
		}
		for _, key := range k.keys() {
			if key.When == nil {
				key.When = ofReward(k.name)
			}
			keys = append(keys, key)
		}
	}
	for i := range keys {
		keys[i].Judges = !ofTraining(keys[i].Path)
	}
	rewardItself := tasksThat(func(k *taskKind) bool { return k.optimum })
	return block([]Clause{except("task.kind", rewardItself...)}, at(Train), keys)
}

// ofTraining reports whether a key says what training makes of scores, and changes none.
func ofTraining(path string) bool {
	return path == "reward.components" || path == "reward.credit" || path == "reward.outcome_weight" ||
		strings.HasPrefix(path, "reward.step_")
}

func ofReward(kinds ...string) []Clause { return []Clause{only("reward.kind", kinds...)} }

// paying are the kinds that give one of reward.correct, reward.wrong and reward.format; or another kind scores the
// prompts of a mixed task, and the verdicts on its other problems pay.
func paying(what string) []Clause {
	c := ofReward(rewardsThat(func(k *rewardKind) bool { return slices.Contains(k.pays, what) })...)
	c[0] = append(c[0], only("task.mixed.kinds", PromptsTask)...)
	return c
}

func retriesByKind() Default {
	var cases []Case
	for _, k := range rewardKinds() {
		if k.retries > 0 && k.retries != usualRetries {
			cases = append(cases, when(k.name, is(k.retries)))
		}
	}
	return by("reward.kind", is(usualRetries), cases...)
}

// aboutReward returns help that does not fit on a key's help line; empty for most keys.
func aboutReward(path string) string {
	switch path {
	case "reward.kind":
		return aboutRewardKind()
	case "reward.components":
		return `
  correct  1 where the task calls the answer right, else 0
  format   1 where an answer was found, right or wrong, else 0
  score    the whole reward
  others   from the "components" in a command's answer, or the other fields of a judge's
           JSON object; each answer must have all of them
`
	}
	for _, k := range rewardKinds() {
		if text := k.help[path]; text != "" {
			return text
		}
	}
	return ""
}

func aboutRewardKind() string {
	var b strings.Builder
	b.WriteString("\n")
	for _, k := range rewardKinds() {
		fmt.Fprintf(&b, "  %-10s %s\n", k.name, strings.ReplaceAll(k.about, "\n", "\n"+strings.Repeat(" ", 13)))
	}
	return b.String() + `
  With majority and confidence, gold answers serve metrics and evaluations alone. The task
  decides whether an answer is right, so accuracy, filters on acc and every evaluation mean
  the same with each kind. Only task.kind prompts has no gold answers: there the reward decides that
  too (task.prompts.pass), and scores evaluations.

  A completion that could not be scored is "not graded": it is recorded as an event, is not
  trained on, and never counts as a number; above reward.max_not_graded the run ends (exit
  8). The penalty algo.overlong applies to every kind.
`
}

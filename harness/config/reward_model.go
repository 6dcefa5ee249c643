package config

import (
	"fmt"
	"slices"

	"exp/experiments/quantity"
	"exp/train/rollout"
)

func modelReward() rewardKind {
	return rewardKind{name: "model",
		about:  "a sequence-classification model on our own engine: reward.weights",
		judges: true, weights: true, keys: rewardModelKeys,
		checks: func() []check { return append(rewardModelKindChecks(), creditChecks()...) },
		help:   map[string]string{"reward.credit": aboutCredit}}
}

func rewardModelKeys() []Key {
	// The run's own reward model, too, if it learns from steps.
	byModel := []Clause{only("reward.kind", "model", TrainedReward),
		append(only("reward.kind", "model"), only("reward_model.kind", RewardOfSteps)...)}
	scored := append(slices.Clone(byModel), except("reward.steps", None))
	return append([]Key{
		{Path: "reward.weights", Kind: String, Role: External, Pattern: pattern("a path", `.+`),
			When: ofReward(rewardsThat(func(k *rewardKind) bool { return k.weights })...),
			Help: "Hugging Face folder, with its tokenizer, or hub:ORG/NAME@REVISION, of the reward model: a " +
				"sequence classifier (Qwen2, Qwen3, Llama), whose score at the last token is the reward, a " +
				"classifier of tokens (of TRL's PRMTrainer, or Qwen2.5-Math-PRM), or with reward.tokens or " +
				"reward.kind genrm a language model"},
		{Path: "reward.text", Kind: String, Default: is("{prompt}{response}"),
			Pattern: pattern("a text with {response}", `(?s).*\{response\}.*`),
			Help: "text that the reward model reads unless it reads a chat; {prompt} (the texts of a chat's " +
				"messages) and {response} are filled in"},
		{Path: "reward.chat", Kind: Enum, Words: []string{Auto, Always, None}, Default: is(Auto),
			Help: "auto: if prompts are chats, reward.text is the default and the reward model's folder has a chat " +
				"template, it reads the whole chat, completion included, in that template; always: it does so with " +
				"plain prompts, too; none: it reads reward.text"},
		{Path: "reward.begin", Kind: Bool, Default: is(false), Late: true,
			Help: "the token that begins texts in the reward model's tokenizer, bos_token, comes before reward.text"},
		{Path: "reward.end", Kind: Bool, Default: is(false), Late: true,
			Help: "an end token follows reward.text, as in reward models that this program and TRL train on texts; " +
				"a chat ends as its template has it"},
		{Path: "reward.steps", Kind: Enum, Words: append([]string{None}, rollout.StepScores()...),
			Default: is(None), Late: true,
			When: byModel,
			Help: "a process reward model scores each step of a completion, and the reward is this of the " +
				"probabilities that its steps are right, unless reward.credit rewards steps; none: the score at the " +
				"completion's end"},
		{Path: "reward.split", Kind: String, Default: is("\n"), Late: true, Pattern: pattern("a text", `(?s).+`),
			When: scored,
			Help: "text that separates the steps of a completion"},
		{Path: "reward.separator", Kind: String, Default: is("\n"), Late: true, Pattern: pattern("a text", `(?s).+`),
			When: []Clause{only("reward.kind", "model"), except("reward.steps", None)},
			Help: "text that the process reward model reads after each step, and at whose last token it scores the " +
				"step, such as a special token"},
		{Path: "reward.layout", Kind: Enum, Words: rollout.StepLayouts(), Default: is(rollout.StepsApart), Late: true,
			When: []Clause{only("reward.kind", "model"), except("reward.steps", None)},
			Help: "apart: each step and each separator is encoded by itself; marks: the separators are in one text, " +
				"with reward.split behind them; turns: a step is a turn of the user in a chat, which the assistant " +
				"answers with the separator, and its score is at the token before that"},
		{Path: "reward.label", Kind: Int, Default: is(0), Range: atLeast(0),
			Help: "which of the model's labels is the reward, counted from 0"},
		{Path: "reward.tokens", Kind: String, List: true, Default: is([]string{}), Late: true,
			Pattern: pattern("a token", `(?s).+`),
			Help: "[right, wrong]: the reward model is a language model, and its score is the log-odds of the first " +
				"of these next tokens against the second, such as [+, -]; each as tokenizer.json has it, or its text"},
	}, creditKeys(scored)...)
}

// rewardModelKindChecks checks the settings of a reward model.
func rewardModelKindChecks() []check {
	return []check{
		{[]string{"reward.tokens"}, func(r *Run) (string, string) {
			if n := len(r.Reward.Tokens); n != 0 && n != 2 {
				return fmt.Sprintf("reward.tokens names %s", quantity.Plural(n, "token")),
					"name the token of right and the token of wrong: [+, -]"
			}
			return "", ""
		}},
		{[]string{"reward.tokens", "reward.label"}, func(r *Run) (string, string) {
			if len(r.Reward.Tokens) > 0 && r.Reward.Label != 0 {
				return "reward.label names a label, but reward.tokens has a language model score, which has none",
					"leave one of them out"
			}
			return "", ""
		}},
		{[]string{"reward.layout", "reward.chat"}, func(r *Run) (string, string) {
			switch l := r.Reward.Layout; {
			case l == rollout.StepsTurns && r.Reward.Chat == None:
				return "reward.layout turns has the reward model read a chat, but reward.chat is none",
					"leave reward.chat out"
			case l == rollout.StepsMarks && r.Reward.Chat == Always:
				return "reward.layout marks has the reward model read reward.text, but reward.chat is always",
					"leave reward.chat out"
			}
			return "", ""
		}},
	}
}

package config

import (
	"slices"

	"exp/train/rollout"
)

func modelReward() rewardKind {
	return rewardKind{name: "model",
		about:  "a sequence-classification model on our own engine: reward.weights",
		judges: true, weights: true, keys: rewardModelKeys, checks: creditChecks,
		help: map[string]string{"reward.credit": aboutCredit}}
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
				"classifier of tokens of TRL's PRMTrainer, or with reward.kind genrm a language model"},
		{Path: "reward.text", Kind: String, Default: is("{prompt}{response}"),
			Pattern: pattern("a text with {response}", `(?s).*\{response\}.*`),
			Help: "text that the reward model reads unless it reads a chat; {prompt} (the texts of a chat's " +
				"messages) and {response} are filled in"},
		{Path: "reward.chat", Kind: Enum, Words: []string{Auto, None}, Default: is(Auto),
			Help: "auto: if prompts are chats, reward.text is the default and the reward model's folder has a chat " +
				"template, it reads the whole chat, completion included, in that template; none: it reads " +
				"reward.text"},
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
		{Path: "reward.label", Kind: Int, Default: is(0), Range: atLeast(0),
			Help: "which of the model's labels is the reward, counted from 0"},
	}, creditKeys(scored)...)
}

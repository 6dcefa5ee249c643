package config

func modelReward() rewardKind {
	return rewardKind{name: "model",
		about:  "a sequence-classification model on our own engine: reward.weights",
		judges: true, weights: true, keys: rewardModelKeys}
}

func rewardModelKeys() []Key {
	return []Key{
		{Path: "reward.weights", Kind: String, Role: External, Pattern: pattern("a path", `.+`),
			When: ofReward(rewardsThat(func(k *rewardKind) bool { return k.weights })...),
			Help: "Hugging Face folder, with its tokenizer, or hub:ORG/NAME@REVISION, of the reward model: a " +
				"sequence classifier (Qwen2, Qwen3, Llama), whose score at the last token is the reward, or with " +
				"reward.kind genrm a language model"},
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
		{Path: "reward.label", Kind: Int, Default: is(0), Range: atLeast(0),
			Help: "which of the model's labels is the reward, counted from 0"},
	}
}

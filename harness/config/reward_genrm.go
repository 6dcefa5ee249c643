package config

import "fmt"

func generativeReward() rewardKind {
	return rewardKind{name: "genrm",
		about: "a language model on our own engine that writes a verdict, a generative reward model:\n" +
			"reward.weights, asked as reward.judge says",
		judges: true, weights: true, writes: true, parts: true, keys: generativeKeys, checks: generativeChecks}
}

func generativeKeys() []Key {
	return []Key{
		{Path: "reward.judge.context", Kind: Int, Default: is(4096), Range: atLeast(2), Unit: "tokens",
			Help: "most tokens of a message to the judge with its answer; a completion whose message is longer has " +
				"no score"},
		{Path: "reward.judge.sequences", Kind: Int, Default: is(16), Range: between(1, 4096), Unit: "sequences",
			Role: Nonsemantic,
			Help: "answers that the judge writes side by side; memory grows with it, and no score depends on it"},
		{Path: "reward.judge.template_vars", Kind: Values, Default: is(map[string]any{}),
			Help: "extra variables for the judge's own chat template, such as {enable_thinking: false}"},
	}
}

func generativeChecks() []check {
	return []check{
		{[]string{"reward.judge.context", "reward.judge.max_tokens"}, func(r *Run) (string, string) {
			if j := r.Reward.Judge; r.Reward.Kind == "genrm" && j.Context <= j.MaxTokens {
				return fmt.Sprintf("reward.judge.context (%d) leaves no room for a message: reward.judge.max_tokens "+
					"is %d", j.Context, j.MaxTokens), "raise the one or lower the other"
			}
			return "", ""
		}},
	}
}

package config

// Words of reward_model.kind.
const (
	RewardOfPairs = "pairs"
	RewardOfSteps = "steps"
)

func rewardModelTrainingKeys() []Key {
	on := []Clause{positive("reward_model.steps")}
	file := `.*\.((jsonl?|csv|tsv)(\.(gz|zst))?|parquet)`
	held := append(on, except("reward_model.val", None))
	keys := []Key{
		{Path: "reward_model.steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "updates",
			Stages: at(RewardModel),
			Help: "updates of a reward model on pairs of answers in a file, from the weights after sft; 0 skips the " +
				"stage"},
	}
	pairs, steps := only("reward_model.kind", RewardOfPairs), only("reward_model.kind", RewardOfSteps)
	keys = append(keys, block(on, at(RewardModel), []Key{
		{Path: "reward_model.kind", Kind: Enum, Words: []string{RewardOfPairs, RewardOfSteps},
			Default: is(RewardOfPairs), Stages: at(Prepare, RewardModel),
			Help: "what it learns from: pairs of answers, the reward of an answer being the score at its end, or " +
				"answers in steps with a label for each, the score at the end of a step being the logit that it is " +
				"right (a process reward model)"},
		{Path: "reward_model.source", Kind: String, Role: External, Stages: at(Prepare),
			Pattern: pattern("a path ending in .jsonl, .json, .csv, .tsv or .parquet, or "+
				"hub:ORG/NAME/FILE@REVISION", `hub:.+|`+file),
			Help: "pairs of answers to a prompt, chosen and rejected, as for prefer.source; margin is optional. Or " +
				"answers in steps: prompt, completions and labels"},
		{Path: "reward_model.val", Kind: String, Role: External, Default: is(None), Stages: at(Prepare),
			Pattern: pattern("none, a path ending in .jsonl, .json, .csv, .tsv or .parquet, or "+
				"hub:ORG/NAME/FILE@REVISION", `none|hub:.+|`+file),
			Help: "held-out pairs, on which the reward model is validated after its last step"},
	})...)
	keys = append(keys, block(held, at(RewardModel), []Key{
		{Path: "reward_model.val_every", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "updates",
			Help: "updates between further validations on reward_model.val; 0: only after the last one"},
	})...)
	keys = append(keys, block(on, at(RewardModel), []Key{
		{Path: "reward_model.max_tokens", Kind: Int, Default: is(1024), Range: atLeast(0), Unit: "tokens",
			Help: "longest answer with its prompt; pairs with a longer one are left out. 0: no limit, and one that " +
				"is longer than the model's positions is an error"},
		{Path: "reward_model.pairs_per_step", Kind: Int, Default: is(32), Range: atLeast(1), Unit: "pairs",
			When: []Clause{pairs}, Help: "pairs per update"},
		{Path: "reward_model.answers_per_step", Kind: Int, Default: is(32), Range: atLeast(1), Unit: "answers",
			When: []Clause{steps}, Help: "answers in steps per update"},
		{Path: "reward_model.separator", Kind: String, Default: is("\n"), Pattern: pattern("a text", `(?s).+`),
			When: []Clause{steps},
			Help: "text after each step, at whose last token the step is scored (TRL: step_separator), such as a " +
				"line end or a special token"},
		{Path: "reward_model.last_step_only", Kind: Bool, Default: is(false), When: []Clause{steps},
			Help: "learn from the label of an answer's last step alone (TRL: train_on_last_step_only); held-out " +
				"answers are validated on all steps"},
		{Path: "reward_model.center", Kind: Float, Default: is(0.0), Range: atLeast(0), When: []Clause{pairs},
			Help: "weight of the squared sum of a pair's rewards, which keeps them near 0 (TRL: " +
				"center_rewards_coefficient, such as 0.01)"},
		{Path: "reward_model.seed", Kind: Int, Default: is(0), Range: atLeast(0),
			Help: "root of the score head's first weights and of the order of pairs; independent of the run's seed"},
	})...)
	keys = append(keys, foldedAdapters("reward_model", on, RewardModel)...)
	keys = append(keys, optimizer("reward_model.optim", "updates", Default{}, on, RewardModel)...)
	for i := range keys {
		keys[i].Late = true
	}
	return keys
}

func rewardModelChecks() []check {
	return []check{
		foldsAdapter("reward_model", func(r *Run) int { return r.RewardModel.LoRA.Rank }),
		{[]string{"reward.kind", "reward.steps"}, func(r *Run) (string, string) {
			if r.Reward.Trained() && r.RewardModel.OfSteps() && r.Reward.Steps == None {
				return "reward.kind is trained, and reward_model.kind is steps, but reward.steps is none: nothing " +
						"says what the scores of steps come to",
					"reward.steps: min, product, last or mean"
			}
			return "", ""
		}},
		{[]string{"reward.kind", "reward_model.steps"}, func(r *Run) (string, string) {
			if r.Reward.Trained() && r.RewardModel.Steps == 0 {
				return "reward.kind is trained, but the run trains no reward model",
					"set reward_model.steps, or reward.kind: model with the model's folder in reward.weights"
			}
			return "", ""
		}},
	}
}

// aboutRewardModel returns help that does not fit on a key's help line; empty for most keys.
func aboutRewardModel(path string) string {
	if path != "reward_model.source" {
		return ""
	}
	return `
  Rows are as for prefer.source (exp config explain prefer.source), lists of messages or
  texts, with an optional number in the column margin: how much better the chosen answer is.

    {"prompt": [{"role": "user", "content": "6*7?"}],
     "chosen": [{"role": "assistant", "content": "42"}],
     "rejected": [{"role": "assistant", "content": "43"}], "margin": 1}
    {"prompt": "6*7=", "chosen": "42", "rejected": "43"}

  The model reads a whole chat as the chat template writes it, or with data.chat: none the text of
  prompt and answer and an end token. Its reward is the score of the last token's state. It learns

    -log sigmoid(reward of chosen - reward of rejected - margin) + center * (sum of both)^2

  The folder reward_model holds it at the end, for reward.kind: model in other runs and for
  transformers. Training of the same run uses it with reward.kind: trained.

    reward_model: {steps: 200, source: pairs.parquet, val: held_out.parquet, optim: {lr: 1e-5}}

  With reward_model.kind: steps a row is an answer in steps with a label for each, true or false
  (or 1, and 0 or -1), or null for none, in TRL's columns:

    {"prompt": "6*7+1=", "completions": ["6*7=42", "42+1=44"], "labels": [true, false]}

  The model reads the prompt, each step and reward_model.separator behind it. It learns, as a mean
  over labelled steps, -log sigmoid(score) of right ones and -log sigmoid(-score) of wrong ones.
`
}

package config

// Keys of sampling, training and evaluation.

func rolloutKeys() []Key {
	return block(nil, at(Train), []Key{
		{Path: "rollout.n", Kind: Int, Default: is(8), Range: atLeast(1), Unit: "completions", Help: "completions of each problem of a step: the group"},
		{Path: "rollout.temperature", Kind: Float, Default: is(1.0), Range: above(0), Help: "divides the logits, in sampling and in all training log-probs"},
		{Path: "rollout.top_k", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "tokens", Help: "sample from this many likeliest tokens; 0 is off"},
		{Path: "rollout.top_p", Kind: Float, Default: is(1.0), Range: above(0).upTo(1), Unit: "fraction", Help: "sample from the likeliest tokens of this total probability; 1 is off"},
		{Path: "rollout.min_p", Kind: Float, Default: is(0.0), Range: atLeast(0).below(1), Unit: "fraction", Help: "sample from tokens at least this share as likely as the likeliest; 0 is off"},
		{Path: "rollout.max_new_tokens", Kind: Int, Range: atLeast(1), Unit: "tokens", Help: "longest completion, its end token included"},
		{Path: "rollout.staleness", Kind: Int, Default: is(0), Range: between(0, 64), Unit: "steps",
			Help: "steps of the policy between the sampling of a step's completions and their use, as where sampling runs ahead of training; 0 is on-policy. algo.rollout_correction accounts for the distance"},
		{Path: "rollout.stop", Kind: String, List: true, Default: is([]string{}), Stages: at(Train, EvalGen),
			Help: "a completion ends where one of these texts appears; the final evaluation uses them too"},
		{Path: "rollout.max_sequences", Kind: Int, Default: is(256), Range: between(1, 1<<20), Unit: "sequences", Role: Nonsemantic, Stages: at(Train, EvalGen),
			Help: "completions decoded at the same time"},
		{Path: "rollout.page_tokens", Kind: Int, Default: is(16), Range: between(1, 4096), Unit: "tokens", Role: Nonsemantic, Stages: at(Train, EvalGen),
			Help: "positions in one page of the KV cache"},
	})
}

func trainKeys() []Key {
	keys := block(nil, at(Train), []Key{
		{Path: "train.prompts_per_step", Kind: Int, Range: atLeast(1), Unit: "problems", Help: "problems sampled in one step"},
		{Path: "train.prompts_per_update", Kind: Int, Default: sameAs("train.prompts_per_step"), Range: atLeast(1), Unit: "problems",
			Help: "problems, with all their completions, in one optimizer update; divides prompts_per_step"},
		{Path: "train.steps", Kind: Int, Range: atLeast(0), Unit: "steps", Help: "steps of the run: sample, grade, update; 0 evaluates the start"},
	})
	return append(keys, adamw("train.optim", "steps", Default{}, nil, Train)...)
}

func evalKeys() []Key {
	return append(onlineKeys(), finalKeys()...)
}

func onlineKeys() []Key {
	on := positive("eval.online.every_steps")
	return block(nil, at(Train), []Key{
		{Path: "eval.online.every_steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "steps",
			Help: "steps between evaluations on data.val during training, which never change its course; 0 is none"},
		{Path: "eval.online.problems", Kind: Int, Default: is(64), Range: atLeast(0), Unit: "problems", When: []Clause{on},
			Help: "how many problems of data.val, from its start; 0 takes all"},
		{Path: "eval.online.n", Kind: Int, Default: is(1), Range: atLeast(1), Unit: "completions", When: []Clause{on}, Help: "completions per problem"},
		{Path: "eval.online.temperature", Kind: Float, Default: is(1.0), Range: atLeast(0), When: []Clause{on}, Help: "sampling temperature; 0 is greedy"},
	})
}

// suites are the benchmarks that eval.final knows; test and val are splits of the
// run's own data.
func suites() []string {
	return []string{"test", "val", "aime24", "aime25", "amc23", "math500", "minerva", "olympiad", "livecodebench", "codeforces", "humanevalplus"}
}

func finalKeys() []Key {
	return block(nil, at(EvalGen), []Key{
		{Path: "eval.final.suites", Kind: Enum, List: true, Words: suites(), Stages: at(EvalGen, EvalScore),
			Default: by("data.test.source", is([]string{"test"}), when(None, Default{})),
			Help:    "what the trained model is scored on"},
		{Path: "eval.final.n", Kind: Int, Default: is(16), Range: atLeast(1), Unit: "completions", Help: "completions per problem"},
		{Path: "eval.final.temperature", Kind: Float, Default: is(1.0), Range: atLeast(0), Help: "sampling temperature; 0 is greedy"},
		{Path: "eval.final.top_k", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "tokens", Help: "sample from this many likeliest tokens; 0 is off"},
		{Path: "eval.final.top_p", Kind: Float, Default: is(1.0), Range: above(0).upTo(1), Unit: "fraction", Help: "sample from the likeliest tokens of this total probability; 1 is off"},
		{Path: "eval.final.max_new_tokens", Kind: Int, Default: sameAs("rollout.max_new_tokens"), Range: atLeast(1), Unit: "tokens",
			Help: "longest completion, its end token included"},
		{Path: "eval.final.pass_k", Kind: Int, List: true, Default: powersUpTo("eval.final.n"), Range: atLeast(1), Unit: "completions", Stages: at(EvalScore),
			Help: "the k of pass@k, rising, none above n"},
	})
}

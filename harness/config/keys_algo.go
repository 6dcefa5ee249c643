package config

// Keys of the algorithms. Defaults are those of verl's current recipes
// (verl-project/verl @1dda039b9, verl-project/verl-recipe @48ea0a7) unless the
// help says otherwise.

func algoKeys() []Key {
	ratio := []Clause{only("algo.kind", "ppo", "grpo")}
	keys := []Key{
		{Path: "algo.kind", Kind: Enum, Words: []string{"flowrl", "ppo", "grpo"}, Stages: at(Train),
			Help: "the learning algorithm"},
		{Path: "algo.epochs", Kind: Int, Default: is(1), Range: atLeast(1), Unit: "passes", Stages: at(Train),
			Help: "passes over the trajectories of a step"},
	}
	keys = append(keys, flowrlKeys()...)
	keys = append(keys, ppoKeys()...)
	keys = append(keys, block([]Clause{only("algo.kind", "grpo")}, at(Train), append(clipKeys("algo.grpo"), Key{
		Path: "algo.grpo.scale_std", Kind: Bool, Default: is(true),
		Help: "divide advantages by the group's standard deviation (GRPO); false is Dr. GRPO, arXiv:2503.20783"}))...)
	keys = append(keys, klKeys(ratio)...)
	return append(keys, block(ratio, at(Train), []Key{
		{Path: "algo.entropy_coef", Kind: Float, Default: is(0.0), Range: atLeast(0), Help: "weight of the entropy bonus"},
		{Path: "algo.aggregation", Kind: Enum, Default: is("token-mean"),
			Words: []string{"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"},
			Help:  "how token losses of a mini-batch become one number"},
		{Path: "algo.loss_scale_factor", Kind: Float, Default: sameAs("rollout.max_new_tokens"), Range: above(0), Unit: "tokens",
			When: []Clause{only("algo.aggregation", "seq-mean-token-sum-norm")},
			Help: "what seq-mean-token-sum-norm divides by; the longest completion, where upstream takes the width of the padded batch"},
	})...)
}

func flowrlKeys() []Key {
	with := []Clause{positive("algo.flowrl.use_logz")}
	// The importance weight is the one thing in which the paper, the released code
	// and the current recipe differ.
	low := by("algo.flowrl.preset", is(0.0), when("paper", is(0.8)))
	high := by("algo.flowrl.preset", is(10.0), when("release", null()), when("paper", is(1.2)))
	return block([]Clause{only("algo.kind", "flowrl")}, at(Train), []Key{
		{Path: "algo.flowrl.preset", Kind: Enum, Words: []string{"recipe", "release", "paper"}, Default: is("recipe"), Role: Expanded,
			Help: "which published FlowRL: verl's recipe (w <= 10), the released code (w unclipped), the paper (w in 1 +- 0.2)"},
		{Path: "algo.flowrl.beta", Kind: Float, Default: is(15.0), Range: above(0), Help: "scale of the reward in the residual"},
		{Path: "algo.flowrl.use_logz", Kind: Bool, Default: is(true), Help: "learn log Z of each prompt; false sets it to 0 and installs no head"},
		{Path: "algo.flowrl.logz.layers", Kind: Int, Default: is(3), Range: between(1, 64), Unit: "layers", When: with,
			Help: "linear layers of the log Z head"},
		{Path: "algo.flowrl.logz.dropout", Kind: Float, Default: is(0.1), Range: atLeast(0).below(1), Unit: "fraction", When: with,
			Help: "dropout in the head during updates"},
		{Path: "algo.flowrl.logz.pool", Kind: Enum, Words: []string{"drop_last", "all"}, Default: is("drop_last"), When: with,
			Help: "prompt positions whose hidden states are averaged; upstream drops the last one"},
		{Path: "algo.flowrl.logz.detach", Kind: Bool, Default: is(false), When: with, Help: "stop the head's gradient at the hidden states"},
		{Path: "algo.flowrl.weight.level", Kind: Enum, Words: []string{"sum", "mean"}, Default: is("sum"),
			Help: "importance weight from the sum or from the mean of a completion's log-ratios"},
		{Path: "algo.flowrl.weight.low", Kind: Float, Default: low, Range: atLeast(0), Help: "lower limit of the weight"},
		{Path: "algo.flowrl.weight.high", Kind: Float, Null: true, Default: high, Range: above(0), Help: "upper limit of the weight; null is none"},
		{Path: "algo.flowrl.reference", Kind: Enum, Words: []string{"ref", "old"}, Default: is("ref"),
			Help: "policy in the residual: the frozen start, or the policy before the step"},
		{Path: "algo.flowrl.reward", Kind: Enum, Words: []string{"advantage", "adv_no_std", "raw"}, Default: is("advantage"),
			Help: "reward in the residual: group-normalised, group-centered, or as graded"},
		{Path: "algo.flowrl.token_mask", Kind: Enum, Words: []string{"none", "cispo"}, Default: is("none"),
			Help: "cispo leaves out tokens whose ratio has moved beyond [0.8, 1.28] in the direction of the advantage"},
	})
}

func ppoKeys() []Key {
	on := []Clause{only("algo.kind", "ppo")}
	keys := block(on, at(Train), append(clipKeys("algo.ppo"), []Key{
		{Path: "algo.ppo.gamma", Kind: Float, Default: is(1.0), Range: between(0, 1), Help: "discount per token"},
		{Path: "algo.ppo.lambda", Kind: Float, Default: is(1.0), Range: between(0, 1), Help: "lambda of generalised advantage estimation"},
		{Path: "algo.ppo.critic.warmup_steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "steps",
			Help: "steps in which only the critic learns, before the policy does"},
		{Path: "algo.ppo.critic.clip_value", Kind: Float, Default: is(0.5), Range: above(0), Help: "how far a value may move from the old one before its loss is clipped"},
	}...))
	return append(keys, adamw("algo.ppo.critic.optim", "steps", is(1e-5), on, Train)...)
}

// clipKeys are the limits of the ratio in the clipped policy loss.
func clipKeys(prefix string) []Key {
	return []Key{
		{Path: prefix + ".clip_low", Kind: Float, Default: is(0.2), Range: above(0).below(1), Help: "the ratio is clipped at 1 - this"},
		{Path: prefix + ".clip_high", Kind: Float, Default: is(0.2), Range: above(0), Help: "the ratio is clipped at 1 + this"},
		{Path: prefix + ".clip_dual", Kind: Float, Null: true, Default: is(3.0), Range: above(1),
			Help: "dual clip: largest ratio that counts where the advantage is negative; null is off"},
	}
}

func klKeys(ratio []Clause) []Key {
	estimators := []string{"k1", "k2", "k3", "abs"}
	loss, reward := positive("algo.kl.loss_coef"), positive("algo.kl.reward_coef")
	adaptive := only("algo.kl.controller", "adaptive")
	return block(ratio, at(Train), []Key{
		{Path: "algo.kl.loss_coef", Kind: Float, Default: is(0.0), Range: atLeast(0), Help: "weight of KL(policy, reference) in the loss"},
		{Path: "algo.kl.loss_estimator", Kind: Enum, Words: estimators, Default: is("k3"), When: []Clause{loss}, Help: "estimator of that KL"},
		{Path: "algo.kl.reward_coef", Kind: Float, Default: is(0.0), Range: atLeast(0), Help: "weight of the KL subtracted from token rewards"},
		{Path: "algo.kl.reward_estimator", Kind: Enum, Words: estimators, Default: is("k1"), When: []Clause{reward}, Help: "estimator of that KL"},
		{Path: "algo.kl.controller", Kind: Enum, Words: []string{"fixed", "adaptive"}, Default: is("fixed"), When: []Clause{reward},
			Help: "keep reward_coef, or steer it so that the KL reaches target"},
		{Path: "algo.kl.target", Kind: Float, Default: is(0.1), Range: above(0), Unit: "nats", When: []Clause{adaptive}, Help: "KL that the adaptive controller aims at"},
		{Path: "algo.kl.horizon", Kind: Int, Default: is(10000), Range: atLeast(1), Unit: "trajectories", When: []Clause{adaptive},
			Help: "how slowly the adaptive controller moves"},
	})
}

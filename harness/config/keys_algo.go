package config

import (
	"maps"
	"slices"

	"exp/train/rl"
)

// Keys of the algorithms. Where algo.kind gives no default (see algorithms), it is
// verl's current one (verl-project/verl @1dda039b9, verl-project/verl-recipe
// @48ea0a7) unless the help says otherwise.

func algoKeys() []Key {
	token := []Clause{except("algo.loss", "flowrl")}
	keys := []Key{
		{Path: "algo.kind", Kind: Enum, Words: kinds(), Stages: at(Train),
			Help: "the learning algorithm: defaults for the other keys of algo"},
		{Path: "algo.advantage", Kind: Enum, Words: estimators(func(rl.Estimator) bool { return true }), Default: byKind("algo.advantage", is("grpo")), Stages: at(Train), When: token,
			Help: "advantage estimator; score is the reward itself"},
		{Path: "algo.loss", Kind: Enum, Words: losses(func(rl.PolicyLoss) bool { return true }), Default: byKind("algo.loss", is("ppo")), Stages: at(Train),
			Help: "policy loss; ppo is verl's vanilla, reinforce its gpg, gmpo its geo_mean"},
		{Path: "algo.epochs", Kind: Int, Default: byKind("algo.epochs", is(1)), Range: atLeast(1), Unit: "passes", Stages: at(Train),
			Help: "passes over the trajectories of a step"},
	}
	keys = append(keys, flowrlKeys()...)
	keys = append(keys, lossKeys()...)
	keys = append(keys, advantageKeys()...)
	keys = append(keys, klKeys(token)...)
	keys = append(keys, Key{Path: "algo.entropy_coef", Kind: Float, Default: byKind("algo.entropy_coef", is(0.0)), Range: atLeast(0), Stages: at(Train), When: token,
		Help: "weight of the entropy bonus; with the loss megatron of -p log p of the sampled token, which estimates no entropy"})
	keys = append(keys, block(nil, at(Train), []Key{
		{Path: "algo.aggregation", Kind: Enum, Default: byKind("algo.aggregation", is("token-mean")),
			When:  []Clause{{{Path: "algo.loss", Words: []string{"flowrl"}, Not: true}, {Path: "algo.flowrl.terms", Words: []string{"token"}}, {Path: "algo.flowrl.surrogate", Above: true}}},
			Words: []string{"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"},
			Help:  "how token losses of a mini-batch become one number; gmpo has its own for the policy term"},
		{Path: "algo.loss_scale_factor", Kind: Float, Default: sameAs("rollout.max_new_tokens"), Range: above(0), Unit: "tokens",
			When: []Clause{only("algo.aggregation", "seq-mean-token-sum-norm")},
			Help: "what seq-mean-token-sum-norm divides by; the longest completion, where upstream takes the width of the padded batch"},
	})...)
	return append(keys, batchKeys()...)
}

// flowrlPresets are the names of FlowRL's variants, the recipe first.
func flowrlPresets() []string {
	names := slices.Sorted(maps.Keys(rl.FlowRLVariants()))
	at := slices.Index(names, "recipe")
	return slices.Insert(slices.Delete(names, at, at+1), 0, "recipe")
}

// byVariant is the default that FlowRL's preset gives: the recipe's, and that of each
// variant that differs. nil stands for null.
func byVariant(value func(v rl.FlowRLVariant) any) Default {
	fixed := func(x any) Default {
		if x == nil {
			return null()
		}
		return is(x)
	}
	variants := rl.FlowRLVariants()
	recipe := value(variants["recipe"])
	var cases []Case
	for _, name := range flowrlPresets() {
		if x := value(variants[name]); x != recipe {
			cases = append(cases, when(name, fixed(x)))
		}
	}
	if cases == nil {
		return fixed(recipe)
	}
	return by("algo.flowrl.preset", fixed(recipe), cases...)
}

func flowrlKeys() []Key {
	with := []Clause{positive("algo.flowrl.use_logz")}
	return block([]Clause{only("algo.loss", "flowrl")}, at(Train), []Key{
		{Path: "algo.flowrl.preset", Kind: Enum, Words: flowrlPresets(), Default: is("recipe"), Role: Expanded,
			Help: "which published FlowRL: verl's recipe (w <= 10), the released code (w unclipped), the paper (w in 1 +- 0.2), or a variant of the authors' branches"},
		{Path: "algo.flowrl.beta", Kind: Float, Default: byVariant(func(v rl.FlowRLVariant) any { return v.Loss.Beta }), Range: above(0), Help: "scale of the reward in the residual"},
		{Path: "algo.flowrl.use_logz", Kind: Bool, Default: byVariant(func(v rl.FlowRLVariant) any { return v.Loss.UseLogZ }),
			Help: "learn log Z of each prompt; false sets it to 0 and installs no head"},
		{Path: "algo.flowrl.logz.layers", Kind: Int, Default: is(3), Range: between(1, 64), Unit: "layers", When: with,
			Help: "linear layers of the log Z head"},
		{Path: "algo.flowrl.logz.dropout", Kind: Float, Default: is(0.1), Range: atLeast(0).below(1), Unit: "fraction", When: with,
			Help: "dropout in the head during updates"},
		{Path: "algo.flowrl.logz.pool", Kind: Enum, Words: []string{"drop_last", "all"}, Default: is("drop_last"), When: with,
			Help: "prompt positions whose hidden states are averaged; upstream drops the last one"},
		{Path: "algo.flowrl.logz.detach", Kind: Bool, Default: is(false), When: with, Help: "stop the head's gradient at the hidden states"},
		{Path: "algo.flowrl.weight.level", Kind: Enum, Words: []string{"sum", "mean"},
			Default: byVariant(func(v rl.FlowRLVariant) any {
				return map[rl.Level]string{rl.WeightSum: "sum", rl.WeightMean: "mean"}[v.Loss.WeightLevel]
			}),
			Help: "importance weight from the sum or from the mean of a completion's log-ratios"},
		{Path: "algo.flowrl.weight.low", Kind: Float, Default: byVariant(func(v rl.FlowRLVariant) any { return v.Loss.WeightLow }), Range: atLeast(0), Help: "lower limit of the weight"},
		{Path: "algo.flowrl.weight.high", Kind: Float, Null: true, Default: byVariant(weightHigh), Range: above(0), Help: "upper limit of the weight; null is none"},
		{Path: "algo.flowrl.reference", Kind: Enum, Words: []string{"ref", "old", "none"},
			Default: byVariant(func(v rl.FlowRLVariant) any { return []string{"", "ref", "old", "none"}[v.Loss.Reference] }),
			Help:    "policy in the residual: the frozen start, the policy before the step, or none"},
		{Path: "algo.flowrl.reward", Kind: Enum, Words: []string{"advantage", "adv_no_std", "raw"}, Default: byVariant(flowReward),
			Help: "reward in the residual: group-normalised, group-centered, or as graded"},
		{Path: "algo.flowrl.token_mask", Kind: Enum, Words: []string{"none", "cispo"},
			Default: byVariant(func(v rl.FlowRLVariant) any { return []string{"", "none", "cispo"}[v.Loss.TokenMask] }),
			Help:    "cispo leaves out tokens whose ratio has moved beyond [0.8, 1.28] in the direction of the advantage"},
		{Path: "algo.flowrl.terms", Kind: Enum, Words: []string{"row", "token"},
			Default: byVariant(func(v rl.FlowRLVariant) any { return []string{"row", "token"}[v.Loss.Terms] }),
			Help:    "residual of a completion by the means of its tokens, or of each token"},
		{Path: "algo.flowrl.mean_clip", Kind: Enum, Words: []string{"none", "both", "gspo"},
			Default: byVariant(func(v rl.FlowRLVariant) any { return []string{"none", "both", "gspo"}[v.Loss.MeanClip] }),
			Help:    "bound the log-prob in the residual by algo.clip around the old one: never, on both sides, or where GSPO clips"},
		{Path: "algo.flowrl.surrogate", Kind: Bool, Default: byVariant(func(v rl.FlowRLVariant) any { return v.Loss.Surrogate }),
			Help: "add PPO's clipped loss with the residual for an advantage"},
		{Path: "algo.flowrl.ratio_fractions", Kind: Bool, Default: byVariant(func(v rl.FlowRLVariant) any { return v.Loss.RatioFractions }),
			Help: "record the first release's fractions of tokens whose ratio to the reference is beyond algo.clip"},
	})
}

// weightHigh is nil for no limit.
func weightHigh(v rl.FlowRLVariant) any {
	if v.Loss.WeightHigh > 1e300 {
		return nil
	}
	return v.Loss.WeightHigh
}

func flowReward(v rl.FlowRLVariant) any {
	if v.Scale {
		return "advantage"
	}
	return "adv_no_std"
}

// lossKeys are the settings of single losses.
func lossKeys() []Key {
	clipped := append(lossReads("clip.low"), Clause{
		{Path: "algo.flowrl.mean_clip", Words: []string{"both", "gspo"}}, {Path: "algo.flowrl.surrogate", Above: true}, {Path: "algo.flowrl.ratio_fractions", Above: true}}...)
	limit := func(path string, of func(c rl.Clip) float64) Default {
		var cases []Case
		for _, name := range flowrlPresets() {
			if c := rl.FlowRLVariants()[name].Loss.Clip; c != (rl.Clip{}) {
				cases = append(cases, when(name, is(of(c))))
			}
		}
		return by("algo.flowrl.preset", byKind(path, is(0.2)), cases...)
	}
	sapo := lossReads("sapo")
	return block(nil, at(Train), []Key{
		{Path: "algo.clip.low", Kind: Float, Default: limit("algo.clip.low", func(c rl.Clip) float64 { return c.Low }), Range: above(0).upTo(1), When: []Clause{clipped},
			Help: "the ratio is clipped at 1 - this; in gmpo its log at -this, in dppo it bounds the fall of a probability"},
		{Path: "algo.clip.high", Kind: Float, Default: limit("algo.clip.high", func(c rl.Clip) float64 { return c.High }), Range: above(0), When: []Clause{clipped},
			Help: "the ratio is clipped at 1 + this; in gmpo its log at this, in dppo it bounds the rise of a probability"},
		{Path: "algo.clip.dual", Kind: Float, Null: true, Default: byKind("algo.clip.dual", is(3.0)), Range: above(1), When: []Clause{lossReads("clip.dual")},
			Help: "dual clip: largest ratio that counts where the advantage is negative, in dppo everywhere; null is off"},
		{Path: "algo.sapo.tau_pos", Kind: Float, Default: byKind("algo.sapo.tau_pos", is(1.0)), Range: above(0), When: []Clause{sapo}, Help: "steepness of the gate where the advantage is positive"},
		{Path: "algo.sapo.tau_neg", Kind: Float, Default: byKind("algo.sapo.tau_neg", is(1.05)), Range: above(0), When: []Clause{sapo}, Help: "steepness of the gate elsewhere"},
		{Path: "algo.cov.ratio", Kind: Float, Default: byKind("algo.cov.ratio", is(2e-4)), Range: above(0).upTo(1), Unit: "fraction",
			When: []Clause{lossReads("cov.ratio")}, Help: "share of a mini-batch's tokens that are picked, at least one"},
		{Path: "algo.cov.low", Kind: Float, Default: byKind("algo.cov.low", is(1.0)), When: []Clause{lossReads("cov.low")}, Help: "covariance above which clip_cov picks"},
		{Path: "algo.cov.high", Kind: Float, Default: byKind("algo.cov.high", is(5.0)), When: []Clause{lossReads("cov.high")}, Help: "covariance below which clip_cov picks"},
		{Path: "algo.cov.kl_weight", Kind: Float, Default: byKind("algo.cov.kl_weight", is(0.1)), Range: atLeast(0), When: []Clause{lossReads("cov.kl_weight")}, Help: "weight of |D| on the tokens that kl_cov picks"},
		{Path: "algo.dro.beta", Kind: Float, Range: above(0), When: []Clause{lossReads("dro")}, Help: "weight of the quadratic penalty, over 2"},
	})
}

// advantageKeys are the settings of single estimators.
func advantageKeys() []Key {
	critic := []Clause{estimatorReads("critic")}
	keys := block(nil, at(Train), []Key{
		{Path: "algo.scale_std", Kind: Bool, Default: byKind("algo.scale_std", is(true)), When: []Clause{estimatorReads("scale_std")},
			Help: "divide advantages by the group's standard deviation (GRPO); false is Dr. GRPO, arXiv:2503.20783"},
		{Path: "algo.gdpo.weights", Kind: Float, List: true, Default: is([]float64{}), When: []Clause{estimatorReads("gdpo.weights")},
			Help: "weights of reward.components, in their order; none is 1 for each"},
		{Path: "algo.token_baseline.keep_tail", Kind: Bool, Default: is(false), When: []Clause{estimatorReads("token_baseline")},
			Help: "where only the longest completion of a group reaches, take its own return for the baseline, so that its advantage is 0 there; otherwise the baseline is 0"},
		{Path: "algo.variance_proxies", Kind: Bool, Default: is(false),
			Help: "record verl's variance_proxy metrics, the share of noise in a step's gradient; costs a forward pass. The token baselines always do"},
		{Path: "algo.gamma", Kind: Float, Default: byKind("algo.gamma", is(1.0)), Range: between(0, 1), When: []Clause{estimatorReads("gamma")}, Help: "discount per token"},
		{Path: "algo.lambda", Kind: Float, Default: byKind("algo.lambda", is(1.0)), Range: between(0, 1), When: []Clause{estimatorReads("lambda")}, Help: "lambda of generalised advantage estimation"},
		{Path: "algo.critic.warmup_steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "steps", When: critic,
			Help: "steps in which only the critic learns, before the policy does"},
		{Path: "algo.critic.clip_value", Kind: Float, Default: is(0.5), Range: above(0), When: critic,
			Help: "how far a value may move from the old one before its loss is clipped"},
	})
	keys = append(keys, adamw("algo.critic.optim", "steps", is(1e-5), critic, Train)...)
	return append(keys, block([]Clause{estimatorReads("pf_ppo")}, at(Train), []Key{
		{Path: "algo.pf_ppo.method", Kind: Enum, Words: []string{"none", "pow", "max_min", "max_random"}, Default: byKind("algo.pf_ppo.method", is("none")),
			Help: "PF-PPO, arXiv:2409.06957: draw the step's completions again by their scores: none, |S|^power, the best and the worst, or mostly the best"},
		{Path: "algo.pf_ppo.power", Kind: Float, Default: byKind("algo.pf_ppo.power", is(2.0)), Range: between(0, 64), When: []Clause{only("algo.pf_ppo.method", "pow")}, Help: "power of the score"},
	})...)
}

func klKeys(token []Clause) []Key {
	estimators := []string{"k1", "k2", "k3", "abs"}
	straight := append(slices.Clone(estimators), "k1+", "k2+", "k3+", "abs+")
	loss, reward := positive("algo.kl.loss_coef"), positive("algo.kl.reward_coef")
	own := except("algo.loss", "megatron")
	adaptive := only("algo.kl.controller", "adaptive")
	return block(token, at(Train), []Key{
		{Path: "algo.kl.loss_coef", Kind: Float, Default: byKind("algo.kl.loss_coef", is(0.0)), Range: atLeast(0), Help: "weight of KL(policy, reference) in the loss"},
		{Path: "algo.kl.loss_estimator", Kind: Enum, Words: straight, Default: is("k3"), When: []Clause{loss, own},
			Help: "estimator of that KL; with + it has the gradient of k2, which is the KL's (k3 without bounds in the loss megatron)"},
		{Path: "algo.kl.reward_coef", Kind: Float, Default: is(0.0), Range: atLeast(0), Help: "weight of the KL subtracted from token rewards"},
		{Path: "algo.kl.reward_estimator", Kind: Enum, Words: estimators, Default: is("k1"), When: []Clause{reward}, Help: "estimator of that KL"},
		{Path: "algo.kl.controller", Kind: Enum, Words: []string{"fixed", "adaptive"}, Default: is("fixed"), When: []Clause{reward},
			Help: "keep reward_coef, or steer it so that the KL reaches target"},
		{Path: "algo.kl.target", Kind: Float, Default: is(0.1), Range: above(0), Unit: "nats", When: []Clause{adaptive}, Help: "KL that the adaptive controller aims at"},
		{Path: "algo.kl.horizon", Kind: Int, Default: is(10000), Range: atLeast(1), Unit: "trajectories", When: []Clause{adaptive},
			Help: "how slowly the adaptive controller moves"},
	})
}

package config

import (
	"cmp"
	"slices"
	"strings"

	"exp/train/rl"
)

// Keys that every algorithm has, and the settings that estimators and losses declare.
// Defaults that algo.kind does not set (see algorithms) are verl's (verl-project/verl
// @1dda039b9, verl-project/verl-recipe @48ea0a7) unless the help says otherwise.

func algoKeys() []Key {
	token := []Clause{except("algo.loss", losses(func(l rl.PolicyLoss) bool { return l.Advantages != nil })...)}
	keys := []Key{
		{Path: "algo.kind", Kind: Enum, Words: kinds(), Stages: at(Train),
			Help: "the learning algorithm; it sets the defaults of the other algo keys"},
		{Path: "algo.advantage", Kind: Enum, Words: estimators(func(rl.Estimator) bool { return true }),
			Default: byKind("algo.advantage", is("grpo")), Stages: at(Train), When: token,
			Help: "advantage estimator; score is the reward itself, none learns nothing from rewards"},
		{Path: "algo.loss", Kind: Enum, Words: losses(func(rl.PolicyLoss) bool { return true }),
			Default: byKind("algo.loss", is("ppo")), Stages: at(Train),
			Help: "policy loss; ppo is verl's vanilla, reinforce its gpg, gmpo its geo_mean"},
		{Path: "algo.epochs", Kind: Int, Default: byKind("algo.epochs", is(1)), Range: atLeast(1), Unit: "passes",
			Stages: at(Train),
			Help:   "passes over the trajectories of a step"},
	}
	keys = append(keys, settingKeys("algo.loss", lossReaders())...)
	keys = append(keys, estimatorKeys()...)
	keys = append(keys, klKeys(token)...)
	keys = append(keys, distillKeys(token)...)
	keys = append(keys, Key{Path: "algo.entropy_coef", Kind: Float, Default: byKind("algo.entropy_coef", is(0.0)),
		Range: atLeast(0), Stages: at(Train), When: token,
		Help: "weight of the entropy bonus; the loss megatron takes -p log p of the sampled token, which does not " +
			"estimate the entropy"})
	keys = append(keys, Key{Path: "algo.sft_weight", Kind: Float, Default: byKind("algo.sft_weight", is(0.0)),
		Range: atLeast(0), Stages: at(Train), When: token, Late: true,
		Help: "weight of the mean negative log-prob of the tokens of right completions in the loss (VAPO's positive " +
			"example LM loss); 0 is off"})
	keys = append(keys, demonstrationKeys(token)...)
	keys = append(keys, block(nil, at(Train), []Key{
		{Path: "algo.aggregation", Kind: Enum, Default: byKind("algo.aggregation", is("token-mean")),
			When: []Clause{{{Path: "algo.loss", Words: []string{"flowrl"}, Not: true},
				{Path: "algo.flowrl.terms", Words: []string{"token"}}, {Path: "algo.flowrl.surrogate", Above: true}}},
			Words: []string{"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm",
				"seq-mean-token-mean"},
			Help: "how the token losses of a mini-batch combine into one number; " + ownMeans() + " combine their " +
				"policy terms in ways of their own"},
		{Path: "algo.loss_scale_factor", Kind: Float, Default: sameAs("rollout.max_new_tokens"), Range: above(0),
			Unit: "tokens",
			When: []Clause{only("algo.aggregation", "seq-mean-token-sum-norm")},
			Help: "divisor of seq-mean-token-sum-norm; defaults to the longest completion, upstream to the width of " +
				"the padded batch"},
	})...)
	return append(keys, batchKeys()...)
}

// ownMeans lists the losses that algo.aggregation does not combine.
func ownMeans() string {
	names := losses(func(l rl.PolicyLoss) bool { return l.OwnMean })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// blockOrder is the order of the estimators' keys in configurations, by the first part
// of their names. Unlisted keys come last.
func blockOrder() []string {
	return []string{"scale_std", "gdpo", "token_baseline", "variance_proxies", "gamma", "lambda", "lambda_alpha",
		"critic", "prime", "pf_ppo"}
}

// estimatorKeys returns the settings of estimators, including the critic's optimizer.
func estimatorKeys() []Key {
	keys := settingKeys("algo.advantage", estimatorReaders())
	keys = append(keys, Key{Path: "algo.variance_proxies", Kind: Bool, Default: is(false), Stages: at(Train),
		Help: "record verl's variance_proxy metrics, the share of noise in a step's gradient; costs a forward " +
			"pass. The token baselines always record them"})
	critic := []Clause{only("algo.advantage", estimators(func(e rl.Estimator) bool { return e.Values })...)}
	keys = append(keys, optimizer("algo.critic.optim", "steps", is(1e-5), critic, Train)...)
	keys = append(keys, primeKeys()...)
	place := func(k Key) int {
		first, _, _ := strings.Cut(strings.TrimPrefix(k.Path, "algo."), ".")
		if i := slices.Index(blockOrder(), first); i >= 0 {
			return i
		}
		return len(blockOrder())
	}
	slices.SortStableFunc(keys, func(a, b Key) int { return cmp.Compare(place(a), place(b)) })
	return keys
}

// primeKeys returns the keys of PRIME's process reward model, except its settings. verl's recipe has the same
// defaults of the optimizer.
func primeKeys() []Key {
	prime := []Clause{only("algo.advantage", ofProcess()...)}
	keys := block(prime, at(Train), []Key{
		{Path: "algo.prime.model", Kind: String, Role: External, Default: is(StartWeights),
			Pattern: pattern("start, a path, or hub:ORG/NAME@REVISION", `.+`),
			Help: "the process reward model at first: start, the weights that training starts from, or the folder " +
				"of a model of the policy's architecture; its rewards are log-ratios to algo.reference"},
		{Path: "algo.prime.prompts_per_update", Kind: Int, Default: sameAs("train.prompts_per_update"),
			Range: atLeast(1), Unit: "problems",
			Help: "problems, with all their completions, in one update of the process reward model; divides " +
				"prompts_per_step (verl's mini_batch_size counts completions)"},
	})
	for _, k := range optimizer("algo.prime.optim", "steps", is(1e-6), prime, Train) {
		switch k.Path {
		case "algo.prime.optim.weight_decay":
			k.Default = is(0.0)
		case "algo.prime.optim.grad_clip":
			k.Default = is(10.0)
		}
		keys = append(keys, k)
	}
	return keys
}

// aboutPrime returns help that does not fit on a key's help line; empty for most keys.
func aboutPrime(path string) string {
	if path != "algo.prime.loss" {
		return ""
	}
	return `
  R is the reward of a completion: beta times the sum over its tokens of logprob - reference
  logprob. Its side is 1 if its verdict is right, else -1. The loss of a completion is

    weight * -log sigmoid(side * (R - other))          mean over a mini-batch's completions

           other                                       weight
  ce       0: cross entropy of the verdict             1
  dpo      mean R of the problem's completions of      1
           the other verdict; 0 without any
  bon_acc  as dpo                                      n * p^(n-1), p the share of the problem's n
                                                       completions of no better verdict
  bon_rm   as dpo                                      the same, p the share with no greater R

  other and weight are of the model before the step's updates. All but ce need a further
  pass over the completions where algo.prime.update is before.
`
}

// ofProcess lists the estimators with a process reward model.
func ofProcess() []string { return estimators(func(e rl.Estimator) bool { return e.Process }) }

// distillKeys returns the keys of the reference policy, and of learning from it as from a teacher.
func distillKeys(token []Clause) []Key {
	coef := positive("algo.distill.coef")
	keys := block(token, at(Train), []Key{
		{Path: "algo.distill.coef", Kind: Float, Default: byKind("algo.distill.coef", is(0.0)), Range: atLeast(0),
			Late: true,
			Help: "weight of reference logprob - old logprob, which each token's advantage gains: on-policy " +
				"distillation, beside what algo.advantage makes of rewards; 0 is off"},
		{Path: "algo.distill.top_k", Kind: Int, Default: is(0), Range: between(0, rl.MaxTopK), Unit: "tokens",
			When: []Clause{coef}, Late: true,
			Help: "learn this many of the reference's likeliest tokens at each place: coef then weighs their " +
				"forward KL in the loss, 0 where that sum over some tokens is negative (verl's forward_kl_topk); " +
				"0: only the sampled token, by its advantage"},
		{Path: "algo.distill.max", Kind: Float, Null: true, Default: null(), Range: above(0), Unit: "nats",
			When: []Clause{coef}, Late: true,
			Help: "bound of that difference on both sides, or of a token's forward KL, which then teaches nothing; " +
				"null: none"},
		{Path: "algo.distill.floor", Kind: Float, Null: true, Default: null(), Range: Range{}.below(0), Unit: "nats",
			When: []Clause{positive("algo.distill.top_k")}, Late: true,
			Help: "log-probs below it count as this in the forward KL, and the policy's then learn nothing; " +
				"null: none"},
	})
	read := Clause{{Path: "algo.kl.loss_coef", Above: true}, {Path: "algo.kl.reward_coef", Above: true},
		{Path: "algo.distill.coef", Above: true}, {Path: "algo.flowrl.reference", Words: []string{"ref"}},
		{Path: "algo.gvpo.reference", Words: []string{"ref"}}, {Path: "algo.dpo.reference", Words: []string{"ref"}},
		{Path: "algo.flowrl.ratio_fractions", Above: true}, {Path: "algo.advantage", Words: ofProcess()}}
	return append(keys, Key{Path: "algo.reference", Kind: String, Role: External, Default: is(StartWeights),
		Late: true, Stages: at(Train), When: []Clause{read}, Pattern: pattern("start, a path, or "+
			"hub:ORG/NAME@REVISION", `.+`),
		Help: "the reference policy: start, the weights that training starts from, or a teacher: the folder of " +
			"another model with the same tokens, of any size"},
		Key{Path: "algo.teachers", Kind: String, List: true, Role: External, Default: is([]string{}), Late: true,
			Stages: at(Train), When: []Clause{read}, Pattern: pattern("a path, or hub:ORG/NAME@REVISION", `.+`),
			Help: "further teachers, folders: each is the reference policy of the problems whose data_source (or " +
				"algo.teacher_key) is its entry in algo.teacher_sources; the others keep algo.reference"},
		Key{Path: "algo.teacher_sources", Kind: String, List: true, Default: is([]string{}), Late: true,
			Stages: at(Train), When: []Clause{positive("algo.teachers")},
			Pattern: pattern("the data_source of problems", `.+`),
			Help: "for each of algo.teachers, the data_source of the problems that it teaches, or what they have in " +
				"algo.teacher_key"},
		Key{Path: "algo.teacher_key", Kind: String, Default: is(DataSource), Late: true, Stages: at(Train),
			When:    []Clause{positive("algo.teachers")},
			Pattern: pattern("data_source, a column of data.keep, or a field of one, such as extra_info.task", `.+`),
			Help: "what chooses a problem's teacher: its data_source, or another column of its file (verl's " +
				"teacher_key)"},
		Key{Path: "algo.reference_every", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "steps", Late: true,
			Stages: at(Train), When: []Clause{read, only("algo.reference", StartWeights)},
			Help: "after every so many steps the policy becomes the reference policy (ProRL's hard reset, " +
				"arXiv:2505.24864); 0: it stays the start"},
		Key{Path: "algo.reference_mix", Kind: Float, Default: is(1.0), Range: above(0).upTo(1), Unit: "fraction",
			Late: true, Stages: at(Train), When: []Clause{positive("algo.reference_every")},
			Help: "the new reference is mix * policy + (1 - mix) * reference, weight by weight (TR-DPO, " +
				"arXiv:2404.09656; 0.6 in TRL); 1 is the policy"},
		Key{Path: "algo.reference_resets_optimizer", Kind: Bool, Default: is(false), Late: true, Stages: at(Train),
			When: []Clause{positive("algo.reference_every")},
			Help: "the policy's optimizer forgets its moments whenever the reference is renewed (ProRL)"})
}

// DataSource is the value of algo.teacher_key for the data set that a problem comes from.
const DataSource = "data_source"

// StartWeights is the value of algo.reference for the weights that training starts from.
const StartWeights = "start"

func klKeys(token []Clause) []Key {
	estimators := []string{"k1", "k2", "k3", "abs"}
	straight := append(slices.Clone(estimators), "k1+", "k2+", "k3+", "abs+")
	loss, reward := positive("algo.kl.loss_coef"), positive("algo.kl.reward_coef")
	own := except("algo.loss", losses(func(l rl.PolicyLoss) bool { return l.Whole && l.Advantages == nil })...)
	part := except("algo.loss", losses(func(l rl.PolicyLoss) bool { return l.Whole })...)
	adaptive := only("algo.kl.controller", "adaptive")
	return block(token, at(Train), []Key{
		{Path: "algo.kl.loss_coef", Kind: Float, Default: byKind("algo.kl.loss_coef", is(0.0)), Range: atLeast(0),
			Help: "weight of KL(policy, reference) in the loss"},
		{Path: "algo.kl.loss_estimator", Kind: Enum, Words: straight, Default: is("k3"), When: []Clause{loss, own},
			Help: "estimator of that KL; with + it has the gradient of k2, the KL's own (in the loss " +
				"megatron k3 is not clamped)"},
		{Path: "algo.kl.loss_weighted", Kind: Bool, Default: is(false), When: []Clause{loss, part}, Late: true,
			Help: "multiply that estimate by policy / old policy, so that its gradient is the KL's own also for " +
				"completions of an older policy (DeepSeek-V3.2); not with +"},
		{Path: "algo.kl.reward_coef", Kind: Float, Default: is(0.0), Range: atLeast(0),
			Help: "weight of the KL subtracted from token rewards"},
		{Path: "algo.kl.reward_estimator", Kind: Enum, Words: estimators, Default: is("k1"), When: []Clause{reward},
			Help: "estimator of that KL"},
		{Path: "algo.kl.controller", Kind: Enum, Words: []string{"fixed", "adaptive"}, Default: is("fixed"),
			When: []Clause{reward},
			Help: "keep reward_coef, or steer it so that the KL reaches target"},
		{Path: "algo.kl.target", Kind: Float, Default: is(0.1), Range: above(0), Unit: "nats",
			When: []Clause{adaptive}, Help: "target KL of the adaptive controller"},
		{Path: "algo.kl.horizon", Kind: Int, Default: is(10000), Range: atLeast(1), Unit: "trajectories",
			When: []Clause{adaptive},
			Help: "how slowly the adaptive controller moves"},
	})
}

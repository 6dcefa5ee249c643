package config

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"exp/train/rl"
)

// batchKeys returns the keys for preparing a step's completions before learning. They
// work with every loss.
func batchKeys() []Key {
	filtered := []Clause{except("algo.filter_groups.metric", "none")}
	accuracy := []Clause{only("algo.filter_groups.metric", "acc")}
	keys := block(nil, at(Train), []Key{
		{Path: "algo.filter_groups.metric", Kind: Enum, Words: []string{"none", "acc", "score", "seq_reward",
			"seq_final_reward"}, Default: byKind("algo.filter_groups.metric", is("none")),
			Help: "replace problems whose completions all agree in correctness, in reward, in reward with the " +
				"overlong penalty, or in that less the KL (algo.kl.reward_coef)"},
		{Path: "algo.filter_groups.max_batches", Kind: Int, Default: byKind("algo.filter_groups.max_batches", is(10)),
			Range: atLeast(1), Unit: "batches", When: filtered,
			Help: "most batches of prompts_per_step problems that a step samples; then problems that failed the " +
				"filter fill it up (upstream stops)"},
		{Path: "algo.filter_groups.spread", Kind: Float, Default: is(0.0), Range: atLeast(0), Late: true,
			When: []Clause{only("algo.filter_groups.metric", "score", "seq_reward", "seq_final_reward")},
			Help: "replace problems, too, whose rewards' standard deviation is below this times its moving average " +
				"over the steps before (RLPR, arXiv:2506.18254: 0.5 to 1); 0 is off"},
		{Path: "algo.filter_groups.low", Kind: Float, Default: byKind("algo.filter_groups.low", is(0.0)),
			Range: between(0, 1), Unit: "fraction", When: accuracy, Late: true,
			Help: "least share of right completions of a problem that passes (PRIME: 0.2)"},
		{Path: "algo.filter_groups.high", Kind: Float, Default: byKind("algo.filter_groups.high", is(1.0)),
			Range: above(0).upTo(1), Unit: "fraction", When: accuracy, Late: true,
			Help: "greatest share of right completions of a problem that passes (PRIME: 0.8)"},
		{Path: "algo.filter_groups.complete", Kind: Bool, Default: is(false), When: filtered, Late: true,
			Help: "also replace problems with a completion that rollout.max_new_tokens cut off"},
		{Path: "algo.overlong.buffer", Kind: Float, Default: byKind("algo.overlong.buffer", is(0.0)),
			Range: between(0, 1), Unit: "fraction",
			Help: "share of rollout.max_new_tokens, rounded to whole tokens, at the end, over which the reward " +
				"falls with length; 0 is off"},
		{Path: "algo.overlong.penalty", Kind: Float, Default: byKind("algo.overlong.penalty", is(1.0)),
			Range: above(0), When: []Clause{positive("algo.overlong.buffer")},
			Help: "reward that a completion of max_new_tokens loses"},
		{Path: "algo.mask_truncated", Kind: Bool, Default: is(false), Late: true,
			Help: "do not train on completions that rollout.max_new_tokens cut off; their rewards count in " +
				"the group (DAPO's overlong filtering)"},
		{Path: "algo.top_entropy", Kind: Float, Default: is(1.0), Range: above(0).upTo(1), Unit: "fraction",
			Late: true, When: []Clause{only("algo.loss", losses(func(l rl.PolicyLoss) bool { return l.ByTokens })...)},
			Help: "share of a step's tokens that the policy loss reads: those at which the policy was least certain " +
				"(arXiv:2506.01939; 0.2 there)"},
		{Path: "algo.off_policy_bound", Kind: Float, Default: is(0.0), Range: atLeast(0), Unit: "nats",
			Late: true, When: []Clause{only("algo.loss", losses(func(l rl.PolicyLoss) bool { return l.ByTokens })...)},
			Help: "do not learn from negative advantages of a completion whose tokens the policy finds on average " +
				"so much less probable than the one that wrote them (DeepSeek-V3.2); 0 is off"},
	})
	return append(keys, correctionKeys()...)
}

// Making these tables takes longer than all other keys, and nobody changes them.
var (
	correctionPresets = sync.OnceValue(rl.CorrectionPresets)
	flowRLVariants    = sync.OnceValue(rl.FlowRLVariants)
)

// corrections returns the names of the rollout correction presets, the one that only
// measures first.
func corrections() []string {
	names := slices.Sorted(maps.Keys(correctionPresets()))
	at := slices.Index(names, "disabled")
	return slices.Insert(slices.Delete(names, at, at+1), 0, "disabled")
}

// byCorrection returns the default that the preset of rollout correction sets, or d if
// it sets none.
func byCorrection(d any, value func(c rl.Correction) (x any, ok bool)) Default {
	var cases []Case
	for _, name := range corrections() {
		if x, ok := value(correctionPresets()[name]); ok {
			cases = append(cases, when(name, is(x)))
		}
	}
	return by("algo.rollout_correction.preset", is(d), cases...)
}

// rejections returns the criteria that rl.ParseRejections knows; the last four come
// from older versions of verl.
func rejections() []string {
	return []string{"token_k1", "token_k2", "token_k3", "seq_sum_k1", "seq_sum_k2", "seq_sum_k3", "seq_mean_k1",
		"seq_mean_k2", "seq_mean_k3",
		"seq_max_k2", "seq_max_k3", "token", "sequence", "geometric", "token_veto"}
}

func correctionKeys() []Key {
	const at0 = "algo.rollout_correction."
	// Some variants of FlowRL weigh rollouts.
	var variants []Case
	for _, name := range rl.FlowRLPresets() {
		for _, preset := range corrections() {
			if c := flowRLVariants()[name].Rollout; preset != "disabled" &&
				reflect.DeepEqual(c, correctionPresets()[preset]) {
				variants = append(variants, when(name, is(preset)))
			}
		}
	}
	weighs := []Clause{except(at0+"weights", "none")}
	return block(nil, at(Train), []Key{
		{Path: at0 + "preset", Kind: Enum, Words: corrections(),
			Default: by("algo.flowrl.preset", is("disabled"), variants...), Role: Expanded,
			Help: "verl's presets for correcting rollouts of another policy; disabled only measures"},
		{Path: at0 + "mode", Kind: Enum, Words: []string{"decoupled", "bypass"},
			Default: byCorrection("decoupled", func(c rl.Correction) (any, bool) { return "bypass", c.Bypass != 0 }),
			Help: "decoupled corrects once, to the policy before the step; bypass in every loss, to the current " +
				"policy, with the sampler as the old one (losses ppo and reinforce)"},
		{Path: at0 + "weights", Kind: Enum, Words: []string{"none", "token", "sequence", "sequence_mean"},
			Default: byCorrection("none", func(c rl.Correction) (any, bool) {
				return []string{"none", "token", "sequence", "sequence_mean"}[c.Weights], c.Weights != rl.NoWeights
			}),
			Help: "importance weights of tokens, of completions, or their geometric mean; bypass with the loss ppo " +
				"does not apply them"},
		{Path: at0 + "weight_low", Kind: Float, Range: atLeast(0), When: weighs,
			Default: byCorrection(0.0, func(c rl.Correction) (any, bool) { return c.Low, c.Low != 0 }),
			Help: "weights outside [weight_low, weight_high] become 0 (IcePop); 0 truncates them at weight_high " +
				"instead"},
		{Path: at0 + "weight_high", Kind: Float, Range: above(0), When: weighs, Default: byCorrection(2.0,
			func(c rl.Correction) (any, bool) { return c.High, c.High != 0 && c.High != 2 }),
			Help: "upper limit of the weights"},
		{Path: at0 + "normalize", Kind: Bool, Default: is(false), When: weighs,
			Help: "divide the weights by their mean"},
		{Path: at0 + "reject", Kind: Enum, List: true, Words: rejections(),
			Default: byCorrection([]string{}, func(c rl.Correction) (any, bool) {
				var names []string
				for _, r := range c.Reject {
					names = append(names, r.String())
				}
				return names, names != nil
			}),
			Help: "criteria that a token, or its completion, must all pass to be trained on; the last four come " +
				"from older versions of verl"},
		{Path: at0 + "reject_bounds", Kind: String, List: true, Pattern: pattern("an upper bound, or low_high", `[0-9.eE+-]+(_[0-9.eE+-]+)?`),
			When: []Clause{positive(at0 + "reject")},
			Default: byCorrection([]string{}, func(c rl.Correction) (any, bool) {
				var bounds []string
				for _, r := range c.Reject {
					b := formatFloat(r.High)
					if r.Low > 0 {
						b = formatFloat(r.Low) + "_" + b
					}
					bounds = append(bounds, b)
				}
				return bounds, bounds != nil
			}),
			Help: "bounds of each criterion, or one for all: for k1 a ratio's low_high (one number u means 1/u_u), " +
				"for k2 and k3 an upper bound"},
	})
}

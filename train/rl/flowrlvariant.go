package rl

import "math"

// FlowRLVariant is a published form of FlowRL: settings of its residual, and of what the
// caller does beforehand.
type FlowRLVariant struct {
	Loss FlowRLConfig
	// Rollout computes the batch's Weight; the zero value computes none.
	Rollout Correction
	// Scale divides a group's advantages by their std (GroupAdvantage).
	Scale bool
}

// FlowRLVariants returns the published forms by name:
//
//	recipe            verl-recipe:flowrl at 48ea0a7: weight [0,10]
//	paper             arXiv:2509.15207v3 as described: weight [0.8,1.2]
//	release           the first release (Xuekai-Zhu/FlowRL at decbc57), vanilla of the author's branches
//	original_tb       the release's orignal_tb (sic): weight 1, Beta 1
//	ppo_style_tb      the release's: weight 1, and the surrogate
//
// and of the author's branches (Xuekai-Zhu/verl_FlowRL), whose clip is 0.2 below and
// 0.28 above:
//
//	clip_only         mean log-prob bounded on both sides
//	flowrl_clip       weight [0.8,1.28]
//	flowrl_clip_tis   the recipe times a sequence's truncated rollout weight
//	tis_clip          both weights geometric means, the first one in [0.8,1.28]
//	flowrl_gspo       mean log-prob bounded where GSPO clips; weight [0.8,1.28]
//	gspo_min10        its earlier copy: weight [0,10]
//	flowrl_cispo      tokens dropped; weight [0.8,1.28]
//	no_log_z          log Z is 0
//	old_policy        the old policy for a reference
//	old_policy_no_log_z  both
//	no_log_z_no_reference     the same of branch no-log-z, which subtracts no reference
//	no_std_norm       advantages without std
//	flowrl_token_level        both, per token; weight [0.8,1.28]
//	no_log_z_token_level      the same of branch no-log-z, which subtracts no reference
//
// dapo_clip is missing: its code reads an undefined name.
func FlowRLVariants() map[string]FlowRLVariant {
	variants := make(map[string]FlowRLVariant)
	add := func(name string, change func(v *FlowRLVariant)) {
		v := FlowRLVariant{Scale: true, Loss: FlowRLConfig{Beta: 15, UseLogZ: true,
			WeightLevel: WeightSum, WeightHigh: 10, Reference: ReferencePolicy, TokenMask: KeepAll}}
		change(&v)
		variants[name] = v
	}
	bounds := func(v *FlowRLVariant, low, high float64) { v.Loss.WeightLow, v.Loss.WeightHigh = low, high }
	branchClip := Clip{Low: 0.2, High: 0.28}

	add("recipe", func(*FlowRLVariant) {})
	add("paper", func(v *FlowRLVariant) { bounds(v, 0.8, 1.2) })
	add("release", func(v *FlowRLVariant) { bounds(v, 0, math.Inf(1)) })
	add("original_tb", func(v *FlowRLVariant) { bounds(v, 1, 1); v.Loss.Beta = 1 })
	add("ppo_style_tb", func(v *FlowRLVariant) {
		bounds(v, 1, 1)
		v.Loss.Surrogate, v.Loss.Clip = true, Clip{Low: 0.2, High: 0.2}
	})

	add("clip_only", func(v *FlowRLVariant) { v.Loss.MeanClip, v.Loss.Clip = ClipMean, branchClip })
	add("flowrl_clip", func(v *FlowRLVariant) { bounds(v, 0.8, 1.28) })
	add("flowrl_clip_tis", func(v *FlowRLVariant) { v.Rollout = Correction{Weights: SequenceWeights, High: 2} })
	add("tis_clip", func(v *FlowRLVariant) {
		bounds(v, 0.8, 1.28)
		v.Loss.WeightLevel, v.Rollout = WeightMean, Correction{Weights: GeometricWeights, High: 2}
	})
	add("flowrl_gspo", func(v *FlowRLVariant) {
		bounds(v, 0.8, 1.28)
		v.Loss.MeanClip, v.Loss.Clip = ClipMeanGSPO, branchClip
	})
	add("gspo_min10", func(v *FlowRLVariant) { v.Loss.MeanClip, v.Loss.Clip = ClipMeanGSPO, branchClip })
	add("flowrl_cispo", func(v *FlowRLVariant) { bounds(v, 0.8, 1.28); v.Loss.TokenMask = DropCISPO })

	add("no_log_z", func(v *FlowRLVariant) { v.Loss.UseLogZ = false })
	add("old_policy", func(v *FlowRLVariant) { v.Loss.Reference = OldPolicy })
	add("old_policy_no_log_z", func(v *FlowRLVariant) { v.Loss.UseLogZ, v.Loss.Reference = false, OldPolicy })
	add("no_log_z_no_reference", func(v *FlowRLVariant) { v.Loss.UseLogZ, v.Loss.Reference = false, NoReference })
	add("no_std_norm", func(v *FlowRLVariant) { v.Scale = false })
	perToken := func(r Reference) func(v *FlowRLVariant) {
		return func(v *FlowRLVariant) {
			bounds(v, 0.8, 1.28)
			v.Loss.UseLogZ, v.Loss.Reference, v.Loss.Terms = false, r, TokenTerms
		}
	}
	add("flowrl_token_level", perToken(OldPolicy))
	add("no_log_z_token_level", perToken(NoReference))
	return variants
}

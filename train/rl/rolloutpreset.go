package rl

// CorrectionPresets returns verl's named corrections (RolloutCorrectionConfig in
// verl/trainer/config/algorithm.py at 1dda039b9). decoupled_ corrects to the old policy,
// bypass_ has none; seq_ and token_ name the level of the weights; tis truncates them at 2,
// icepop zeroes them outside [0.5, 5]; geo_rs rejects rows whose geometric mean ratio
// leaves [0.999, 1.001], k3_rs rows with a mean k3 above 0.01. decoupled_seq_mean_is is
// FlowRL's tis_clip, not verl's.
func CorrectionPresets() map[string]Correction {
	geo := Rejection{SpanMean, KLK1, 0.999, 1.001}
	k3 := Rejection{SpanMean, KLK3, 0, 0.01}
	seqTIS := Correction{Weights: SequenceWeights, High: 2}
	tokenTIS := Correction{Weights: TokenWeights, High: 2}
	icepop := Correction{Weights: TokenWeights, Low: 0.5, High: 5}
	reject := func(c Correction, r ...Rejection) Correction { c.Reject = r; return c }
	bypass := func(loss BypassLoss, c Correction) Correction { c.Bypass = loss; return c }
	return map[string]Correction{
		"disabled": {},

		"decoupled_token_is":         tokenTIS,
		"decoupled_seq_is":           seqTIS,
		"decoupled_token_icepop":     icepop,
		"decoupled_seq_mean_is":      {Weights: GeometricWeights, High: 2},
		"decoupled_seq_is_rs":        reject(seqTIS, Rejection{SpanSum, KLK1, 0.5, 2}),
		"decoupled_geo_rs":           reject(Correction{}, geo),
		"decoupled_geo_rs_seq_tis":   reject(seqTIS, geo),
		"decoupled_geo_rs_token_tis": reject(tokenTIS, geo),
		"decoupled_k3_rs":            reject(Correction{}, k3),
		"decoupled_k3_rs_seq_tis":    reject(seqTIS, k3),
		"decoupled_k3_rs_token_tis":  reject(tokenTIS, k3),

		"bypass_ppo_clip":            bypass(BypassPPO, Correction{}),
		"bypass_ppo_clip_geo_rs":     bypass(BypassPPO, reject(Correction{}, geo)),
		"bypass_ppo_clip_k3_rs":      bypass(BypassPPO, reject(Correction{}, k3)),
		"bypass_pg_is":               bypass(BypassReinforce, seqTIS),
		"bypass_pg_token_icepop":     bypass(BypassReinforce, icepop),
		"bypass_pg_geo_rs":           bypass(BypassReinforce, reject(Correction{}, geo)),
		"bypass_pg_geo_rs_seq_tis":   bypass(BypassReinforce, reject(seqTIS, geo)),
		"bypass_pg_geo_rs_token_tis": bypass(BypassReinforce, reject(tokenTIS, geo)),
	}
}

package rl

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestGoldenFlowRL covers the recipe, the first release and the branches: each a
// variant by name, but for what the check of a function changes.
func TestGoldenFlowRL(t *testing.T) {
	check := func(variant string, changes ...func(c *goldenCase, f *FlowRLConfig)) goldenCheck {
		v, ok := FlowRLVariants()[variant]
		if !ok {
			t.Fatalf("no variant %q", variant)
		}
		return both(goldenFlowRL[float32](v, changes), goldenFlowRL[float64](v, changes))
	}
	gspo, gspoMin10 := check("flowrl_gspo"), check("gspo_min10")
	token, tokenNoReference := check("flowrl_token_level"), check("no_log_z_token_level")
	noLogZ, noReference := check("old_policy_no_log_z"), check("no_log_z_no_reference")
	goldenFamily(t, "flowrl_losses", map[string]goldenCheck{
		"FlowRLActor.compute_flowrl":         check("recipe"),
		"compute_flowrl":                     check("recipe"),
		"compute_flowrl_no_log_z":            check("no_log_z"),
		"compute_flowrl_with_old_policy":     check("old_policy"),
		"compute_flowrl_objective_vanilla":   check("release"),
		"compute_flowrl_objective":           check("release", releaseStatistics),
		"compute_orignal_tb_loss":            check("original_tb", releaseStatistics),
		"compute_ppo_style_tb_loss":          check("ppo_style_tb", releaseStatistics),
		"compute_flowrl_clip":                check("flowrl_clip"),
		"compute_flowrl_cispo_clip_ablation": check("flowrl_clip"),
		"compute_flowrl_cispo_clip":          check("flowrl_cispo"),
		"compute_flowrl_clip_with_tis":       check("flowrl_clip_tis"),
		"compute_flowrl_objective_tis_clip":  check("tis_clip"),
		"compute_flowrl_objective_clip_only": check("clip_only"),
		"flowrl_token_level":                 token,
		"compute_flowrl_old_policy_no_log_z": func(c *goldenCase) goldenResult {
			if strings.Contains(c.Name, "nologz_") {
				return noReference(c)
			}
			return noLogZ(c)
		},
		"compute_flowrl_old_policy_no_log_z_token_level": func(c *goldenCase) goldenResult {
			if strings.Contains(c.Name, "nologz_") {
				return tokenNoReference(c)
			}
			return token(c)
		},
		"compute_flowrl_objective_with_gspo_selection": func(c *goldenCase) goldenResult {
			if strings.Contains(c.Name, "gspo_min10") {
				return gspoMin10(c)
			}
			return gspo(c)
		},
	})
}

// releaseStatistics are the first release's, over padding and all.
func releaseStatistics(c *goldenCase, f *FlowRLConfig) {
	eps := c.param("clip_ratio", 0.2)
	f.RatioFractions, f.CountPadding, f.Clip = true, true, Clip{Low: eps, High: eps}
}

// goldenFlowRL runs a case under a variant as changed. Where a case has no log Z
// neither has the residual.
func goldenFlowRL[T Float](v FlowRLVariant, changes []func(c *goldenCase, f *FlowRLConfig)) func(c *goldenCase) goldenResult {
	return func(c *goldenCase) goldenResult {
		f := v.Loss
		f.UseLogZ = c.has("log_z")
		for _, change := range changes {
			change(c, &f)
		}
		first := func(names ...string) []T { // the first release has other names
			for _, n := range names {
				if c.has(n) {
					return input[T](c, n)
				}
			}
			return nil
		}
		b := &Batch[T]{
			Rows: c.rows("response_mask"), Mask: c.mask("response_mask"), Adv: first("reward", "advantages"),
			LogProb: first("log_prob", "logpf"), OldLogProb: first("old_log_prob", "logpf_old", "log_prob", "logpf"),
			RefLogProb: first("ref_log_prob", "logf_ref"), Weight: first("rollout_is_weights"),
		}
		if v.Rollout.Weights != NoWeights {
			r := v.Rollout
			r.High = c.param("tis_imp_ratio_cap", r.High)
			b.Weight = make([]T, len(b.Mask))
			Correct(b.Weight, make([]bool, len(b.Mask)), b.OldLogProb, input[T](c, "rollout_log_probs"), b.Mask, b.Rows, r, &CorrectionStats{})
		}
		b.Coef = goldenFlowRLCoefficients(c, b.Mask, b.Rows)
		var logZ, dlogZ []T
		if f.UseLogZ {
			logZ = input[T](c, "log_z")
			dlogZ = make([]T, len(logZ))
		}
		var s FlowRLStats
		grad := make([]T, len(b.Mask))
		FlowRL(grad, dlogZ, b, logZ, b.Rows.Len(), f, &s)
		return goldenResult{
			outputs: map[string][]float64{"loss": {s.Loss}},
			metrics: flowRLNames(c, s.Metrics()),
			grads:   map[string][]float64{"log_prob": widen(grad), "log_z": widen(dlogZ)},
		}
	}
}

// goldenFlowRLCoefficients returns the coefficients of a case: of the branch's
// aggregation, whose seq-mean modes count rows with nothing unmasked, or those
// of the masked mean of the release's surrogate.
func goldenFlowRLCoefficients(c *goldenCase, mask []bool, rows Rows) []float64 {
	coef := make([]float64, len(mask))
	n := Counts{Tokens: countTrue(mask), Rows: rows.Len(), Scale: float64(rows[1])}
	mode, err := ParseAggregation(c.text("loss_agg_mode"))
	if err == nil {
		mode.Coefficients(coef, mask, rows, n)
		return coef
	}
	for t, on := range mask {
		if on {
			coef[t] = 1 / (float64(n.Tokens) + meanEps)
		}
	}
	return coef
}

// flowRLNames adds the metrics under the names that some branches have for them.
func flowRLNames(c *goldenCase, m []Metric) []Metric {
	names := map[string][]string{
		"actor/log_prob": {"actor/logpf"}, "actor/ref_log_prob": {"actor/logp_ref"}, "actor/importance_weight_raw": {"actor/imp_weight_raw"},
		"actor/pg_clipfrac": {"actor/clip_frac_total"}, "actor/pg_clipfrac_high": {"actor/clip_frac_high"}, "actor/pg_clipfrac_low": {"actor/clip_frac_low"},
		"actor/clip_rate":      {"actor/gspo_clip_fraction"},
		"actor/clip_rate_high": {"actor/gspo_clip_high", "actor/actual_clip_high"}, "actor/clip_rate_low": {"actor/gspo_clip_low", "actor/actual_clip_low"},
	}
	if strings.Contains(c.Name, "ppo_style_tb") {
		names["actor/final_loss"] = []string{"actor/final_losses"}
	} else {
		names["actor/final_loss"] = []string{"actor/tb_loss"}
	}
	value := make(map[string]float64)
	for _, x := range m {
		value[x.Name] = x.Value
		for _, name := range names[x.Name] {
			value[name] = x.Value
		}
	}
	if strings.Contains(c.Name, "gspo_min10") { // means over rows under the names of those over tokens
		for _, name := range []string{"log_prob", "old_log_prob", "ref_log_prob", "log_reward"} {
			value["actor/"+name] = value["actor/seq_"+name]
		}
	}
	// The ablation logs the number of clipped rows, and that number per token.
	clipped := value["actor/clipped_high_count"] + value["actor/clipped_low_count"]
	value["actor/cispo_clipped_count"], value["actor/cispo_clip_ratio"] = clipped, clipped/(float64(countTrue(c.mask("response_mask")))+meanEps)
	var out []Metric
	for _, name := range slices.Sorted(maps.Keys(value)) {
		out = append(out, Metric{name, value[name]})
	}
	return out
}

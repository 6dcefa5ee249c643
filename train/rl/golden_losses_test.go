package rl

import (
	"math"
	"strings"
	"testing"
)

// TestGoldenPolicyLosses covers PPO's loss, alone and with entropy bonus and KL.
func TestGoldenPolicyLosses(t *testing.T) {
	goldenFamily(t, "policy_losses", map[string]goldenCheck{
		"vanilla":  both(goldenVanilla[float32], goldenVanilla[float64]),
		"ppo_loss": both(goldenActorLoss[float32], goldenActorLoss[float64]),
	})
}

func goldenBatch[T Float](c *goldenCase, params map[string]any) (b *Batch[T], ranks float64, err error) {
	b = &Batch[T]{
		Rows: c.rows("response_mask"), Mask: c.mask("response_mask"),
		LogProb: input[T](c, "log_prob"), OldLogProb: input[T](c, "old_log_prob"), Adv: input[T](c, "advantages"),
	}
	if c.has("rollout_is_weights") {
		b.Weight = input[T](c, "rollout_is_weights")
	}
	if c.has("ref_log_prob") {
		b.RefLogProb = input[T](c, "ref_log_prob")
	}
	b.Coef, ranks, err = goldenCoefficients(c, "response_mask", params)
	for i := range b.Coef {
		b.Coef[i] *= ranks
	}
	return b, ranks, err
}

func goldenClip(c *goldenCase) Clip {
	both := c.param("clip_ratio", 0.2)
	return Clip{Low: c.param("clip_ratio_low", both), High: c.param("clip_ratio_high", both), Dual: c.param("clip_ratio_c", 3)}
}

func goldenVanilla[T Float](c *goldenCase) goldenResult {
	global, _ := c.Params["global_batch_info"].(map[string]any)
	b, _, err := goldenBatch[T](c, global)
	if err != nil {
		return goldenResult{err: err}
	}
	var s PolicyStats
	grad := make([]T, len(b.Mask))
	PPO(grad, b, goldenClip(c), &s)
	return goldenResult{outputs: map[string][]float64{"loss": {s.Loss}}, metrics: s.Metrics(),
		grads: map[string][]float64{"log_prob": widen(grad)}}
}

// goldenActorLoss is the objective of verl's engine: policy loss, entropy bonus
// and KL loss with one set of coefficients.
func goldenActorLoss[T Float](c *goldenCase) goldenResult {
	if mode := c.text("loss_mode"); mode != "vanilla" {
		return goldenResult{notYet: "loss_mode " + mode}
	}
	b, _, err := goldenBatch[T](c, c.Params)
	if err != nil {
		return goldenResult{err: err}
	}
	kl, err := ParseKL(c.text("kl_loss_type"))
	if err != nil {
		return goldenResult{err: err}
	}
	entropyCoef, klCoef := c.param("entropy_coeff", 0), c.param("kl_loss_coef", 0)
	var s PolicyStats
	var entropy, klSum float64
	grad, dentropy := make([]T, len(b.Mask)), make([]T, len(b.Mask))
	PPO(grad, b, goldenClip(c), &s)
	KLLoss(grad, b, kl, klCoef, &klSum)
	EntropyBonus(dentropy, input[T](c, "entropy"), b.Mask, b.Coef, entropyCoef, &entropy)
	return goldenResult{
		outputs: map[string][]float64{"loss": {s.Loss - entropyCoef*entropy + klCoef*klSum}},
		metrics: append(s.Metrics(), Metric{"actor/entropy_loss", entropy}, Metric{"kl_loss", klSum}, Metric{"kl_coef", klCoef}),
		grads:   map[string][]float64{"log_prob": widen(grad), "entropy": widen(dentropy)},
		later:   []string{"metric_aggregation"}, // how verl combines micro-batches; ours carry the sums on
	}
}

// TestGoldenFlowRL covers the recipe and the variants that are settings of its
// residual.
func TestGoldenFlowRL(t *testing.T) {
	check := func(change func(c *goldenCase, f *FlowRLConfig)) goldenCheck {
		return both(goldenFlowRL[float32](change), goldenFlowRL[float64](change))
	}
	none := func(*goldenCase, *FlowRLConfig) {}
	bounds := func(lo, hi float64) func(*goldenCase, *FlowRLConfig) {
		return func(_ *goldenCase, f *FlowRLConfig) { f.WeightLow, f.WeightHigh = lo, hi }
	}
	old := func(_ *goldenCase, f *FlowRLConfig) { f.Reference = OldPolicy }
	goldenFamily(t, "flowrl_losses", map[string]goldenCheck{
		"FlowRLActor.compute_flowrl":         check(none),
		"compute_flowrl":                     check(none),
		"compute_flowrl_no_log_z":            check(none),
		"compute_flowrl_with_old_policy":     check(old),
		"compute_flowrl_old_policy_no_log_z": check(old),
		"compute_flowrl_objective_vanilla":   check(bounds(0, math.Inf(1))),
		"compute_flowrl_objective":           check(bounds(0, math.Inf(1))),
		"compute_flowrl_clip":                check(bounds(0.8, 1.28)),
		"compute_flowrl_cispo_clip_ablation": check(bounds(0.8, 1.28)),
		"compute_orignal_tb_loss":            check(func(_ *goldenCase, f *FlowRLConfig) { f.Beta, f.WeightLow, f.WeightHigh = 1, 1, 1 }),
		"compute_flowrl_cispo_clip": check(func(_ *goldenCase, f *FlowRLConfig) {
			f.WeightLow, f.WeightHigh, f.TokenMask = 0.8, 1.28, DropCISPO
		}),
	})
}

// goldenFlowRL runs a case under the recipe's settings as changed. Where a case
// has no log Z or no reference policy, neither has the residual.
func goldenFlowRL[T Float](change func(c *goldenCase, f *FlowRLConfig)) func(c *goldenCase) goldenResult {
	return func(c *goldenCase) goldenResult {
		f := recipe
		f.UseLogZ = c.has("log_z")
		change(c, &f)
		first := func(names ...string) []T { // the first release has other names
			for _, n := range names {
				if c.has(n) {
					return input[T](c, n)
				}
			}
			return nil
		}
		b := &Batch[T]{
			Rows: c.rows("response_mask"), Mask: c.mask("response_mask"), Adv: input[T](c, "reward"),
			LogProb: first("log_prob", "logpf"), OldLogProb: first("old_log_prob", "logpf_old", "log_prob", "logpf"),
			RefLogProb: first("ref_log_prob", "logf_ref"),
		}
		if strings.Contains(c.Name, "nologz_compute_flowrl_old_policy_no_log_z") {
			// This branch subtracts no policy at all: a reference of probability 1.
			f.Reference, b.RefLogProb = ReferencePolicy, make([]T, len(b.Mask))
		}
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
			metrics: withFirstReleaseNames(s.Metrics()),
			grads:   map[string][]float64{"log_prob": widen(grad), "log_z": widen(dlogZ)},
			later: []string{
				// Statistics of the first release and of an ablation.
				"actor/pos_high_ratio_frac", "actor/pos_low_ratio_frac", "actor/neg_high_ratio_frac", "actor/neg_low_ratio_frac",
				"actor/cispo_clip_ratio", "actor/cispo_clipped_count", "actor/clipped_high_count", "actor/clipped_low_count",
			},
		}
	}
}

func withFirstReleaseNames(m []Metric) []Metric {
	names := map[string]string{"actor/log_prob": "actor/logpf", "actor/ref_log_prob": "actor/logp_ref", "actor/final_loss": "actor/tb_loss"}
	for _, x := range m {
		if name, ok := names[x.Name]; ok {
			m = append(m, Metric{name, x.Value})
		}
	}
	return m
}

package rl

import (
	"fmt"
	"strings"
	"testing"
)

// TestGoldenPolicyLosses covers every policy loss of verl, alone and as the
// objective of its engine.
func TestGoldenPolicyLosses(t *testing.T) {
	checks := map[string]goldenCheck{
		"reinforce":   both(goldenReinforce[float32], goldenReinforce[float64]),
		"clip_cov":    both(goldenClipCov[float32], goldenClipCov[float64]),
		"kl_cov":      both(goldenKLCov[float32], goldenKLCov[float64]),
		"bypass_mode": both(goldenBypass[float32], goldenBypass[float64]),
		"ppo_loss":    both(goldenActorLoss[float32], goldenActorLoss[float64]),
	}
	f32, f64 := goldenLosses[float32](), goldenLosses[float64]()
	for name := range f32 {
		checks[name] = both(goldenLoss(f32[name]), goldenLoss(f64[name]))
	}
	goldenFamily(t, "policy_losses", checks)
}

// policyLoss runs a loss under the settings of a case.
type policyLoss[T Float] func(c *goldenCase, dlogProb []T, b *Batch[T], s *PolicyStats)

// goldenLosses are the losses that need nothing but a batch and settings.
func goldenLosses[T Float]() map[string]policyLoss[T] {
	dppo := func(by Divergence) policyLoss[T] {
		return func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
			clip := goldenClip(c)
			DPPO(d, b, DPPOConfig{Divergence: by, Low: clip.Low, High: clip.High, MaxRatio: clip.Dual}, s)
		}
	}
	return map[string]policyLoss[T]{
		"vanilla": func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) { PPO(d, b, goldenClip(c), s) },
		"gpg":     func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) { Reinforce(d, b, s) },
		"dro":     func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) { DRO(d, b, c.setting(droBeta, 0), s) },
		"sapo": func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
			SAPO(d, b, c.setting(sapoTauPos, 0), c.setting(sapoTauNeg, 0), s)
		},
		"gspo": func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
			clip := goldenClip(c)
			GSPO(d, b, clip.Low, clip.High, s)
		},
		"cispo": func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
			clip := goldenClip(c)
			CISPO(d, b, clip.Low, clip.High, s)
		},
		"geo_mean": func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
			clip := goldenClip(c)
			GMPO(d, b, clip.Low, clip.High, b.Rows.Len(), s)
		},
		"dppo_tv": dppo(BinaryTV),
		"dppo_kl": dppo(BinaryKL),
	}
}

func goldenClip(c *goldenCase) Clip {
	both := c.param("clip_ratio", 0.2)
	return Clip{Low: c.setting(clipLow, both), High: c.setting(clipHigh, both), Dual: c.setting(clipDual, 3)}
}

// goldenBatch reads a batch; old names the field of OldLogProb.
func goldenBatch[T Float](c *goldenCase, old string) *Batch[T] {
	b := &Batch[T]{
		Rows: c.rows("response_mask"), Mask: c.mask("response_mask"),
		LogProb: input[T](c, "log_prob"), OldLogProb: input[T](c, old), Adv: input[T](c, "advantages"),
	}
	if c.has("rollout_is_weights") {
		b.Weight = input[T](c, "rollout_is_weights")
	}
	if c.has("ref_log_prob") {
		b.RefLogProb = input[T](c, "ref_log_prob")
	}
	return b
}

// setCoef sets the coefficients of a case, for the loss of a mode: two of verl's
// ignore the aggregation that is configured.
func setCoef[T Float](c *goldenCase, b *Batch[T], mode string, params map[string]any) error {
	configured := c.Params["loss_agg_mode"]
	if mode == "gspo" || mode == "sapo" {
		c.Params["loss_agg_mode"] = SeqMeanTokenMean.String()
	}
	coef, ranks, err := goldenCoefficients(c, "response_mask", params)
	c.Params["loss_agg_mode"] = configured
	for i := range coef {
		coef[i] *= ranks
	}
	b.Coef = coef
	return err
}

// goldenLoss checks a loss by itself.
func goldenLoss[T Float](loss policyLoss[T]) func(c *goldenCase) goldenResult {
	return func(c *goldenCase) (got goldenResult) {
		if _, raises := c.Outputs["raises"]; raises { // no inputs: a setting is refused
			b := &Batch[T]{Rows: Rows{0}}
			if panics(func() { loss(c, nil, b, &PolicyStats{}) }) {
				got.err = fmt.Errorf("panic")
			}
			return got
		}
		b := goldenBatch[T](c, "old_log_prob")
		global, _ := c.Params["global_batch_info"].(map[string]any)
		if err := setCoef(c, b, c.text("loss_mode"), global); err != nil {
			return goldenResult{err: err}
		}
		return runLoss(b, func(d []T, s *PolicyStats) { loss(c, d, b, s) })
	}
}

func runLoss[T Float](b *Batch[T], loss func(d []T, s *PolicyStats)) goldenResult {
	var s PolicyStats
	grad := make([]T, len(b.Mask))
	loss(grad, &s)
	return goldenResult{outputs: map[string][]float64{"loss": {s.Loss}}, metrics: s.Metrics(),
		grads: map[string][]float64{"log_prob": widen(grad)}}
}

func goldenReinforce[T Float](c *goldenCase) goldenResult {
	b := goldenBatch[T](c, "rollout_log_prob")
	if err := setCoef(c, b, "", nil); err != nil {
		return goldenResult{err: err}
	}
	return runLoss(b, func(d []T, s *PolicyStats) { Reinforce(d, b, s) })
}

// goldenClipCov turns the recorded permutation of candidates into keys: the
// candidate that it puts first has the least. Who is a candidate shows when all
// are picked.
func goldenClipCov[T Float](c *goldenCase) goldenResult {
	return goldenLoss(func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
		clip := goldenClip(c)
		config := ClipCovConfig{Ratio: 1, Low: c.setting(covLow, 1), High: c.setting(covHigh, 5)}
		picked, key := make([]bool, len(b.Mask)), make([]uint64, len(b.Mask))
		ClipCovTokens(picked, b, clip.Low, clip.High, config, key)
		candidates := trueAt(picked)
		for place, i := range input[float64](c, "recorded_permutation") {
			key[candidates[int(i)]] = uint64(place)
		}
		config.Ratio = c.setting(covRatio, 0.0002)
		ClipCovTokens(picked, b, clip.Low, clip.High, config, key)
		ClipCov(d, b, picked, clip.Low, clip.High, s)
	})(c)
}

func goldenKLCov[T Float](c *goldenCase) goldenResult {
	var ranks []float64 // of the picked among the unmasked tokens
	got := goldenLoss(func(c *goldenCase, d []T, b *Batch[T], s *PolicyStats) {
		picked := make([]bool, len(b.Mask))
		KLCovTokens(picked, b, c.setting(covRatio, 0.0002))
		KLCov(d, b, picked, c.setting(klCovWeight, 1), s)
		for _, t := range trueAt(picked) {
			ranks = append(ranks, float64(countTrue(b.Mask[:t])))
		}
	})(c)
	got.outputs["selected_valid_rank"] = ranks
	return got
}

func trueAt(mask []bool) []int {
	var at []int
	for t, on := range mask {
		if on {
			at = append(at, t)
		}
	}
	return at
}

// goldenActorLoss is the objective of verl's engine: policy loss, entropy bonus
// and KL loss.
func goldenActorLoss[T Float](c *goldenCase) goldenResult {
	b := goldenBatch[T](c, "old_log_prob")
	mode := c.text("loss_mode")
	entropyCoef, klCoef := c.param("entropy_coeff", 0), c.param("kl_loss_coef", 0)
	kl, err := ParseKL(c.text("kl_loss_type"))
	if err != nil {
		return goldenResult{err: err}
	}
	dentropy := make([]T, len(b.Mask))
	var entropy, klSum, pg float64
	if err := setCoef(c, b, mode, c.Params); err != nil {
		return goldenResult{err: err}
	}
	policyCoef := b.Coef
	got := runLoss(b, func(d []T, s *PolicyStats) {
		goldenLosses[T]()[mode](c, d, b, s)
		if err = setCoef(c, b, "", c.Params); err != nil {
			return
		}
		KLLoss(d, b, kl, klCoef, &klSum)
		EntropyBonus(dentropy, input[T](c, "entropy"), b.Mask, b.Coef, entropyCoef, &entropy)
		pg = s.Loss
	})
	got.outputs["loss"] = []float64{pg - entropyCoef*entropy + klCoef*klSum}
	got.metrics = append(got.metrics, Metric{"actor/entropy_loss", entropy}, Metric{"kl_loss", klSum}, Metric{"kl_coef", klCoef})
	got.grads["entropy"] = widen(dentropy)
	if err == nil {
		err = checkMetricAggregation(c, b, policyCoef, pg)
	}
	got.outputs["metric_aggregation"], got.err = nil, err
	return got
}

// checkMetricAggregation checks what a case says of combining metrics over
// micro-batches. Losses with counts of the mini-batch are summed: so are ours,
// here over rows that are evaluated apart. The mean of losses with counts of a
// micro-batch has no counterpart, and the mean of fractions over micro-batches is
// the one over tokens here; of one micro-batch, as in the cases, both are the
// same.
func checkMetricAggregation[T Float](c *goldenCase, b *Batch[T], coef []float64, loss float64) error {
	var recorded map[string]string
	c.decode("metric_aggregation", c.Outputs["metric_aggregation"], &recorded)
	_, global := c.Params["batch_num_tokens"].(float64)
	for name, how := range recorded {
		if want := strings.HasSuffix(name, "_loss") && global; (how == "sum") != want {
			return fmt.Errorf("%s: aggregated by %s", name, how)
		}
	}
	var sum float64
	for i := range b.Rows.Len() {
		lo, hi := b.Rows[i], b.Rows[i+1]
		row := &Batch[T]{Rows: Rows{0, hi - lo}, Mask: b.Mask[lo:hi], Coef: coef[lo:hi],
			LogProb: b.LogProb[lo:hi], OldLogProb: b.OldLogProb[lo:hi], Adv: b.Adv[lo:hi]}
		if b.Weight != nil {
			row.Weight = b.Weight[lo:hi]
		}
		var s PolicyStats
		goldenLosses[T]()[c.text("loss_mode")](c, make([]T, hi-lo), row, &s)
		sum += s.Loss
	}
	if !near(sum, loss, 1e-12) {
		return fmt.Errorf("losses of the rows make %.17g, want %.17g", sum, loss)
	}
	return nil
}

// goldenBypass corrects, then takes the loss. verl counts rows with nothing
// unmasked in its statistics: CountEmptyRows.
func goldenBypass[T Float](c *goldenCase) goldenResult {
	b := goldenBatch[T](c, "old_log_prob")
	params := c.Params["rollout_correction"].(map[string]any)
	params["bypass_mode"], params["rollout_is_threshold"] = true, c.Params["rollout_is_threshold_effective"]
	settings, err := goldenSettings(params)
	if err != nil {
		return goldenResult{err: err}
	}
	settings.CountEmptyRows = true
	kept := make([]bool, len(b.Mask))
	var weight []T
	if settings.Weights != NoWeights {
		weight = make([]T, len(b.Mask))
	}
	var corrected CorrectionStats
	Correct(weight, kept, b.LogProb, b.OldLogProb, b.Mask, b.Rows, settings, &corrected)

	mode, err := ParseAggregation(c.text("loss_agg_mode"))
	if err != nil {
		return goldenResult{err: err}
	}
	n := Count(kept, b.Rows) // what verl counts where it is not told
	n.Scale = float64(b.Rows[1])
	b.Coef = make([]float64, len(kept))
	mode.Coefficients(b.Coef, kept, b.Rows, n)
	got := runLoss(b, func(d []T, s *PolicyStats) { Bypass(d, b, weight, kept, settings.Bypass, goldenClip(c), s) })
	got.metrics = append(got.metrics, corrected.Metrics()...)
	return got
}

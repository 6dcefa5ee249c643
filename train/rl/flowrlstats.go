package rl

import "math"

// FlowRLStats accumulates FlowRL's loss over the micro-batches of a mini-batch,
// all under one FlowRLConfig. The zero value is empty.
type FlowRLStats struct {
	Loss              float64 // Σ w·delta² / rows, and the surrogate
	config            FlowRLConfig
	hasRef, hasWeight bool

	// Sums over unmasked tokens, dropped ones included, and their number.
	logProb, old, ref, reward, tokens float64
	// Tokens dropped by the token mask.
	tooHigh, tooLow float64
	// Sums over rows, and their number.
	logZ, rows float64
	// Sums over terms, and their number.
	raw, weight, rollout, absDelta, terms float64
	delta                                 moments
	// Terms changed by a bound: of their weight, of their log-prob.
	weightHigh, weightLow, clipHigh, clipLow float64
	// Sums over terms of the inputs of their residuals.
	termLogProb, termBounded, termOld, termRef, termReward float64
	// The squared residuals' part of Loss, and the surrogate's.
	balance, surrogate float64
	ratios             signedRatios
}

// signedRatios counts tokens by the sign of their advantage and the side where their ratio
// left the clip range.
type signedRatios struct{ posHigh, posLow, negHigh, negLow, counted float64 }

// flowTerm is a term's contribution to the statistics.
type flowTerm struct {
	loss, delta, raw, weight, rollout  float64
	logProb, bounded, old, ref, reward float64
	clip                               verdict
}

func addToken[T Float](s *FlowRLStats, b *Batch[T], t int, v verdict) {
	s.tokens++
	s.logProb += float64(b.LogProb[t])
	s.old += float64(b.OldLogProb[t])
	s.reward += float64(b.Adv[t])
	if b.RefLogProb != nil {
		s.ref += float64(b.RefLogProb[t])
	}
	switch v {
	case tooHigh:
		s.tooHigh++
	case tooLow:
		s.tooLow++
	}
}

func (s *FlowRLStats) addTerm(x flowTerm) {
	s.terms++
	s.balance += x.loss
	s.raw += x.raw
	s.weight += x.weight
	s.rollout += x.rollout
	s.absDelta += math.Abs(x.delta)
	s.delta.add(x.delta)
	switch {
	case x.raw > s.config.WeightHigh:
		s.weightHigh++
	case x.raw < s.config.WeightLow:
		s.weightLow++
	}
	switch x.clip {
	case tooHigh:
		s.clipHigh++
	case tooLow:
		s.clipLow++
	}
	s.termLogProb += x.logProb
	s.termBounded += x.bounded
	s.termOld += x.old
	s.termRef += x.ref
	s.termReward += x.reward
}

// countRatios adds the row [lo,hi) to the first release's fractions.
func countRatios[T Float](s *FlowRLStats, b *Batch[T], lo, hi int) {
	c, r := s.config, &s.ratios
	from := b.RefLogProb
	if c.Surrogate {
		from = b.OldLogProb
	}
	for t := lo; t < hi; t++ {
		if !b.Mask[t] && !c.CountPadding {
			continue
		}
		r.counted++
		ratio := exp(float64(b.LogProb[t]) - float64(from[t]))
		high, low := ratio > 1+c.Clip.High, ratio < 1-c.Clip.Low
		switch adv := b.Adv[t]; {
		case adv > 0 && high:
			r.posHigh++
		case adv > 0 && low:
			r.posLow++
		case adv < 0 && high:
			r.negHigh++
		case adv < 0 && low:
			r.negLow++
		}
	}
}

// Metrics returns the statistics under the names of verl's recipe:
//
//	actor/log_prob, old_log_prob, ref_log_prob   means over unmasked tokens
//	actor/log_reward                             mean advantage over tokens, without Beta
//	actor/log_z                                  mean over rows
//	actor/final_loss                             the loss
//	actor/importance_weight                      mean weight over terms; _raw before its bounds
//	actor/ppo_kl                                 mean of oldLogProb - logProb
//	actor/ref_kl                                 mean of refLogProb - logProb: minus k1
//
// and our own actor/residual_mean, _std (sample) and _abs of delta over terms. Without log
// Z, a reference policy or a second term their metrics are absent. Settings and data beyond the recipe
// add:
//
//	WeightLow    actor/pg_clipfrac, _high, _low    fraction of terms whose weight a bound changed
//	             actor/clipped_high_count, _low_count  their number
//	DropCISPO    actor/cispo_mask_ratio, cispo_dropped_tokens  dropped tokens, a fraction and a number
//	             actor/condition_1_count, _2_count     those with A > 0 and with A < 0
//	Weight       actor/tis_weight                  mean rollout weight over rows
//	MeanClip     actor/clip_rate, _high, _low      fraction of terms whose log-prob was bounded
//	             actor/log_prob_final              mean of the bounded log-prob over terms
//	             actor/seq_log_prob, seq_old_log_prob, seq_ref_log_prob, seq_log_reward
//	                                               means over terms of the terms' means
//	Surrogate    actor/tb_loss, actor/ppo_loss     the two parts of the loss
//	RatioFractions  actor/pos_high_ratio_frac, pos_low_, neg_high_, neg_low_
func (s *FlowRLStats) Metrics() []Metric {
	tokens := s.tokens + meanEps
	m := []Metric{
		{"actor/log_prob", s.logProb / tokens},
		{"actor/old_log_prob", s.old / tokens},
		{"actor/log_reward", s.reward / tokens},
		{"actor/final_loss", s.Loss},
		{"actor/importance_weight", s.weight / s.terms},
		{"actor/importance_weight_raw", s.raw / s.terms},
		{"actor/ppo_kl", (s.old - s.logProb) / tokens},
		{"actor/residual_mean", s.delta.mean},
	}
	if s.terms > 1 {
		m = append(m, Metric{"actor/residual_std", math.Sqrt(s.delta.sampleVar())})
	}
	m = append(m, Metric{"actor/residual_abs", s.absDelta / s.terms})
	if s.config.UseLogZ {
		m = append(m, Metric{"actor/log_z", s.logZ / s.rows})
	}
	if s.hasRef {
		m = append(m,
			Metric{"actor/ref_log_prob", s.ref / tokens},
			Metric{"actor/ref_kl", (s.ref - s.logProb) / tokens})
	}
	return s.appendOptional(m)
}

// appendOptional appends the metrics that settings request.
func (s *FlowRLStats) appendOptional(m []Metric) []Metric {
	c, tokens := s.config, s.tokens+meanEps
	if c.WeightLow > 0 {
		m = append(m,
			Metric{"actor/pg_clipfrac", (s.weightHigh + s.weightLow) / s.terms},
			Metric{"actor/pg_clipfrac_high", s.weightHigh / s.terms},
			Metric{"actor/pg_clipfrac_low", s.weightLow / s.terms},
			Metric{"actor/clipped_high_count", s.weightHigh},
			Metric{"actor/clipped_low_count", s.weightLow})
	}
	if c.TokenMask == DropCISPO {
		m = append(m,
			Metric{"actor/cispo_mask_ratio", (s.tooHigh + s.tooLow) / tokens},
			Metric{"actor/cispo_dropped_tokens", s.tooHigh + s.tooLow},
			Metric{"actor/condition_1_count", s.tooHigh},
			Metric{"actor/condition_2_count", s.tooLow})
	}
	if s.hasWeight {
		m = append(m, Metric{"actor/tis_weight", s.rollout / s.terms})
	}
	if c.MeanClip != NoMeanClip {
		m = append(m,
			Metric{"actor/clip_rate", (s.clipHigh + s.clipLow) / s.terms},
			Metric{"actor/clip_rate_high", s.clipHigh / s.terms},
			Metric{"actor/clip_rate_low", s.clipLow / s.terms},
			Metric{"actor/log_prob_final", s.termBounded / s.terms},
			Metric{"actor/seq_log_prob", s.termLogProb / s.terms},
			Metric{"actor/seq_old_log_prob", s.termOld / s.terms},
			Metric{"actor/seq_ref_log_prob", s.termRef / s.terms},
			Metric{"actor/seq_log_reward", s.termReward / s.terms})
	}
	if c.Surrogate {
		m = append(m, Metric{"actor/tb_loss", s.balance}, Metric{"actor/ppo_loss", s.surrogate})
	}
	if r := s.ratios; c.RatioFractions {
		m = append(m,
			Metric{"actor/pos_high_ratio_frac", r.posHigh / r.counted},
			Metric{"actor/pos_low_ratio_frac", r.posLow / r.counted},
			Metric{"actor/neg_high_ratio_frac", r.negHigh / r.counted},
			Metric{"actor/neg_low_ratio_frac", r.negLow / r.counted})
	}
	return m
}

package rl

import "math"

// FlowRLStats accumulates FlowRL's loss over the micro-batches of a mini-batch,
// all under one FlowRLConfig. The zero value is empty.
type FlowRLStats struct {
	Loss   float64 // Σ w·delta² / rows
	config FlowRLConfig
	hasRef bool

	// Sums over unmasked tokens, dropped ones included, and their number.
	logProb, old, ref, reward, tokens float64
	// Tokens that the token mask dropped.
	tooHigh, tooLow float64
	// Sums over rows, and their number.
	logZ, raw, weight, absDelta, rows float64
	delta                             moments
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

func (s *FlowRLStats) addRow(logZ, delta, raw, weight float64) {
	s.rows++
	s.logZ += logZ
	s.raw += raw
	s.weight += weight
	s.absDelta += math.Abs(delta)
	s.delta.add(delta)
}

// Metrics returns the statistics under the names of verl's recipe:
//
//	actor/log_prob, old_log_prob, ref_log_prob   means over unmasked tokens
//	actor/log_reward                             mean advantage over tokens, without Beta
//	actor/log_z                                  mean over rows
//	actor/final_loss                             the loss
//	actor/importance_weight                      mean weight over rows; _raw before its bounds
//	actor/ppo_kl                                 mean of oldLogProb - logProb
//	actor/ref_kl                                 mean of refLogProb - logProb: minus k1
//
// and of our own actor/residual_mean, _std (sample) and _abs of delta over rows.
// With DropCISPO, verl's names for that: dropped tokens as a fraction and a
// number, those with A > 0 (condition_1) and with A < 0 (condition_2). Without
// log Z or a reference policy their metrics are absent.
func (s *FlowRLStats) Metrics() []Metric {
	tokens := s.tokens + meanEps
	m := []Metric{
		{"actor/log_prob", s.logProb / tokens},
		{"actor/old_log_prob", s.old / tokens},
		{"actor/log_reward", s.reward / tokens},
		{"actor/final_loss", s.Loss},
		{"actor/importance_weight", s.weight / s.rows},
		{"actor/importance_weight_raw", s.raw / s.rows},
		{"actor/ppo_kl", (s.old - s.logProb) / tokens},
		{"actor/residual_mean", s.delta.mean},
		{"actor/residual_std", math.Sqrt(s.delta.sampleVar())},
		{"actor/residual_abs", s.absDelta / s.rows},
	}
	if s.config.UseLogZ {
		m = append(m, Metric{"actor/log_z", s.logZ / s.rows})
	}
	if s.hasRef {
		m = append(m,
			Metric{"actor/ref_log_prob", s.ref / tokens},
			Metric{"actor/ref_kl", (s.ref - s.logProb) / tokens})
	}
	if s.config.TokenMask == DropCISPO {
		m = append(m,
			Metric{"actor/cispo_mask_ratio", (s.tooHigh + s.tooLow) / tokens},
			Metric{"actor/cispo_dropped_tokens", s.tooHigh + s.tooLow},
			Metric{"actor/condition_1_count", s.tooHigh},
			Metric{"actor/condition_2_count", s.tooLow})
	}
	return m
}

package rl

import (
	"math"
	"slices"
)

// megatronStdEps is added to a group's std before division in Megatron-LM.
const megatronStdEps = 1e-4

// MegatronAdvantage sets dst[i] to Megatron-LM's GRPO advantage of row i in its group:
// GroupAdvantage with the population std, which divides by n instead of n-1,
//
//	A[i] = (r[i] - mean) / (std + 1e-4)
//
// and zero where std is below 1e-8, so a group of equal rewards, or of one row, gets none.
// placeholder marks rows that stand for a trajectory of no turns: they do not enter the
// mean and the std, and have A = 0; nil marks none. All arrays are [B]; dst and score may
// be the same slice.
func MegatronAdvantage[T Float](dst, score []T, group []int, placeholder []bool) {
	sameLen(len(group), len(dst), len(score))
	if placeholder != nil {
		sameLen(len(group), len(placeholder))
	}
	for _, members := range groupMembers(group) {
		members = slices.DeleteFunc(members, func(i int) bool {
			if placeholder == nil || !placeholder[i] {
				return false
			}
			dst[i] = 0
			return true
		})
		n := float64(len(members))
		var mean, ss float64
		for _, i := range members {
			mean += float64(score[i])
		}
		mean /= n
		for _, i := range members {
			ss += square(float64(score[i]) - mean)
		}
		inv := 0.0
		if std := math.Sqrt(ss / n); std >= stdMin {
			inv = 1 / (std + megatronStdEps)
		}
		for _, i := range members {
			dst[i] = T((float64(score[i]) - mean) * inv)
		}
	}
}

// MegatronConfig holds the settings of Megatron-LM's GRPO loss; its defaults are in
// brackets.
type MegatronConfig struct {
	Low, High   float64 // the ratio is clipped to [1-Low, 1+High] [0.01, 0.01]
	KLCoef      float64 // scales k3 to the reference policy [0.001]
	EntropyCoef float64 // scales the entropy term [0]
}

// MegatronGRPO adds the loss of Megatron-LM's GRPO (calculate_grpo_loss in
// megatron/rl/rl_utils.py) to s, and its gradient to dlogProb [N]. Per unmasked
// token, with r = e^(logProb - oldLogProb) and d = refLogProb - logProb:
//
//	kl  = e^d - d - 1
//	ent = -e^logProb·logProb
//	l   = -w·min(r·A, clip(r, 1-Low, 1+High)·A) + KLCoef·kl - EntropyCoef·ent
//
// and the loss is Σ coef·l. Unlike PPO followed by KLLoss and EntropyBonus it has no dual
// clip, and log-ratios and kl have no bound except ±80 before exp. ent is a term of the
// sampled token, not an estimate of the entropy. w is the token's Weight: with correction
// for the sampler, e^(oldLogProb - rollLogProb), at most the truncation coefficient.
// Advantages are MegatronAdvantage's. Its log-probs come from logits not divided by the
// sampling temperature.
func MegatronGRPO[T Float](dlogProb []T, b *Batch[T], c MegatronConfig, s *MegatronStats) {
	b.check(dlogProb)
	sameLen(len(b.Mask), len(b.Coef), len(b.RefLogProb))
	for t, on := range b.Mask {
		if !on {
			continue
		}
		x := clippedTerm(b, t, c.Low, c.High)
		kl, dkl := wideK3(float64(b.RefLogProb[t]), float64(b.LogProb[t]))
		ent, dent := sampledEntropy(float64(b.LogProb[t]))
		w := b.weight(t)
		grad := float64(w*x.grad) + float64(c.KLCoef*dkl) - float64(c.EntropyCoef*dent)
		dlogProb[t] += T(b.Coef[t] * grad)
		loss := float64(w*x.loss) + float64(c.KLCoef*kl) - float64(c.EntropyCoef*ent)
		s.Loss += float64(b.Coef[t] * loss)

		ratio := exp(-x.kl)
		s.tokens++
		s.ratio += ratio
		s.kl += kl
		s.entropy += ent
		if ratio > 1+c.High {
			s.above++
		}
		if ratio < 1-c.Low {
			s.below++
		}
	}
}

// wideK3 returns k3 without the peers' bounds, and its derivative by logProb.
func wideK3(refLogProb, logProb float64) (value, grad float64) {
	d, inside := bound(refLogProb-logProb, -maxLogWeight, maxLogWeight)
	ratio := exp(d)
	if inside {
		grad = 1 - ratio
	}
	return ratio - d - 1, grad
}

// sampledEntropy returns -p·ln p of a log-prob, and its derivative.
func sampledEntropy(logProb float64) (value, grad float64) {
	p := exp(logProb)
	return float64(-p * logProb), float64(-p * (logProb + 1))
}

// MegatronStats accumulates Megatron-LM's GRPO loss over the micro-batches of a
// mini-batch. The zero value is empty.
type MegatronStats struct {
	Loss float64 // Σ coef·l
	// Sums over unmasked tokens, and their number.
	kl, ratio, entropy, above, below, tokens float64
}

// Metrics returns the loss and the means over unmasked tokens of kl, the ratio, ent, and
// whether the ratio is above or below its clip, under Megatron-LM's names. kl and ent are
// without their coefficients.
func (s *MegatronStats) Metrics() []Metric {
	n := s.tokens + meanEps
	return []Metric{
		{"lm loss", s.Loss},
		{"rl/kl_term", s.kl / n},
		{"rl/pi_over_pi_old", s.ratio / n},
		{"rl/entropy_term", s.entropy / n},
		{"rl/truncated_from_above", s.above / n},
		{"rl/truncated_from_below", s.below / n},
	}
}

// megatronEstimator is the estimator "megatron".
func megatronEstimator() Estimator {
	return Estimator{Name: "megatron", Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		MegatronAdvantage(s.Score, s.Score, s.Group, nil)
		return nil
	})}
}

// megatronLoss is the loss "megatron".
func megatronLoss() PolicyLoss {
	return PolicyLoss{Name: "megatron", Whole: true, ByTokens: true, Settings: []Setting{clipLow, clipHigh},
		Reads: func(Settings) (reference, logZ bool) { return true, false },
		Start: func(c Settings, o Others) LossRun {
			s := new(MegatronStats)
			config := MegatronConfig{Low: c.Float(clipLow), High: c.Float(clipHigh), KLCoef: o.KL,
				EntropyCoef: o.Entropy}
			return LossRun{Add: func(m *Micro) { MegatronGRPO(m.DLogProb, m.Batch, config, s) }, Metrics: s.Metrics}
		}}
}

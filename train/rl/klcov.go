package rl

import (
	"cmp"
	"slices"
)

// KLCovTokens sets picked[t] for the max(⌊ratio·tokens⌋, 1) unmasked tokens with the
// greatest covariance of advantage and log-prob (as in ClipCovTokens), ties going to the
// first; KLCov penalises them (arXiv:2505.22617 §4.2). verl's ratio is 0.0002; 0 picks
// nothing. picked is [N].
//
// Means and ranks cover the given batch. For results independent of micro-batches, pass the
// whole mini-batch before its first backward pass; verl picks per micro-batch. It reads
// Mask, Adv and LogProb.
func KLCovTokens[T Float](picked []bool, b *Batch[T], ratio float64) {
	sameLen(len(b.Mask), len(picked))
	clear(picked)
	tokens, cov := covariances(b)
	if ratio == 0 || len(tokens) == 0 {
		return
	}
	order := make([]int, len(tokens))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(cov[j], cov[i]), cmp.Compare(i, j))
	})
	for _, i := range order[:min(fraction(ratio, len(tokens)), len(tokens))] {
		picked[tokens[i]] = true
	}
}

// KLCov adds the unclipped loss with a penalty on its picked tokens
// (arXiv:2505.22617 eq. 13) to s, and its gradient to dlogProb [N]. Per unmasked
// token, with D = logProb - oldLogProb, in the ratio bounded to ±80:
//
//	l = -A·e^D, and + klCoef·|D| if picked
//
// and the loss is Σ coef·w·l. picked is [N], from KLCovTokens. This is verl's
// loss mode "kl_cov", whose klCoef is 0.1 in its configuration and 1 in its
// code. Nothing is clipped. actor/ppo_kl is the mean of |D|, as in verl.
func KLCov[T Float](dlogProb []T, b *Batch[T], picked []bool, klCoef float64, s *PolicyStats) {
	sameLen(len(b.Mask), len(picked))
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, inside := b.wideLogRatio(t)
		x := tokenTerm{loss: float64(-float64(b.Adv[t]) * exp(d))}
		if inside {
			x.grad = x.loss
		}
		d, _ = b.move(t)
		kl, slope := abs(d)
		if x.kl = kl; picked[t] {
			x.loss += float64(klCoef * kl)
			x.grad += float64(klCoef * slope)
		}
		return x
	})
}

// klCovWeight is KLCov's own setting.
var klCovWeight = Setting{Key: "cov.kl_weight", Default: 0.1, Range: "[0, inf)", Verl: []string{"ppo_kl_coef"},
	Help: "weight of |log-ratio| on the tokens that kl_cov picks"}

// klCovLoss is the loss "kl_cov".
func klCovLoss() PolicyLoss {
	settings := []Setting{covRatio, klCovWeight}
	return PolicyLoss{Name: "kl_cov", Settings: settings, Start: func(c Settings, _ Others) LossRun {
		s, ratio, weight := new(PolicyStats), c.Float(covRatio), c.Float(klCovWeight)
		return LossRun{
			Pick: func(picked []bool, mini *Batch[float32], _ func() []uint64) {
				KLCovTokens(picked, mini, ratio)
			},
			Add:     func(m *Micro) { KLCov(m.DLogProb, m.Batch, m.Picked, weight, s) },
			Metrics: s.Metrics,
		}
	}}
}

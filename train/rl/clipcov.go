package rl

import (
	"cmp"
	"slices"
)

// ClipCovConfig says which tokens Clip-Cov picks; verl's defaults are in brackets.
type ClipCovConfig struct {
	Ratio     float64 // fraction of unmasked tokens to pick [0.0002]
	Low, High float64 // exclusive bounds of a candidate's covariance [1, 5]
}

// ClipCovTokens sets picked[t] for the tokens that ClipCov leaves out
// (arXiv:2505.22617 §4.2). With
//
//	cov = (A - mean A)·(logProb - mean logProb)
//
// and means over unmasked tokens, a candidate is unmasked, not clipped by the ratio (bounds
// low and high, as in ClipCov), and has Low < cov < High. It picks the max(⌊Ratio·tokens⌋,
// 1) candidates with the smallest keys, or all if there are fewer.
//
// key [N] holds a random number per token, drawn by the caller under the token's own label,
// so the choice is uniform and independent of the token's place; verl draws a permutation
// of the candidates. Ties go to the first token. picked is [N].
//
// Means and counts cover the given batch. For results independent of micro-batches, pass
// the whole mini-batch before its first backward pass; verl picks per micro-batch. Coef and
// Weight are not read.
func ClipCovTokens[T Float](picked []bool, b *Batch[T], low, high float64, c ClipCovConfig, key []uint64) {
	sameLen(len(b.Mask), len(picked), len(key), len(b.OldLogProb))
	tokens, cov := covariances(b)
	var candidates []int
	for i, t := range tokens {
		if clipped := clippedTerm(b, t, low, high).clipped; !clipped && c.Low < cov[i] && cov[i] < c.High {
			candidates = append(candidates, t)
		}
	}
	slices.SortFunc(candidates, func(i, j int) int {
		return cmp.Or(cmp.Compare(key[i], key[j]), cmp.Compare(i, j))
	})
	clear(picked)
	for _, t := range candidates[:min(fraction(c.Ratio, len(tokens)), len(candidates))] {
		picked[t] = true
	}
}

// ClipCov adds the clipped loss without its picked tokens (arXiv:2505.22617 eq. 11) to s,
// and its gradient to dlogProb [N]. Per unmasked token, with D = logProb - oldLogProb
// bounded to ±80 and r = e^D:
//
//	l = max(-A·r, -A·clip(r, 1-low, 1+high)), 0 if picked
//
// and the loss is Σ coef·w·l: a picked token still counts in Coef. It has no dual clip.
// picked is [N], from ClipCovTokens. This is verl's loss mode "clip_cov"; actor/pg_clipfrac
// is the fraction of picked tokens.
func ClipCov[T Float](dlogProb []T, b *Batch[T], picked []bool, low, high float64, s *PolicyStats) {
	sameLen(len(b.Mask), len(picked))
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		x := clippedTerm(b, t, low, high)
		if x.clipped = picked[t]; x.clipped {
			x.loss, x.grad = 0, 0
		}
		return x
	})
}

// covariances returns the unmasked tokens in index order, and for each the product of its
// advantage's and its log-prob's deviation from the mean.
func covariances[T Float](b *Batch[T]) (tokens []int, cov []float64) {
	sameLen(len(b.Mask), len(b.Adv), len(b.LogProb))
	n := float64(countTrue(b.Mask))
	meanAdv, meanLogProb := MaskedSum(b.Adv, b.Mask)/n, MaskedSum(b.LogProb, b.Mask)/n
	for t, on := range b.Mask {
		if on {
			tokens = append(tokens, t)
			cov = append(cov, float64((float64(b.Adv[t])-meanAdv)*(float64(b.LogProb[t])-meanLogProb)))
		}
	}
	return tokens, cov
}

// fraction returns ⌊ratio·n⌋, at least 1.
func fraction(ratio float64, n int) int {
	return max(int(ratio*float64(n)), 1)
}

// Settings of the losses that pick tokens by their covariance.
var (
	covRatio = Setting{Key: "cov.ratio", Default: 2e-4, Range: "(0, 1]", Unit: "fraction",
		Verl: []string{"clip_cov_ratio", "kl_cov_ratio"},
		Help: "share of a mini-batch's tokens to pick, at least one"}
	covLow = Setting{Key: "cov.low", Default: 1.0, Below: "cov.high", Verl: []string{"clip_cov_lb"},
		Help: "covariance above which clip_cov picks"}
	covHigh = Setting{Key: "cov.high", Default: 5.0, Verl: []string{"clip_cov_ub"},
		Help: "covariance below which clip_cov picks"}
)

// clipCovLoss is the loss "clip_cov".
func clipCovLoss() PolicyLoss {
	settings := []Setting{clipLow, clipHigh, covRatio, covLow, covHigh}
	return PolicyLoss{Name: "clip_cov", Settings: settings, Start: func(c Settings, _ Others) LossRun {
		s, low, high := new(PolicyStats), c.Float(clipLow), c.Float(clipHigh)
		cov := ClipCovConfig{Ratio: c.Float(covRatio), Low: c.Float(covLow), High: c.Float(covHigh)}
		return LossRun{
			Pick: func(picked []bool, mini *Batch[float32], key func() []uint64) {
				ClipCovTokens(picked, mini, low, high, cov, key())
			},
			Add:     func(m *Micro) { ClipCov(m.DLogProb, m.Batch, m.Picked, low, high, s) },
			Metrics: s.Metrics,
		}
	}}
}

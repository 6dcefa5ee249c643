package rl

import "math"

// minSquaredWeight keeps the division by a squared importance weight finite, as in verl.
const minSquaredWeight = 1e-10

// VarianceProxies returns verl's estimates of how much of a step's gradient is noise
// (compute_variance_proxy_metrics), from a gradient norm computed without a backward pass.
// With w the squared norm of OptimalTokenBaseline without Weight, S the Weight, and means
// over a row's unmasked tokens:
//
//	a[i] = mean A     W[i] = Σ w·S²     W'[i] = Σ w·min(1, S²/1e-10)
//
//	variance_proxy/proxy1_signal_strength  gradNorm²
//	variance_proxy/proxy2_total_power      mean over rows of (mean S)²·a²·max(W', 0)
//	variance_proxy/proxy3_pure_noise       max(0, (proxy2 - proxy1)/(B-1)); 0 where B < 2
//	variance_proxy/expected_a_squared      mean over rows of a²
//	variance_proxy/expected_w              mean over rows of W
//
// It reads Rows, Mask, OldLogProb, Adv and Weight of b; sumPiSquared is [N]. gradNorm is
// the norm of the step's gradient, or NaN if unknown; then proxy1 and proxy3 are 0.
func VarianceProxies[T Float](b *Batch[T], sumPiSquared []T, gradNorm float64) []Metric {
	b.Rows.check(len(b.Mask))
	sameLen(len(b.Mask), len(b.OldLogProb), len(b.Adv), len(sumPiSquared))
	var power, advSquared, norms float64
	for i := range b.Rows.Len() {
		lo, hi := b.Rows[i], b.Rows[i+1]
		var norm, plain, weights, n float64
		for t := lo; t < hi; t++ {
			if !b.Mask[t] {
				continue
			}
			w, is := scoreNorm(b, sumPiSquared, t)
			norm += float64(w * square(is))
			plain += float64(w * min(1, square(is)/minSquaredWeight))
			weights += is
			n++
		}
		a2 := square(MaskedMean(b.Adv[lo:hi], b.Mask[lo:hi]))
		s2 := 1.0
		if b.Weight != nil {
			s2 = square(weights / (n + meanEps))
		}
		power += float64(s2 * a2 * max(plain, 0))
		advSquared += a2
		norms += norm
	}
	rows := float64(b.Rows.Len())
	power /= rows
	var signal, noise float64
	if !math.IsNaN(gradNorm) {
		signal = square(gradNorm)
		if rows > 1 {
			noise = max(0, (power-signal)/(rows-1))
		}
	}
	return []Metric{
		{"variance_proxy/proxy1_signal_strength", signal},
		{"variance_proxy/proxy2_total_power", power},
		{"variance_proxy/proxy3_pure_noise", noise},
		{"variance_proxy/expected_a_squared", advSquared / rows},
		{"variance_proxy/expected_w", norms / rows},
	}
}

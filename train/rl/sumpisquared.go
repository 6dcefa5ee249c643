package rl

// SumPiSquared sets dst [N] to Σ_v π(v)² of the softmax π of the logits z at each token,
// from the logsumexp of z and the logsumexp of 2·z:
//
//	Σ_v π(v)² = Σ_v exp(2·(z[v] - lse(z))) = exp(lse(2·z) - 2·lse(z))
//
// The sum is at least π² of the sampled token, whose log-prob is given; the result is
// clamped to that against rounding.
func SumPiSquared[T Float](dst, lse, lse2, logProb []T) {
	sameLen(len(dst), len(lse), len(lse2), len(logProb))
	for t := range dst {
		own := exp(float64(2 * float64(logProb[t])))
		dst[t] = T(max(own, exp(float64(lse2[t])-float64(2*float64(lse[t])))))
	}
}

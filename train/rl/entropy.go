package rl

// EntropyBonus subtracts scale·Σ coef·H from an objective: it adds -scale·coef to dentropy
// [N] at unmasked tokens, and the plain Σ coef·H, verl's metric actor/entropy_loss, to sum.
// entropy [N] is the entropy in nats of the full softmax at each token (arXiv:1602.01783
// §4).
func EntropyBonus[T Float](dentropy, entropy []T, mask []bool, coef []float64, scale float64, sum *float64) {
	sameLen(len(mask), len(dentropy), len(entropy), len(coef))
	for t, on := range mask {
		if !on {
			continue
		}
		dentropy[t] -= T(scale * coef[t])
		*sum += float64(coef[t] * float64(entropy[t]))
	}
}

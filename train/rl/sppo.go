package rl

import "math"

// SoftMeanAdvantage sets dst[i] to eta times the reward of row i over the soft mean of the rewards of all
// rows, the target of a completion's log-ratio in self-play preference optimization as verl's recipe has it
// (recipe/sppo):
//
//	A[i] = eta·r[i] - log (1/B) Σ_j exp(eta·r[j])
//
// The paper has eta·(p - 1/2) instead, p the share of the policy's completions that this one beats
// (arXiv:2405.00675 algorithm 1); eta·r is its exponent up to log Z, for which the soft mean stands. dst
// and score are [B] and may be the same slice.
func SoftMeanAdvantage[T Float](dst, score []T, eta float64) {
	sameLen(len(dst), len(score))
	most := math.Inf(-1)
	for _, r := range score {
		most = max(most, float64(eta*float64(r)))
	}
	sum := 0.0
	for _, r := range score {
		sum += exp(float64(eta*float64(r)) - most)
	}
	mean := most + log(sum/float64(len(score)))
	for i, r := range score {
		dst[i] = T(float64(eta*float64(r)) - mean)
	}
}

var sppoEta = Setting{Key: "sppo.eta", Default: 1.0, Range: "(0, inf)", Verl: []string{"sppo_eta"},
	Help: "step size: a completion's log-ratio is to be eta * (reward - soft mean of rewards)"}

// softMeanEstimator is the estimator "softmean".
func softMeanEstimator() Estimator {
	estimate := ofRows(func(s *Graded, c Settings) error {
		SoftMeanAdvantage(s.Score, s.Score, c.Float(sppoEta))
		return nil
	})
	return Estimator{Name: "softmean", Settings: []Setting{sppoEta}, Estimate: estimate}
}

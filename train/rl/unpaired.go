package rl

import (
	"fmt"
	"slices"
)

// Unpaired feedback says of single completions, from a file, whether they are good. Their loss pulls a completion's
// log-ratio up or down from a point of reference that the whole batch shares.

// UnpairedLoss is the loss of a single completion.
type UnpairedLoss uint8

const (
	KTO     UnpairedLoss = 1 + iota // against an estimate of the KL divergence
	APOZero                         // against 0
)

// UnpairedLosses returns the names of the losses, TRL's, in the order of the constants.
func UnpairedLosses() []string { return []string{"kto", "apo_zero_unpaired"} }

// ParseUnpairedLoss returns the loss with one of the names of UnpairedLosses.
func ParseUnpairedLoss(name string) (UnpairedLoss, error) {
	i := slices.Index(UnpairedLosses(), name)
	if i < 0 {
		return 0, fmt.Errorf("rl: unknown loss of single completions %q", name)
	}
	return KTO + UnpairedLoss(i), nil
}

// UnpairedConfig holds the settings of the loss of single completions.
type UnpairedConfig struct {
	Beta     float64 // scale of a completion's log-ratio
	Loss     UnpairedLoss
	Chosen   float64 // weight of good completions: λ_D
	Rejected float64 // weight of bad ones: λ_U
}

func (c UnpairedConfig) check() {
	if !(c.Beta > 0) || c.Loss < KTO || c.Loss > APOZero || !(c.Chosen > 0) || !(c.Rejected > 0) {
		panic("rl: single completions need a positive beta, a loss and positive weights")
	}
}

// Unpaired is what the loss finds out about a completion.
type Unpaired struct {
	Loss   float64
	Reward float64 // Beta·(log π(y) - log π_ref(y))
	Slope  float64 // derivative of Loss by each log-prob of a learned token
}

// One returns the loss of a completion. With D = log π(y) - log π_ref(y), summed over learned tokens, it is
//
//	Chosen·(1 - σ(Beta·(D - z)))      good ones
//	Rejected·(1 - σ(Beta·(z - D)))    bad ones
//
// z is kl in KTO (arXiv:2402.01306 eq. 7), without a gradient, and 0 in APOZero (arXiv:2408.06266 eq. 7, of single
// completions as in TRL). It panics if the completion has no tokens.
func (c UnpairedConfig) One(good bool, s Side, kl float64) Unpaired {
	c.check()
	if s.Tokens < 1 {
		panic("rl: a completion has no tokens")
	}
	if c.Loss == APOZero {
		kl = 0
	}
	d := s.LogProb - s.Ref
	weight, sign := c.Rejected, -1.0
	if good {
		weight, sign = c.Chosen, 1
	}
	x := float64(sign * float64(c.Beta*(d-kl)))
	miss := sigmoid(-x)
	return Unpaired{Loss: float64(weight * miss), Reward: float64(c.Beta * d),
		Slope: -float64(sign * float64(float64(weight*c.Beta)*float64(miss*sigmoid(x))))}
}

// MismatchedKL estimates the KL divergence of the policy from the reference, in nats per completion, for KTO: the
// mean log-ratio of completions under prompts of other completions, and at least 0 (arXiv:2402.01306 §4.1). The
// completions are not samples of the policy, so it is biased; a side without learned tokens counts as 0.
func MismatchedKL(list []Side) float64 {
	var sum float64
	for _, s := range list {
		sum += s.LogProb - s.Ref
	}
	return max(0, sum/float64(len(list)))
}

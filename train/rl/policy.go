package rl

import "math"

// tokenTerm is a policy loss's result for one token, before the token's coefficient and
// weight.
type tokenTerm struct {
	loss, grad float64 // the loss and its derivative by logProb
	kl         float64 // averaged into actor/ppo_kl
	clipped    bool    // counted in actor/pg_clipfrac
	lower      bool    // counted in actor/pg_clipfrac_lower
}

// addTokens adds a loss that is a sum over tokens: coef·w·loss of each unmasked token to s
// and coef·w·grad to dlogProb [N], coef and w the token's Coef and Weight. It calls term
// for unmasked tokens only, in index order.
func addTokens[T Float](dlogProb []T, b *Batch[T], s *PolicyStats, term func(t int) tokenTerm) {
	b.check(dlogProb)
	addRange(dlogProb, b, 0, len(b.Mask), s, term)
}

// addRange is addTokens for tokens lo to hi-1 of a checked batch.
func addRange[T Float](dlogProb []T, b *Batch[T], lo, hi int, s *PolicyStats, term func(t int) tokenTerm) {
	sameLen(len(b.Mask), len(b.Coef))
	for t := lo; t < hi; t++ {
		if !b.Mask[t] {
			continue
		}
		x := term(t)
		coef := float64(b.Coef[t] * b.weight(t))
		dlogProb[t] += T(coef * x.grad)
		s.Loss += float64(coef * x.loss)
		s.count(x)
	}
}

// logRatio returns the log-ratio of token t bounded to ±20 and whether it was within the
// bound.
func (b *Batch[T]) logRatio(t int) (d float64, inside bool) {
	return logRatio(float64(b.LogProb[t]), float64(b.OldLogProb[t]))
}

// wideLogRatio is logRatio for losses without a bound in the peers: ±80 keeps the loss
// finite and is otherwise never reached.
func (b *Batch[T]) wideLogRatio(t int) (d float64, inside bool) {
	return bound(float64(b.LogProb[t])-float64(b.OldLogProb[t]), -maxLogWeight, maxLogWeight)
}

// clippedTerm is PPO's term of token t without dual clip and with the wide bound.
func clippedTerm[T Float](b *Batch[T], t int, low, high float64) tokenTerm {
	d, inside := b.wideLogRatio(t)
	return Clip{Low: low, High: high, Dual: math.Inf(1)}.term(d, inside, float64(b.Adv[t]))
}

// scoreFunction is the term whose gradient is the log-prob's, scaled; k is constant to the
// gradient.
//
//	l = -k·A·logProb
func scoreFunction(k, adv, logProb float64) tokenTerm {
	grad := float64(-k * adv)
	return tokenTerm{loss: float64(grad * logProb), grad: grad}
}

// PolicyStats accumulates a policy loss over the micro-batches of a mini-batch.
// The zero value is empty.
type PolicyStats struct {
	Loss    float64 // Σ coef·w·l
	tokens  float64
	clipped float64
	lower   float64
	kl      float64
}

func (s *PolicyStats) count(x tokenTerm) {
	s.tokens++
	s.kl += x.kl
	if x.clipped {
		s.clipped++
	}
	if x.lower {
		s.lower++
	}
}

// Metrics returns, under verl's names, the loss, two fractions of tokens that each loss
// defines (0 if it clips nothing), and the mean of oldLogProb - logProb, an estimate of
// KL(old‖current). For PPO the fractions count tokens whose ratio was clipped and tokens
// bounded by the dual clip. Fractions and means are over unmasked tokens of all
// micro-batches.
func (s *PolicyStats) Metrics() []Metric {
	n := s.tokens + meanEps
	return []Metric{
		{"actor/pg_loss", s.Loss},
		{"actor/pg_clipfrac", s.clipped / n},
		{"actor/pg_clipfrac_lower", s.lower / n},
		{"actor/ppo_kl", s.kl / n},
	}
}

package rl

import "math"

// tokenTerm is what a policy loss makes of one token, before the token's
// coefficient and weight.
type tokenTerm struct {
	loss, grad float64 // the loss and its derivative by logProb
	kl         float64 // what actor/ppo_kl is the mean of
	clipped    bool    // counted in actor/pg_clipfrac
	lower      bool    // counted in actor/pg_clipfrac_lower
}

// addTokens adds a loss that is a sum over tokens: coef·w·loss of each unmasked
// token to s and coef·w·grad to dlogProb [N], coef and w the token's Coef and
// Weight. term is called for unmasked tokens only, in index order.
func addTokens[T Float](dlogProb []T, b *Batch[T], s *PolicyStats, term func(t int) tokenTerm) {
	b.check(dlogProb)
	addRange(dlogProb, b, 0, len(b.Mask), s, term)
}

// addRange is addTokens for the tokens lo to hi-1 of a batch that is checked.
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

// logRatio returns the log-ratio of token t bounded to ±20 and whether the bound
// left it alone.
func (b *Batch[T]) logRatio(t int) (d float64, inside bool) {
	return logRatio(float64(b.LogProb[t]), float64(b.OldLogProb[t]))
}

// wideLogRatio is logRatio for losses that have no bound in the peers: at ±80 it
// keeps the loss finite and is not met otherwise.
func (b *Batch[T]) wideLogRatio(t int) (d float64, inside bool) {
	return bound(float64(b.LogProb[t])-float64(b.OldLogProb[t]), -maxLogWeight, maxLogWeight)
}

// clippedTerm is PPO's term of token t without dual clip, and with the wide bound.
func clippedTerm[T Float](b *Batch[T], t int, low, high float64) tokenTerm {
	d, inside := b.wideLogRatio(t)
	return Clip{Low: low, High: high, Dual: math.Inf(1)}.term(d, inside, float64(b.Adv[t]))
}

// scoreFunction is the term whose gradient is that of the log-prob, scaled: k is
// a constant to the gradient.
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

// Metrics returns, under verl's names, the loss, two fractions of tokens that
// each loss defines (0 where it clips nothing), and the mean of oldLogProb -
// logProb, an estimate of KL(old‖current). PPO's fractions are of tokens whose
// ratio was clipped and of those bounded by the dual clip. Fractions and means
// are over unmasked tokens of all micro-batches.
func (s *PolicyStats) Metrics() []Metric {
	n := s.tokens + meanEps
	return []Metric{
		{"actor/pg_loss", s.Loss},
		{"actor/pg_clipfrac", s.clipped / n},
		{"actor/pg_clipfrac_lower", s.lower / n},
		{"actor/ppo_kl", s.kl / n},
	}
}

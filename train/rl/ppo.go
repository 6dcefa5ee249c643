package rl

// Clip bounds the importance ratio of PPO.
type Clip struct {
	Low  float64 // the ratio is clipped below 1-Low; verl 0.2
	High float64 // and above 1+High; verl 0.2, DAPO's clip-higher 0.28
	// Dual bounds the loss of a token with negative advantage at -A·Dual; above
	// 1, verl 3. math.Inf(1) turns it off.
	Dual float64
}

// PPO adds the clipped surrogate loss (arXiv:1707.06347 eq. 7) with dual clip
// (arXiv:1912.09729 eq. 5) to s, and its gradient to dlogProb [N]. Per unmasked
// token, with D = logProb - oldLogProb bounded to ±20 and r = e^D:
//
//	x = max(-A·r, -A·clip(r, 1-Low, 1+High))
//	l = min(x, -A·Dual)   if A < 0
//	l = x                 otherwise
//
// The loss is Σ coef·w·l, w the token's Weight. dl/dlogProb is -A·r where
// neither a clip nor the bound acts, else 0. This is verl's loss mode
// "vanilla"; its fractions of clipped tokens and approximate KL are in s.
// It panics unless c.Dual > 1.
func PPO[T Float](dlogProb []T, b *Batch[T], c Clip, s *PolicyStats) {
	b.check(dlogProb)
	sameLen(len(b.Mask), len(b.Coef))
	if !(c.Dual > 1) {
		panic("rl: dual clip must exceed 1")
	}
	for t, on := range b.Mask {
		if !on {
			continue
		}
		d, inside := logRatio(float64(b.LogProb[t]), float64(b.OldLogProb[t]))
		loss, grad, clipped, dual := c.token(d, float64(b.Adv[t]))
		if !inside {
			grad = 0
		}
		coef := float64(b.Coef[t] * b.weight(t))
		dlogProb[t] += T(coef * grad)
		s.Loss += float64(coef * loss)
		s.count(d, clipped, dual)
	}
}

// token returns the loss of a token with log-ratio d and advantage adv, its
// derivative with respect to d, and which clips acted.
func (c Clip) token(d, adv float64) (loss, grad float64, clipped, dual bool) {
	ratio := exp(d)
	loss = float64(-adv * ratio)
	grad = loss
	if bound := float64(-adv * clamp(ratio, 1-c.Low, 1+c.High)); bound > loss {
		loss, grad, clipped = bound, 0, true
	}
	if bound := float64(-adv * c.Dual); adv < 0 && loss > bound {
		loss, grad, dual = bound, 0, true
	}
	return loss, grad, clipped, dual
}

// PolicyStats accumulates a policy loss over the micro-batches of a mini-batch.
// The zero value is empty.
type PolicyStats struct {
	Loss    float64 // Σ coef·w·l
	tokens  float64
	clipped float64
	dual    float64
	kl      float64 // Σ -D
}

func (s *PolicyStats) count(d float64, clipped, dual bool) {
	s.tokens++
	s.kl -= d
	if clipped {
		s.clipped++
	}
	if dual {
		s.dual++
	}
}

// Metrics returns the loss, the fraction of tokens whose ratio was clipped, the
// fraction bounded by the dual clip, and the mean of -D, an estimate of
// KL(old‖current), under verl's names. Fractions and means are over unmasked
// tokens of all micro-batches.
func (s *PolicyStats) Metrics() []Metric {
	n := s.tokens + meanEps
	return []Metric{
		{"actor/pg_loss", s.Loss},
		{"actor/pg_clipfrac", s.clipped / n},
		{"actor/pg_clipfrac_lower", s.dual / n},
		{"actor/ppo_kl", s.kl / n},
	}
}

package rl

// Divergence is DPPO's measure of how far a token's probability moved: the divergence of
// two coins (the token, or any other), q under the old policy and p under the current one.
type Divergence uint8

const (
	BinaryTV Divergence = 1 + iota // p - q, signed
	BinaryKL                       // KL of coin q from coin p
)

// divergenceEps keeps the logarithm of BinaryKL finite, as in verl.
const divergenceEps = 1e-8

// DPPOConfig are the settings of DPPO. Set all fields: the zero value is invalid.
type DPPOConfig struct {
	Divergence Divergence
	// Low and High bound the divergence within which a token is trained: High upwards for a
	// positive advantage, Low downwards otherwise.
	Low, High float64
	// MaxRatio truncates the importance ratio. In verl it is clip_ratio_c, 3 unless
	// configured; its code's fallback of 20 is never reached.
	MaxRatio float64
}

// DPPO adds the loss with a trust region on probabilities instead of ratios
// (arXiv:2602.04879 eq. 11 to 14) to s, and its gradient to dlogProb [N]. Per unmasked
// token, with D = logProb - oldLogProb bounded to ±20, p and q the token's probabilities
// now and before:
//
//	l = -min(e^D, MaxRatio)·A·logProb   inside the trust region, else 0
//
//	BinaryTV   p-q ≤ High              if A > 0, else  p-q ≥ -Low
//	BinaryKL   kl ≤ High or p ≤ q      if A > 0, else  kl ≤ Low or p ≥ q
//	           kl = q·ln(q/p) + (1-q)·ln((1-q+1e-8)/(1-p+1e-8))
//
// The ratio and the region are constant to the gradient. The loss is Σ coef·w·l. These are
// verl's loss modes "dppo_tv" and "dppo_kl". actor/pg_clipfrac is the fraction of tokens
// outside the region, actor/pg_clipfrac_lower the fraction with a truncated ratio inside
// it.
func DPPO[T Float](dlogProb []T, b *Batch[T], c DPPOConfig, s *PolicyStats) {
	if c.Divergence != BinaryTV && c.Divergence != BinaryKL {
		panic("rl: unknown divergence")
	}
	if !(c.MaxRatio > 0) {
		panic("rl: DPPO needs a positive ratio bound")
	}
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, _ := b.logRatio(t)
		ratio, adv := exp(d), float64(b.Adv[t])
		if !c.trusted(float64(b.LogProb[t]), float64(b.OldLogProb[t]), adv) {
			return tokenTerm{kl: -d, clipped: true}
		}
		x := scoreFunction(min(ratio, c.MaxRatio), adv, float64(b.LogProb[t]))
		x.kl, x.lower = -d, ratio > c.MaxRatio
		return x
	})
}

// trusted reports whether a token is inside the trust region. A NaN KL, from log-probs
// above 0, is outside.
func (c DPPOConfig) trusted(logProb, old, adv float64) bool {
	p, q := exp(logProb), exp(old)
	if c.Divergence == BinaryTV {
		if adv > 0 {
			return p-q <= c.High
		}
		return p-q >= -c.Low
	}
	kl := float64(q*(old-logProb)) + float64((1-q)*log((1-q+divergenceEps)/(1-p+divergenceEps)))
	if adv > 0 {
		return kl <= c.High || p <= q
	}
	return kl <= c.Low || p >= q
}

// dppoLoss is the loss "dppo_tv" or "dppo_kl".
func dppoLoss(name string, by Divergence) PolicyLoss {
	return tokenLoss(name, []Setting{clipLow, clipHigh, clipDual}, func(m *Micro, c Settings, s *PolicyStats) {
		clip := ClipOf(c)
		DPPO(m.DLogProb, m.Batch, DPPOConfig{Divergence: by, Low: clip.Low, High: clip.High, MaxRatio: clip.Dual}, s)
	})
}

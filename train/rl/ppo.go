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
// The loss is Σ coef·w·l, w the token's Weight. dl/dlogProb is -A·r where neither a clip
// nor the bound acts, else 0. This is verl's loss mode "vanilla"; s collects its fractions
// of clipped tokens and approximate KL. It panics unless c.Dual > 1.
func PPO[T Float](dlogProb []T, b *Batch[T], c Clip, s *PolicyStats) {
	if !(c.Dual > 1) {
		panic("rl: dual clip must exceed 1")
	}
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, inside := b.logRatio(t)
		return c.term(d, inside, float64(b.Adv[t]))
	})
}

// term is token as a tokenTerm; unless inside, the log-ratio d does not depend on logProb.
func (c Clip) term(d float64, inside bool, adv float64) tokenTerm {
	loss, grad, clipped, dual := c.token(d, adv)
	if !inside {
		grad = 0
	}
	return tokenTerm{loss: loss, grad: grad, kl: -d, clipped: clipped, lower: dual}
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

// The bounds that the clipped losses share.
var (
	clipLow = Setting{Key: "clip.low", Default: 0.2, Range: "(0, 1]", Verl: []string{"clip_ratio_low"},
		Help: "lower clip of the ratio, 1 - this; in gmpo of its log, -this; in dppo the limit of a probability's " +
			"fall"}
	clipHigh = Setting{Key: "clip.high", Default: 0.2, Null: true, Range: "(0, inf)",
		Verl: []string{"clip_ratio_high"},
		Help: "upper clip of the ratio, 1 + this; in gmpo of its log, this; in dppo the limit of a probability's " +
			"rise; null means none"}
	clipDual = Setting{Key: "clip.dual", Default: 3.0, Null: true, Range: "(1, inf)", Verl: []string{"clip_ratio_c"},
		Help: "dual clip: largest ratio that counts at a negative advantage, in dppo at any; null means off"}
)

// ClipOf reads the bounds of the loss "ppo".
func ClipOf(c Settings) Clip {
	return Clip{Low: c.Float(clipLow), High: c.Float(clipHigh), Dual: c.Float(clipDual)}
}

// ppoLoss is the loss "ppo", verl's vanilla.
func ppoLoss() PolicyLoss {
	l := tokenLoss("ppo", []Setting{clipLow, clipHigh, clipDual}, func(m *Micro, c Settings, s *PolicyStats) {
		PPO(m.DLogProb, m.Batch, ClipOf(c), s)
	})
	l.Bypass = BypassPPO
	return l
}

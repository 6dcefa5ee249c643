package rl

// SAPO adds the loss with a soft gate instead of a clip (arXiv:2511.20347) to
// s, and its gradient to dlogProb [N]. Per unmasked token, with D =
// logProb - oldLogProb bounded to ±20 and r = e^D:
//
//	l = -A·sigmoid(tau·(r-1))·4/tau,  tau = tauPos if A > 0, else tauNeg
//
// and the loss is Σ coef·w·l. At r = 1 it has PPO's gradient, which fades away from r = 1.
// verl's loss mode "sapo" has tauPos 1 and tauNeg 1.05, and always aggregates by
// SeqMeanTokenMean; here the caller's Coef decides. Nothing is clipped. It panics unless
// both temperatures are positive.
func SAPO[T Float](dlogProb []T, b *Batch[T], tauPos, tauNeg float64, s *PolicyStats) {
	if !(tauPos > 0 && tauNeg > 0) {
		panic("rl: SAPO temperatures must be positive")
	}
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, inside := b.logRatio(t)
		adv, tau := float64(b.Adv[t]), tauNeg
		if adv > 0 {
			tau = tauPos
		}
		ratio := exp(d)
		e := exp(-float64(tau * (ratio - 1)))
		gate := 1 / (1 + e)
		x := tokenTerm{loss: float64(-adv * gate * 4 / tau), kl: -d}
		if inside {
			x.grad = float64(-adv * 4 * ratio * gate * (e * gate)) // sigmoid' = gate²·e
		}
		return x
	})
}

// Settings of SAPO.
var (
	sapoTauPos = Setting{Key: "sapo.tau_pos", Default: 1.0, Range: "(0, inf)", Verl: []string{"tau_pos"},
		Help: "steepness of the gate for positive advantages"}
	sapoTauNeg = Setting{Key: "sapo.tau_neg", Default: 1.05, Range: "(0, inf)", Verl: []string{"tau_neg"},
		Help: "steepness of the gate for other advantages"}
)

// sapoLoss is the loss "sapo".
func sapoLoss() PolicyLoss {
	return tokenLoss("sapo", []Setting{sapoTauPos, sapoTauNeg}, func(m *Micro, c Settings, s *PolicyStats) {
		SAPO(m.DLogProb, m.Batch, c.Float(sapoTauPos), c.Float(sapoTauNeg), s)
	})
}

package rl

// CISPO adds the loss of MiniMax-M1 (arXiv:2506.13585 eq. 4) to s, and its
// gradient to dlogProb [N]: REINFORCE weighted by the clipped importance ratio,
// so that a clipped token still has a gradient. Per unmasked token, with D =
// logProb - oldLogProb bounded to ±20:
//
//	l = -clip(e^D, 1-low, 1+high)·A·logProb
//
// where the clipped ratio is constant to the gradient. The loss is Σ coef·w·l. low ≥ 1
// means no lower bound; verl's loss mode "cispo" takes PPO's bounds, the paper only an
// upper one. actor/pg_clipfrac is the fraction of tokens whose ratio the clip changed, on
// either side and for either sign of A.
func CISPO[T Float](dlogProb []T, b *Batch[T], low, high float64, s *PolicyStats) {
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, _ := b.logRatio(t)
		ratio := exp(d)
		clipped := clamp(ratio, 1-low, 1+high)
		x := scoreFunction(clipped, float64(b.Adv[t]), float64(b.LogProb[t]))
		x.kl, x.clipped = -d, clipped != ratio
		return x
	})
}

// cispoLoss is the loss "cispo".
func cispoLoss() PolicyLoss {
	return tokenLoss("cispo", []Setting{clipLow, clipHigh}, func(m *Micro, c Settings, s *PolicyStats) {
		CISPO(m.DLogProb, m.Batch, c.Float(clipLow), c.Float(clipHigh), s)
	})
}

package rl

// Reinforce adds the plain policy-gradient loss (Williams, "Simple statistical
// gradient-following algorithms", 1992) to s, and its gradient to dlogProb [N].
// Per unmasked token
//
//	l = -A·logProb
//
// and the loss is Σ coef·w·l, w the token's Weight. It has no ratio and no clip; OldLogProb
// is read for the metric actor/ppo_kl only. This is the loss of verl's bypass mode
// "reinforce", where OldLogProb is the sampler's, and its loss mode "gpg"
// (arXiv:2504.02546; GPG differs in its advantages).
func Reinforce[T Float](dlogProb []T, b *Batch[T], s *PolicyStats) {
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, adv := b.move(t)
		x := scoreFunction(1, adv, float64(b.LogProb[t]))
		x.kl = -d
		return x
	})
}

// reinforceLoss is the loss "reinforce", verl's gpg.
func reinforceLoss() PolicyLoss {
	l := tokenLoss("reinforce", nil, func(m *Micro, _ Settings, s *PolicyStats) { Reinforce(m.DLogProb, m.Batch, s) })
	l.Bypass = BypassReinforce
	return l
}

package rl

// DRO adds the loss of direct reward optimisation (arXiv:2405.19107, with an advantage in
// place of reward minus value) to s, and its gradient to dlogProb [N]: REINFORCE kept near
// the old policy by a quadratic penalty. Per unmasked token, with D = logProb - oldLogProb:
//
//	l = -(A·logProb - ½·beta·D²)
//
// and the loss is Σ coef·w·l. This is verl's loss mode "dro", which has no
// default for beta. It panics unless beta > 0.
func DRO[T Float](dlogProb []T, b *Batch[T], beta float64, s *PolicyStats) {
	if !(beta > 0) {
		panic("rl: DRO needs a positive beta")
	}
	addTokens(dlogProb, b, s, func(t int) tokenTerm {
		d, adv := b.move(t)
		x := scoreFunction(1, adv, float64(b.LogProb[t]))
		x.loss += float64(0.5 * beta * square(d))
		x.grad += float64(beta * d)
		x.kl = -d
		return x
	})
}

// droBeta is the setting of DRO.
var droBeta = Setting{Key: "dro.beta", Range: "(0, inf)", Verl: []string{"dro_beta"},
	Help: "twice the weight of the quadratic penalty"}

// droLoss is the loss "dro".
func droLoss() PolicyLoss {
	return tokenLoss("dro", []Setting{droBeta}, func(m *Micro, c Settings, s *PolicyStats) {
		DRO(m.DLogProb, m.Batch, c.Float(droBeta), s)
	})
}

package rl

// GAE sets adv and ret to the generalised advantage estimates and the returns
// (arXiv:1506.02438 eq. 16), row by row, from the last token to the first:
//
//	d      = r[t] + gamma·V' - V[t]
//	A[t]   = d + gamma·lambda·A'
//	ret[t] = A[t] + V[t]
//
// V' and A' are the value and the advantage of the row's next unmasked token, 0 after its
// last. Masked-out tokens (tool output between turns) are transparent, as in verl: they
// have no reward and no discount step. There adv is A' and ret is A' + V[t]; both are
// meaningless.
//
// All arrays are [N]. adv is not whitened (verl's estimator whitens in the same call; see
// Whiten), ret never is.
func GAE[T Float](adv, ret, reward, value []T, mask []bool, rows Rows, gamma, lambda float64) {
	rows.check(len(mask))
	sameLen(len(mask), len(adv), len(ret), len(reward), len(value))
	decay := float64(gamma * lambda)
	for i := range rows.Len() {
		var nextValue, nextAdv float64
		for t := rows[i+1] - 1; t >= rows[i]; t-- {
			v := float64(value[t])
			if mask[t] {
				delta := float64(reward[t]) + float64(gamma*nextValue) - v
				nextAdv = delta + float64(decay*nextAdv)
				nextValue = v
			}
			adv[t] = T(nextAdv)
			ret[t] = T(nextAdv + v)
		}
	}
}

// Settings of the estimators that discount.
var (
	discount = Setting{Key: "gamma", Default: 1.0, Range: "[0, 1]", Verl: []string{"gamma"},
		Help: "discount per token"}
	lambda = Setting{Key: "lambda", Default: 1.0, Range: "[0, 1]", Verl: []string{"lam", "gae_lambda"},
		Help: "lambda of generalised advantage estimation"}
)

// gaeEstimator is the estimator "gae", PPO's.
func gaeEstimator() Estimator {
	return Estimator{Name: "gae", Values: true, Redraw: redrawPFPPO,
		Settings: []Setting{discount, lambda, CriticWarmup, ValueClip, pfPPOMethod, pfPPOPower},
		Estimate: func(s *Graded, c Settings) error {
			GAE(s.Adv, s.Ret, s.Reward, s.Value, s.Mask, s.Rows, c.Float(discount), c.Float(lambda))
			return Whiten(s.Adv, s.Mask, true)
		}}
}

package rl

import "math"

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
	gae(adv, ret, reward, value, mask, rows, gamma, func(int) float64 { return lambda })
}

// AdaptiveGAE is GAE with a lambda for each row, which grows with its length (VAPO, arXiv:2504.05118): for l unmasked
// tokens
//
//	lambda = max(0, 1 - 1/(alpha·l))
//
// so that the errors of about alpha·l further tokens count.
func AdaptiveGAE[T Float](adv, ret, reward, value []T, mask []bool, rows Rows, gamma, alpha float64) {
	gae(adv, ret, reward, value, mask, rows, gamma, func(tokens int) float64 {
		return max(0, 1-1/float64(alpha*float64(tokens)))
	})
}

// gae is GAE with the lambda of a row of so many unmasked tokens.
func gae[T Float](adv, ret, reward, value []T, mask []bool, rows Rows, gamma float64,
	lambda func(tokens int) float64) {
	rows.check(len(mask))
	sameLen(len(mask), len(adv), len(ret), len(reward), len(value))
	for i := range rows.Len() {
		decay := float64(gamma * lambda(countTrue(mask[rows[i]:rows[i+1]])))
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
	lambdaAlpha = Setting{Key: "lambda_alpha", Default: 0.0, Range: "[0, inf)", Late: true,
		Help: "makes lambda grow with a completion's length l, 1 - 1/(alpha·l) and at least 0 for its advantages " +
			"(VAPO: 0.05, for thousands of tokens); 0: algo.lambda"}
	criticLambda = Setting{Key: "critic.lambda", Default: math.Inf(1), Null: true, Range: "[0, 1]", Late: true,
		Help: "lambda of the returns that the critic learns (VC-PPO: 1, whatever the advantages have); null: the " +
			"advantages'"}
)

// gaeEstimator is the estimator "gae", PPO's.
func gaeEstimator() Estimator {
	return Estimator{Name: "gae", Values: true, Tokens: true, Redraw: redrawPFPPO,
		Settings: []Setting{discount, lambda, lambdaAlpha, criticLambda, CriticWarmup, ValueClip, pfPPOMethod,
			pfPPOPower},
		Estimate: func(s *Graded, c Settings) error {
			gamma, ret := c.Float(discount), s.Ret
			if of := c.Float(criticLambda); !math.IsInf(of, 1) {
				GAE(s.Adv, s.Ret, s.Reward, s.Value, s.Mask, s.Rows, gamma, of)
				ret = make([]float32, len(s.Ret)) // the returns are the critic's
			}
			if alpha := c.Float(lambdaAlpha); alpha > 0 {
				AdaptiveGAE(s.Adv, ret, s.Reward, s.Value, s.Mask, s.Rows, gamma, alpha)
			} else {
				GAE(s.Adv, ret, s.Reward, s.Value, s.Mask, s.Rows, gamma, c.Float(lambda))
			}
			return Whiten(s.Adv, s.Mask, true)
		}}
}

package rl

// ReinforcePlusPlus sets ret [N] to the discounted Returns and adv [N] to the same whitened
// over the batch (arXiv:2501.03262), both 0 at masked-out tokens. reward is [N]. It returns
// ErrTooFew if fewer than two tokens are unmasked.
//
// A reward at a masked-out token is ignored, and the return carries across a tool turn, as
// in verl since its #7300; before, it restarted there.
func ReinforcePlusPlus[T Float](adv, ret, reward []T, mask []bool, rows Rows, gamma float64) error {
	Returns(ret, reward, mask, rows, gamma)
	clearMasked(ret, mask)
	copy(adv, ret)
	return whitenMasked(adv, mask)
}

// ReinforcePlusPlusBaseline sets adv [N] to the rewards less their group's mean, spread
// over the row's unmasked tokens, whitened over the batch, and 0 at masked-out tokens: the
// std is the batch's, not a group's. score and group are [B]; the mean of a row alone is 0.
// It returns ErrTooFew if fewer than two tokens are unmasked. In verl the returns equal
// these advantages.
func ReinforcePlusPlusBaseline[T Float](adv, score []T, group []int, mask []bool, rows Rows) error {
	perRow := make([]T, len(score))
	GroupAdvantage(perRow, score, group, false)
	Spread(adv, perRow, mask, rows)
	return whitenMasked(adv, mask)
}

// whitenMasked whitens x and clears it at masked-out tokens.
func whitenMasked[T Float](x []T, mask []bool) error {
	if err := Whiten(x, mask, true); err != nil {
		return err
	}
	clearMasked(x, mask)
	return nil
}

func clearMasked[T Float](x []T, mask []bool) {
	for t, on := range mask {
		if !on {
			x[t] = 0
		}
	}
}

// reinforcePlusPlusEstimator is the estimator "reinforce_plus_plus".
func reinforcePlusPlusEstimator() Estimator {
	return Estimator{Name: "reinforce_plus_plus", Tokens: true, Settings: []Setting{discount},
		Estimate: func(s *Graded, c Settings) error {
			return ReinforcePlusPlus(s.Adv, s.Ret, s.Reward, s.Mask, s.Rows, c.Float(discount))
		}}
}

// reinforcePlusPlusBaselineEstimator is the estimator "reinforce_plus_plus_baseline".
func reinforcePlusPlusBaselineEstimator() Estimator {
	return Estimator{Name: "reinforce_plus_plus_baseline", Groups: true, Estimate: func(s *Graded, _ Settings) error {
		err := ReinforcePlusPlusBaseline(s.Adv, s.Score, s.Group, s.Mask, s.Rows)
		copy(s.Ret, s.Adv)
		return err
	}}
}

package rl

// GDPO sets adv [N] to the advantages of several rewards, each standardised in its group
// before they are added, so that none drowns the others (arXiv:2601.05242):
//
//	A[i] = Σ_k weight[k] · GroupAdvantage(score[k], group, scale)[i]
//
// spread over the row's unmasked tokens, whitened over the batch, and 0 at
// masked-out tokens. score is [K][B], group [B]; weight is [K], or nil for all 1.
// verl's trainer always scales by the group's std. It returns ErrTooFew if fewer
// than two tokens are unmasked.
func GDPO[T Float](adv []T, score [][]T, weight []float64, group []int, mask []bool, rows Rows, scale bool) error {
	if weight != nil {
		sameLen(len(score), len(weight))
	}
	total := make([]float64, rows.Len())
	for k, one := range score {
		sameLen(len(group), len(one), len(total))
		w := 1.0
		if weight != nil {
			w = weight[k]
		}
		for _, members := range groupMembers(group) {
			mean, factor := groupScale(one, members, scale)
			for _, i := range members {
				total[i] += float64(w * (float64(one[i]) - mean) * factor)
			}
		}
	}
	perRow := make([]T, len(total))
	for i, a := range total {
		perRow[i] = T(a)
	}
	Spread(adv, perRow, mask, rows)
	return whitenMasked(adv, mask)
}

// GDPOWeights is the setting of GDPO.
var GDPOWeights = Setting{Key: "gdpo.weights", Default: []float64{}, Verl: []string{"gdpo_reward_weights"},
	Help: "weights of reward.components, in their order; empty means 1 for each"}

// gdpoEstimator is the estimator "gdpo".
func gdpoEstimator() Estimator {
	settings := []Setting{scaleStd, GDPOWeights}
	return Estimator{Name: "gdpo", Groups: true, Components: true, Settings: settings,
		Estimate: func(s *Graded, c Settings) error {
			weights := c.Floats(GDPOWeights)
			if len(weights) == 0 {
				weights = nil
			}
			err := GDPO(s.Adv, s.Components, weights, s.Group, s.Mask, s.Rows, c.Bool(scaleStd))
			copy(s.Ret, s.Adv)
			return err
		}}
}

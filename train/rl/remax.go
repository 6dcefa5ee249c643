package rl

// ReMax sets ret [N] to the undiscounted Returns and adv [N] to ret less the reward of the
// greedy completion of the same prompt (arXiv:2310.10505):
//
//	A[t] = ret[t] - baseline[i]
//
// reward is [N], baseline [B]. At masked-out tokens adv is ret, which is meaningless there.
func ReMax[T Float](adv, ret, reward, baseline []T, mask []bool, rows Rows) {
	sameLen(len(mask), len(adv))
	sameLen(rows.Len(), len(baseline))
	Returns(ret, reward, mask, rows, 1)
	for i, b := range baseline {
		for t := rows[i]; t < rows[i+1]; t++ {
			adv[t] = ret[t]
			if mask[t] {
				adv[t] = T(float64(ret[t]) - float64(b))
			}
		}
	}
}

// reMaxEstimator is the estimator "remax".
func reMaxEstimator() Estimator {
	return Estimator{Name: "remax", Greedy: true, Tokens: true, Estimate: func(s *Graded, _ Settings) error {
		ReMax(s.Adv, s.Ret, s.Reward, s.Baseline, s.Mask, s.Rows)
		return nil
	}}
}

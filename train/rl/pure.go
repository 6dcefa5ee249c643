package rl

// PURE sets ret [N] to the sum of the step rewards to come and adv [N] to advantages over the other rows of the group
// (arXiv:2504.15275, with its token-level baseline):
//
//	ret[t] = Σ_k r[k] over the steps k of the row that end at t or after it
//	A[t]   = ret[t] - Σ_j Σ_s ret_j[s] / ((n-1)·longest) + RLOO of the row's outcome
//
// j runs over the n-1 other rows of the group and s over their unmasked tokens. The baseline is divided by the most
// tokens that a row may have, not by the row's steps or tokens: otherwise answers of one long step would gain (1-step
// hacking). The published code adds the outcome to the last token's reward instead, so its baseline counts the outcome
// of a long row more than that of a short one, and divides by the width of the padded batch. A row alone in its group
// has no baseline. outcome and group are [B]. At masked-out tokens both are 0.
func PURE[T Float](adv, ret, outcome []T, steps *Steps, group []int, mask []bool, rows Rows, longest int) {
	sameLen(rows.Len(), len(outcome), len(group))
	sameLen(len(mask), len(adv), len(ret))
	toGo, sums := make([]float64, len(mask)), make([]float64, rows.Len())
	steps.toGo(toGo, steps.Reward, rows)
	for i := range sums {
		sums[i], _ = sumCount(toGo[rows[i]:rows[i+1]], mask[rows[i]:rows[i+1]])
	}
	perRow := make([]T, len(outcome))
	RLOO(perRow, outcome, group, false)
	for _, members := range groupMembers(group) {
		var all float64
		for _, i := range members {
			all += sums[i]
		}
		for _, i := range members {
			base := 0.0
			if n := len(members); n > 1 {
				base = (all - sums[i]) / (float64(n-1) * float64(longest))
			}
			for t := rows[i]; t < rows[i+1]; t++ {
				if adv[t], ret[t] = 0, 0; mask[t] {
					ret[t] = T(toGo[t])
					adv[t] = T(toGo[t] - base + float64(perRow[i]))
				}
			}
		}
	}
}

// pureEstimator is the estimator "pure".
func pureEstimator() Estimator {
	return Estimator{Name: "pure", Groups: true, Steps: true, Estimate: func(s *Graded, _ Settings) error {
		PURE(s.Adv, s.Ret, s.Outcome, s.Steps, s.Group, s.Mask, s.Rows, s.Longest)
		return nil
	}}
}

package rl

// OPO sets dst[i] to the advantage of row i over its group's mean reward weighted by
// length, the least-variance baseline if the squared norm of a row's gradient grows with
// its length (arXiv:2505.23585):
//
//	A[i] = r[i] - Σ_j n[j]·r[j] / Σ_j n[j]
//
// with n the number of unmasked tokens. dst, score and group are [B]; dst and score may be
// the same slice. The baseline of a row alone in its group is 0, as in verl; so is the
// baseline of a group without tokens, where verl divides 0 by 0.
func OPO[T Float](dst, score []T, group []int, mask []bool, rows Rows) {
	rows.check(len(mask))
	sameLen(rows.Len(), len(dst), len(score), len(group))
	for _, members := range groupMembers(group) {
		var sum, tokens, baseline float64
		for _, i := range members {
			n := float64(countTrue(mask[rows[i]:rows[i+1]]))
			sum += float64(n * float64(score[i]))
			tokens += n
		}
		if len(members) > 1 && tokens > 0 {
			baseline = sum / tokens
		}
		for _, i := range members {
			dst[i] = T(float64(score[i]) - baseline)
		}
	}
}

// opoEstimator is the estimator "opo".
func opoEstimator() Estimator {
	return Estimator{Name: "opo", Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		OPO(s.Score, s.Score, s.Group, s.Mask, s.Rows)
		return nil
	})}
}

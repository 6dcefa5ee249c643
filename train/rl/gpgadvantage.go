package rl

// GPGAdvantage sets dst[i] to the advantage of row i in group policy gradient
// (arXiv:2504.02546). alpha restores the gradient size that a batch loses to rows without
// reward:
//
//	A[i] = alpha·(r[i] - mean)/norm,  alpha = B / max(1, rows with r ≠ 0)
//
// mean is the group's, 0 for a row alone. dst, score and group are as for GroupAdvantage;
// alpha is over all B rows. norm is a constant, verl's f_norm, 1 by default.
func GPGAdvantage[T Float](dst, score []T, group []int, norm float64) {
	sameLen(len(group), len(dst), len(score))
	nonzero := 0
	for _, r := range score {
		if r != 0 {
			nonzero++
		}
	}
	factor := float64(len(score)) / float64(max(1, nonzero)) / norm
	for _, members := range groupMembers(group) {
		mean, _ := groupStats(score, members)
		for _, i := range members {
			dst[i] = T((float64(score[i]) - mean) * factor)
		}
	}
}

// gpgEstimator is the estimator "gpg".
func gpgEstimator() Estimator {
	return Estimator{Name: "gpg", Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		GPGAdvantage(s.Score, s.Score, s.Group, 1)
		return nil
	})}
}

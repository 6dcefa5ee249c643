package rl

// RLOO sets dst[i] to the advantage of row i over the mean of the other rows of
// its group, leave-one-out (arXiv:2402.14740):
//
//	A[i] = r[i] - mean of the others = (r[i] - mean)·n/(n-1)
//
// dst, score and group are as for GroupAdvantage. A row alone in its group has no others:
// its advantage is r[i], an unbiased gradient without a baseline, as in verl's rloo; with
// dropAlone it is 0, as in verl's rloo_vectorized.
func RLOO[T Float](dst, score []T, group []int, dropAlone bool) {
	sameLen(len(group), len(dst), len(score))
	for _, members := range groupMembers(group) {
		mean, _ := groupStats(score, members)
		factor := 1.0
		switch n := float64(len(members)); {
		case n > 1:
			factor = n / (n - 1)
		case dropAlone:
			factor = 0
		}
		for _, i := range members {
			dst[i] = T((float64(score[i]) - mean) * factor)
		}
	}
}

// rlooEstimator is the estimator "rloo", or with dropAlone "rloo_vectorized".
func rlooEstimator(dropAlone bool) Estimator {
	name := "rloo"
	if dropAlone {
		name = "rloo_vectorized"
	}
	return Estimator{Name: name, Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		RLOO(s.Score, s.Score, s.Group, dropAlone)
		return nil
	})}
}

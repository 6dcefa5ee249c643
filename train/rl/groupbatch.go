package rl

// BatchScaledAdvantage sets dst[i] to the distance of row i from its group's mean over the standard deviation of all
// rows, TRL's scale_rewards: batch (arXiv:2508.08221):
//
//	A[i] = (r[i] - mean of the group) / (std of all rows + 1e-6)
//
// A group whose rewards hardly differ then has small advantages, while GRPO's always have size about 1. Means, the
// std (with B-1; TRL adds 1e-4) and its bound of 1e-8 are as for GroupAdvantage. dst, score and group are [B]; dst and
// score may be the same slice.
func BatchScaledAdvantage[T Float](dst, score []T, group []int) {
	sameLen(len(group), len(dst), len(score))
	all := make([]int, len(score))
	for i := range all {
		all[i] = i
	}
	if len(all) == 0 {
		return
	}
	_, factor := groupScale(score, all, true)
	for _, members := range groupMembers(group) {
		mean, _ := groupStats(score, members)
		for _, i := range members {
			dst[i] = T((float64(score[i]) - mean) * factor)
		}
	}
}

// batchScaledEstimator is the estimator "grpo_batch_std".
func batchScaledEstimator() Estimator {
	return Estimator{Name: "grpo_batch_std", Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		BatchScaledAdvantage(s.Score, s.Score, s.Group)
		return nil
	})}
}

package rl

import "math"

// groupVarianceFloor is the least variance of a group, verl's epsilon.
const groupVarianceFloor = 1e-6

// FlooredGroupAdvantage sets dst[i] to the scaled GroupAdvantage with a floor under the
// group's variance:
//
//	A[i] = (r[i] - mean) / (sqrt(max(var, 1e-6)) + 1e-6)
//
// Rewards that differ by less than about 1e-3 then have small advantages, while GRPO's
// always have size about 1. This is verl's grpo_vectorized from its #3635 until #6348,
// which took the floor for a mistake. dst, score and group are as for GroupAdvantage.
func FlooredGroupAdvantage[T Float](dst, score []T, group []int) {
	sameLen(len(group), len(dst), len(score))
	for _, members := range groupMembers(group) {
		mean, std := groupStats(score, members)
		inv := 1 / (max(std, math.Sqrt(groupVarianceFloor)) + stdEps)
		for _, i := range members {
			dst[i] = T((float64(score[i]) - mean) * inv)
		}
	}
}

// flooredGroupEstimator is the estimator "grpo_std_floor".
func flooredGroupEstimator() Estimator {
	return Estimator{Name: "grpo_std_floor", Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		FlooredGroupAdvantage(s.Score, s.Score, s.Group)
		return nil
	})}
}

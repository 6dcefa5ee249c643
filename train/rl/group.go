package rl

import "math"

const (
	stdEps = 1e-6 // added to a group's std before division, as in verl
	stdMin = 1e-8 // below it a group's std is rounding, not signal
)

// GroupAdvantage sets dst[i] to the advantage of row i among the rows of the
// same prompt, its group:
//
//	A[i] = (r[i] - mean) / (std + 1e-6)   scale        GRPO, arXiv:2402.03300 §4.1.2
//	A[i] =  r[i] - mean                   otherwise    Dr. GRPO, arXiv:2503.20783
//
// dst, score and group are [B]; dst and score may be the same slice. Rows of one group
// share a value of group, in any order. std divides by n-1, as in verl (Megatron-LM divides
// by n and adds 1e-4). If it is below 1e-8, A is zero; verl divides the rounding error by
// 1e-6. A row alone in its group has no comparison: as in verl, its mean is 0 and its std
// 1.
func GroupAdvantage[T Float](dst, score []T, group []int, scale bool) {
	sameLen(len(group), len(dst), len(score))
	for _, members := range groupMembers(group) {
		mean, factor := groupScale(score, members, scale)
		for _, i := range members {
			dst[i] = T((float64(score[i]) - mean) * factor)
		}
	}
}

// groupScale returns the mean of the members' scores and the factor that turns a distance
// from it into an advantage.
func groupScale[T Float](score []T, members []int, scale bool) (mean, factor float64) {
	mean, std := groupStats(score, members)
	switch {
	case std < stdMin:
		return mean, 0
	case scale:
		return mean, 1 / (std + stdEps)
	}
	return mean, 1
}

// groupMembers returns the rows of each group in ascending order, groups in order of their
// first row.
func groupMembers(group []int) [][]int {
	var members [][]int
	number := make(map[int]int)
	for i, g := range group {
		k, ok := number[g]
		if !ok {
			k = len(members)
			number[g] = k
			members = append(members, nil)
		}
		members[k] = append(members[k], i)
	}
	return members
}

// groupStats returns the mean and the sample standard deviation of the members' scores; 0
// and 1 for a single member.
func groupStats[T Float](score []T, members []int) (mean, std float64) {
	if len(members) == 1 {
		return 0, 1
	}
	n := float64(len(members))
	for _, i := range members {
		mean += float64(score[i])
	}
	mean /= n
	var ss float64
	for _, i := range members {
		ss += square(float64(score[i]) - mean)
	}
	return mean, math.Sqrt(ss / (n - 1))
}

// StdDev returns the sample standard deviation of x, which divides by n-1; 0 of fewer than two.
func StdDev(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	members := make([]int, len(x))
	for i := range members {
		members[i] = i
	}
	_, std := groupStats(x, members)
	return std
}

// scaleStd is read by estimators that divide by a group's standard deviation.
var scaleStd = Setting{Key: "scale_std", Default: true, Verl: []string{"norm_adv_by_std_in_grpo"},
	Help: "divide advantages by the group's standard deviation (GRPO); false is Dr. GRPO, arXiv:2503.20783"}

// groupEstimator is the estimator "grpo".
func groupEstimator() Estimator {
	estimate := ofRows(func(s *Graded, c Settings) error {
		GroupAdvantage(s.Score, s.Score, s.Group, c.Bool(scaleStd))
		return nil
	})
	return Estimator{Name: "grpo", Groups: true, Settings: []Setting{scaleStd}, Estimate: estimate}
}

// groupVectorizedEstimator is the estimator "grpo_vectorized": grpo, always scaled, because
// verl's trainer does not pass it the flag.
func groupVectorizedEstimator() Estimator {
	return Estimator{Name: "grpo_vectorized", Groups: true, Estimate: ofRows(func(s *Graded, _ Settings) error {
		GroupAdvantage(s.Score, s.Score, s.Group, true)
		return nil
	})}
}

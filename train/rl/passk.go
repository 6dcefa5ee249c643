package rl

import "errors"

// ErrAlone reports a group of one row where a comparison needs two.
var ErrAlone = errors.New("a group needs at least two rows")

// PassKAdvantage sets dst to the advantages of the pass@k objective (arXiv:2503.19595):
// only the best row raises the group's greatest reward, by its margin over the second best.
//
//	A[best] = (r[best] - r[second]) / (std + 1e-6)   scale
//	A[best] =  r[best] - r[second]                   otherwise
//	A[i]    =  0                                     all other rows
//
// dst, score, group and std are as for GroupAdvantage; if two rows are best, A is zero. It
// returns ErrAlone, and leaves dst alone, if a group has one row. This is verl's
// grpo_passk.
func PassKAdvantage[T Float](dst, score []T, group []int, scale bool) error {
	sameLen(len(group), len(dst), len(score))
	groups := groupMembers(group)
	for _, members := range groups {
		if len(members) < 2 {
			return ErrAlone
		}
	}
	leads(dst, score, groups, scale)
	return nil
}

// leads is PassKAdvantage; a row alone in its group beats none, so its advantage is zero.
func leads[T Float](dst, score []T, groups [][]int, scale bool) {
	for _, members := range groups {
		if len(members) == 1 {
			dst[members[0]] = 0
			continue
		}
		_, factor := groupScale(score, members, scale)
		best, second := members[0], members[1]
		if score[second] > score[best] {
			best, second = second, best
		}
		for _, i := range members[2:] {
			if score[i] > score[best] {
				best, second = i, best
			} else if score[i] > score[second] {
				second = i
			}
		}
		lead := float64(score[best]) - float64(score[second])
		for _, i := range members {
			dst[i] = 0
		}
		dst[best] = T(lead * factor)
	}
}

// passKEstimator is the estimator "grpo_passk". Rows without a verdict may leave one alone.
func passKEstimator() Estimator {
	estimate := ofRows(func(s *Graded, c Settings) error {
		leads(s.Score, s.Score, groupMembers(s.Group), c.Bool(scaleStd))
		return nil
	})
	return Estimator{Name: "grpo_passk", Groups: true, Settings: []Setting{scaleStd}, Estimate: estimate}
}

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
// dst, score, group and std are as for GroupAdvantage; if two rows are best, A is zero. So it
// is for a row alone in its group, and PassKAdvantage then returns ErrAlone, where verl's
// grpo_passk, which this is, ends the run.
func PassKAdvantage[T Float](dst, score []T, group []int, scale bool) (err error) {
	sameLen(len(group), len(dst), len(score))
	for _, members := range groupMembers(group) {
		if len(members) == 1 {
			dst[members[0]], err = 0, ErrAlone
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
	return err
}

// passKEstimator is the estimator "grpo_passk". Rows without a verdict may leave one alone.
func passKEstimator() Estimator {
	estimate := ofRows(func(s *Graded, c Settings) error {
		_ = PassKAdvantage(s.Score, s.Score, s.Group, c.Bool(scaleStd)) // rows alone learn nothing
		return nil
	})
	return Estimator{Name: "grpo_passk", Groups: true, Settings: []Setting{scaleStd}, Estimate: estimate}
}

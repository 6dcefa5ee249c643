package rl

import "math"

// Words for how the scores of an answer's steps become its rewards.
const (
	CreditAnswer = "answer" // one reward of the answer
	CreditSum    = "sum"    // one of each step: a return is the sum of those to come
	CreditMin    = "min"    // the same, weighed so that a return is about the least of those to come
)

// StepCredits lists them.
func StepCredits() []string { return []string{CreditAnswer, CreditSum, CreditMin} }

// StepCredit says what the steps of an answer earn.
type StepCredit struct {
	Wrong, Right float64 // reward of a step that is certainly wrong, and of one that is certainly right
	Weight       float64 // of all of them
	Temperature  float64 // of the min form; 0: the sum form
}

// Rewards sets dst[k] to what step k of an answer earns, given the probabilities right [K] that its steps are right:
//
//	r[k]   = Wrong + (Right - Wrong)·right[k]
//	dst[k] = Weight·r[k]                                  sum form
//	dst[k] = Weight·r[k]·exp(-r[k]/T) / Σ_j exp(-r[j]/T)  min form, T the temperature
//
// The min form is PURE's (arXiv:2504.15275, with Wrong -1, Right 1 and T 0.1): as T falls to 0, the sum of the rewards
// from a step on tends to the least r of the answer, or to 0 if that comes before. So an answer earns what its worst
// step is worth, however many steps it has. dst and right are [K] and may be the same slice.
func (c StepCredit) Rewards(dst, right []float64) {
	sameLen(len(right), len(dst))
	least := math.Inf(1)
	for k, p := range right {
		dst[k] = c.Wrong + float64((c.Right-c.Wrong)*p)
		least = min(least, dst[k])
	}
	if c.Temperature == 0 {
		for k := range dst {
			dst[k] = float64(c.Weight*dst[k]) + 0 // never -0
		}
		return
	}
	var all float64
	for _, r := range dst {
		all += exp((least - r) / c.Temperature)
	}
	for k, r := range dst {
		share := exp((least-r)/c.Temperature) / all
		dst[k] = float64(c.Weight*float64(r*share)) + 0
	}
}

// Steps are the steps of a batch's answers that earn rewards, M in all, in the order of their places.
type Steps struct {
	Row    []int     // [M] of the answer
	Last   []int     // [M] the step's last token, of the batch's N
	Reward []float64 // [M]
}

// Add adds a step.
func (s *Steps) Add(row, last int, reward float64) {
	s.Row, s.Last, s.Reward = append(s.Row, row), append(s.Last, last), append(s.Reward, reward)
}

// toGo sets dst [N] to the sum of x [M] over the steps of a token's row that end at it or after it.
func (s *Steps) toGo(dst, x []float64, rows Rows) {
	sameLen(len(s.Row), len(x), len(s.Last))
	clear(dst)
	for k, v := range x {
		dst[s.Last[k]] += v
	}
	for i := range rows.Len() {
		for t := rows[i+1] - 2; t >= rows[i]; t-- {
			dst[t] += dst[t+1]
		}
	}
}

// groups returns the group of each step [M], given the rows' [B].
func (s *Steps) groups(group []int) []int {
	list := make([]int, len(s.Row))
	for k, i := range s.Row {
		list[k] = group[i]
	}
	return list
}

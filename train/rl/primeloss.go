package rl

import "math"

// PrimeLossKind is the loss of an implicit process reward model.
type PrimeLossKind uint8

const (
	PrimeCE     PrimeLossKind = iota // binary cross entropy of the verdict: arXiv:2502.01456 alg. 1
	PrimeDPO                         // against the mean of the completions with the other verdict
	PrimeBoNAcc                      // the same, weighted towards the best of n by verdict
	PrimeBoNRM                       // the same, by reward
)

var primeLossWords = []string{PrimeCE: "ce", PrimeDPO: "dpo", PrimeBoNAcc: "bon_acc", PrimeBoNRM: "bon_rm"}

// ReadsGroup reports whether a row's loss depends on the rewards of its group before the update.
func (k PrimeLossKind) ReadsGroup() bool { return k != PrimeCE }

// PrimeTarget is what the loss of an implicit process reward model compares a row's reward with.
type PrimeTarget struct {
	Side   float64 // 1 for a right completion, -1 for a wrong one
	Other  float64 // the reward to be above, or below
	Weight float64
}

// PrimeTargets returns the targets [B] of rows that are right or wrong. reward [B] are the RowRewards before the
// update, which only losses that read groups need. Of a row with verdict right:
//
//	Other  = 0                                                          PrimeCE
//	       = mean reward of the group's rows with the other verdict     otherwise; 0 without any
//	Weight = n·(share of the group's rows that are not above it)^(n-1)  PrimeBoNAcc by verdict, PrimeBoNRM by reward
//	       = 1                                                          otherwise
//
// n is the size of the group; the weight is the density of the best of n over that of one.
func PrimeTargets(reward []float64, right []bool, group []int, k PrimeLossKind) []PrimeTarget {
	sameLen(len(right), len(group))
	list := make([]PrimeTarget, len(right))
	for i, yes := range right {
		list[i] = PrimeTarget{Side: -1, Weight: 1}
		if yes {
			list[i].Side = 1
		}
	}
	if !k.ReadsGroup() {
		return list
	}
	sameLen(len(right), len(reward))
	for _, members := range groupMembers(group) {
		n := float64(len(members))
		for _, i := range members {
			var sum, others, below float64
			for _, j := range members {
				if right[j] != right[i] {
					sum += reward[j]
					others++
				}
				if k == PrimeBoNAcc && (right[i] || !right[j]) || k == PrimeBoNRM && reward[j] <= reward[i] {
					below++
				}
			}
			if others > 0 {
				list[i].Other = sum / others
			}
			if k != PrimeDPO {
				list[i].Weight = float64(n * power(below/n, len(members)-1))
			}
		}
	}
	return list
}

// power returns xⁿ by repeated products, which have the same bits everywhere.
func power(x float64, n int) float64 {
	p := 1.0
	for range n {
		p = float64(p * x)
	}
	return p
}

// RowRewards returns Beta times the sums [B] of a row's log-ratios over its unmasked tokens: what an implicit reward
// model makes of a whole completion.
func RowRewards[T Float](logProb, refLogProb []T, mask []bool, rows Rows, beta float64) []float64 {
	rows.check(len(mask))
	sameLen(len(mask), len(logProb), len(refLogProb))
	list := make([]float64, rows.Len())
	for i := range list {
		var sum float64
		for t := rows[i]; t < rows[i+1]; t++ {
			if mask[t] {
				sum += float64(logProb[t]) - float64(refLogProb[t])
			}
		}
		list[i] = float64(beta * sum)
	}
	return list
}

// PrimeLoss adds the loss of an implicit process reward model to s, and its gradient to dlogProb [N]. With reward the
// RowRewards:
//
//	Σ_i Weight·-log σ(Side·(reward_i - Other)) / n
//
// over the rows with unmasked tokens; n counts those of the mini-batch. For PrimeCE that is the binary cross entropy
// of the verdict with σ(reward). logProb and refLogProb are [N], target is [B].
func PrimeLoss[T Float](dlogProb, logProb, refLogProb []T, mask []bool, rows Rows, target []PrimeTarget, beta float64,
	n int, s *PrimeStats) {
	sameLen(len(mask), len(dlogProb))
	sameLen(rows.Len(), len(target))
	for i, reward := range RowRewards(logProb, refLogProb, mask, rows, beta) {
		if !anyOf(mask[rows[i]:rows[i+1]]) {
			continue
		}
		x := target[i]
		margin := float64(x.Side * (reward - x.Other))
		share := x.Weight / float64(n)
		s.Loss += float64(share * softplus(-margin))
		slope := -float64(float64(float64(x.Side*share)*sigmoid(-margin)) * beta)
		for t := rows[i]; t < rows[i+1]; t++ {
			if mask[t] {
				dlogProb[t] += T(slope)
			}
		}
	}
}

// PrimeRows counts the rows that have a loss: those with unmasked tokens.
func PrimeRows(mask []bool, rows Rows) (n int) {
	rows.check(len(mask))
	for i := range rows.Len() {
		if anyOf(mask[rows[i]:rows[i+1]]) {
			n++
		}
	}
	return n
}

func anyOf(mask []bool) bool {
	for _, on := range mask {
		if on {
			return true
		}
	}
	return false
}

// PrimeStats accumulates PrimeLoss over the micro-batches of a mini-batch. The zero value is empty.
type PrimeStats struct{ Loss float64 }

// Metrics returns the loss under verl's name.
func (s *PrimeStats) Metrics() []Metric { return []Metric{{"reward_model/dpo_loss", s.Loss}} }

// RankAccuracy returns how well scores [B] rank a problem's completions: the share of the pairs of a right and a wrong
// one in a group in which the right one scores higher, a tie counting half; the mean over groups with such pairs. It
// is NaN without any. verl counts groups without pairs as 0.5, and a tie by the order of its rows.
func RankAccuracy(score []float64, right []bool, group []int) float64 {
	sameLen(len(score), len(right), len(group))
	var sum, groups float64
	for _, members := range groupMembers(group) {
		var good, pairs float64
		for _, i := range members {
			for _, j := range members {
				if right[i] && !right[j] {
					good += half(score[i] - score[j])
					pairs++
				}
			}
		}
		if pairs > 0 {
			sum += good / pairs
			groups++
		}
	}
	if groups == 0 {
		return math.NaN()
	}
	return sum / groups
}

// SignAccuracy returns the share of scores [B] that are above 0 for right rows and below 0 for wrong ones, a 0
// counting half; NaN without rows. verl counts a 0 as wrong.
func SignAccuracy(score []float64, right []bool) float64 {
	sameLen(len(score), len(right))
	var good float64
	for i, x := range score {
		if !right[i] {
			x = -x
		}
		good += half(x)
	}
	return good / float64(len(score))
}

// half is 1 above 0, 0 below and 1/2 at 0.
func half(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x == 0:
		return 0.5
	}
	return 0
}

// PrimeMetrics returns how an implicit reward model judges rows by their scores [B], the sums of process rewards,
// under verl's names with a suffix: how often it ranks and how often it signs them right. A metric of nothing is left
// out.
func PrimeMetrics(score []float64, right []bool, group []int, suffix string) (list []Metric) {
	if rank := RankAccuracy(score, right, group); !math.IsNaN(rank) {
		list = append(list, Metric{"reward_model/dpo_acc" + suffix, rank})
	}
	if len(score) > 0 {
		list = append(list, Metric{"reward_model/dpo_acc_abs" + suffix, SignAccuracy(score, right)})
	}
	return list
}

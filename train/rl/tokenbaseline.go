package rl

import (
	"iter"
	"slices"
)

// TokenBaseline holds the settings of OptimalTokenBaseline. The zero value is verl's
// tir_optimal_token_baseline, which is right with and without tool turns.
type TokenBaseline struct {
	// Columns counts a row's positions over all its tokens, masked-out ones included, as
	// verl's optimal_token_baseline does. After a tool turn it then compares tokens at
	// different places of their completions, and the tail rule mistakes a count of unmasked
	// tokens for a position. Without masked-out tokens between unmasked ones it changes
	// nothing.
	Columns bool
	// KeepTail uses the longest row's own return as its baseline where no other row of the
	// group reaches, which makes its advantage 0 there. Otherwise the baseline is 0 there.
	KeepTail bool
}

// tokenBaselineEps is added to the sum of weights that a baseline divides by, as in verl.
const tokenBaselineEps = 1e-8

// OptimalTokenBaseline sets ret [N] to the undiscounted Returns and adv [N] to ret less the
// least-variance baseline for the group and the token's position k among the unmasked
// tokens of its row (Li et al., "The Optimal Token Baseline", PMLR v306, 2026):
//
//	w[t] = (1 - 2·π[t] + Σ_v π(v)²) · Weight[t]²   squared norm of the gradient by
//	                                              the logits; π = exp(OldLogProb)
//	W[k] = Σ w over the row up to and with k
//	B[k] = Σ_i W_i[k]·ret_i[k] / (Σ_i W_i[k] + 1e-8)  over the rows of the group
//	A    = ret - B
//
// and 0 at masked-out tokens. B is 0 for a row alone in its group; without
// Columns, rows without unmasked tokens do not count. It reads Rows,
// Mask, OldLogProb and Weight of b. reward and sumPiSquared are [N]; sumPiSquared is
// Σ_v π(v)² of the full softmax of OldLogProb's policy at each token: of another one w may be
// negative. group is [B].
func OptimalTokenBaseline[T Float](adv, ret []T, b *Batch[T], reward, sumPiSquared []T, group []int,
	c TokenBaseline) {
	sameLen(len(b.Mask), len(adv), len(b.OldLogProb), len(sumPiSquared))
	sameLen(b.Rows.Len(), len(group))
	Returns(ret, reward, b.Mask, b.Rows, 1)
	copy(adv, ret)
	clearMasked(adv, b.Mask)
	for _, members := range groupMembers(group) {
		if !c.Columns { // as in verl, a row without unmasked tokens is in no group
			members = slices.DeleteFunc(members, func(i int) bool {
				return countTrue(b.Mask[b.Rows[i]:b.Rows[i+1]]) == 0
			})
		}
		sum, weight := pathSums(b, ret, sumPiSquared, members, c.Columns)
		longest, tail := longestRow(b, members)
		if c.KeepTail && len(members) > 1 {
			longest = -1
		}
		for _, i := range members {
			for k, t := range positions(b, i, c.Columns) {
				if i != longest || k < tail {
					adv[t] = T(float64(ret[t]) - sum[k]/(weight[k]+tokenBaselineEps))
				}
			}
		}
	}
}

// pathSums returns Σ W·ret and Σ W over the members for each position.
func pathSums[T Float](b *Batch[T], ret, sumPiSquared []T, members []int, columns bool) (sum, weight []float64) {
	for _, i := range members {
		var path float64
		for k, t := range positions(b, i, columns) {
			for len(sum) <= k {
				sum, weight = append(sum, 0), append(weight, 0)
			}
			w, is := scoreNorm(b, sumPiSquared, t)
			path += float64(w * square(is))
			sum[k] += float64(path * float64(ret[t]))
			weight[k] += path
		}
	}
	return sum, weight
}

// scoreNorm returns the squared norm of the gradient of token t's log-prob by the
// logits, ‖onehot - π‖² = 1 - 2·π[t] + Σ_v π(v)², and the token's importance weight.
func scoreNorm[T Float](b *Batch[T], sumPiSquared []T, t int) (norm, weight float64) {
	p := exp(float64(b.OldLogProb[t]))
	return 1 - float64(2*p) + float64(sumPiSquared[t]), b.weight(t)
}

// positions yields the unmasked tokens t of row i and their positions k.
func positions[T Float](b *Batch[T], i int, columns bool) iter.Seq2[int, int] {
	return func(yield func(k, t int) bool) {
		k := 0
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			if b.Mask[t] && !yield(k, t) {
				return
			}
			if b.Mask[t] || columns {
				k++
			}
		}
	}
}

// longestRow returns the member with the most unmasked tokens, -1 if several tie, and the
// length of the second longest; below 0 if there is none.
func longestRow[T Float](b *Batch[T], members []int) (row, second int) {
	row, most, second := -1, -1, -1
	for _, i := range members {
		switch n := countTrue(b.Mask[b.Rows[i]:b.Rows[i+1]]); {
		case n > most:
			row, most, second = i, n, most
		case n == most:
			row, second = -1, n
		case n > second:
			second = n
		}
	}
	return row, second
}

// keepTail is the setting of both token baselines.
var keepTail = Setting{Key: "token_baseline.keep_tail", Default: false,
	Help: "where only the longest completion of a group reaches, use its own return as the baseline, " +
		"so that its advantage is 0 there; otherwise the baseline is 0"}

// tokenBaselineEstimator is the estimator "optimal_token_baseline" with columns, else
// "tir_optimal_token_baseline".
func tokenBaselineEstimator(columns bool) Estimator {
	name := "tir_optimal_token_baseline"
	if columns {
		name = "optimal_token_baseline"
	}
	return Estimator{Name: name, Groups: true, SumPiSquared: true, Tokens: true, Settings: []Setting{keepTail},
		Estimate: func(s *Graded, c Settings) error {
			OptimalTokenBaseline(s.Adv, s.Ret, s.Batch, s.Reward, s.SumPiSquared, s.Group,
				TokenBaseline{Columns: columns, KeepTail: c.Bool(keepTail)})
			return nil
		}}
}

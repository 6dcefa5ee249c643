package rl

// RightTerm adds the language-modelling loss of right completions to an objective (VAPO's positive example LM
// loss, arXiv:2504.05118),
//
//	-weight·Σ logProb/of   over the unmasked tokens of rows that are right
//
// with of the number of such tokens in the whole mini-batch: its gradient to dLogProb [N], and -Σ logProb/of to sum.
// right is [B].
func RightTerm[T Float](dLogProb, logProb []T, mask []bool, rows Rows, right []bool, weight float64, of int,
	sum *float64) {
	sameLen(len(mask), len(dLogProb), len(logProb))
	rows.check(len(mask))
	sameLen(rows.Len(), len(right))
	for i, yes := range right {
		if !yes {
			continue
		}
		for t := rows[i]; t < rows[i+1]; t++ {
			if mask[t] {
				*sum -= float64(logProb[t]) / float64(of)
				dLogProb[t] -= T(weight / float64(of))
			}
		}
	}
}

// CountRight returns the number of unmasked tokens of right rows.
func CountRight(mask []bool, rows Rows, right []bool) (n int) {
	for i, yes := range right {
		if yes {
			n += countTrue(mask[rows[i]:rows[i+1]])
		}
	}
	return n
}

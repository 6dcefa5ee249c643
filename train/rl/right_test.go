package rl

import (
	"math"
	"testing"
)

// By hand: of three rows two are right, with two and one unmasked tokens. The term is 0.3 times the mean of -logProb.
func TestRightTerm(t *testing.T) {
	lp := []float64{-1, -2, -3, -4, -5, -6}
	mask, rows, right := []bool{on, off, on, on, on, on}, Rows{0, 3, 5, 6}, []bool{true, false, true}
	if n := CountRight(mask, rows, right); n != 3 {
		t.Errorf("%d tokens, want 3", n)
	}
	d, sum := []float64{1, 1, 1, 1, 1, 1}, 0.5
	RightTerm(d, lp, mask, rows, right, 0.3, 3, &sum)
	for i, want := range []float64{0.9, 1, 0.9, 1, 1, 0.9} {
		if math.Abs(d[i]-want) > 1e-15 {
			t.Errorf("derivative %d is %v, want %v", i, d[i], want)
		}
	}
	if want := 0.5 + (1+3+6)/3.; math.Abs(sum-want) > 1e-15 {
		t.Errorf("sum %v, want %v", sum, want)
	}
}

// addRight lists the loss of right completions; a sample's rows are right by the value of their first unmasked token.
func addRight[T Float](list map[string]objective[T]) {
	list["right completions"] = objective[T]{by: func(s *sample[T]) []T { return s.LogProb },
		start: func(rows int) accumulator[T] {
			return plainSum(0.7, func(d []T, s *sample[T], sum *float64) {
				right := make([]bool, s.Rows.Len())
				for i := range right {
					kept := unmasked(s.Mask, s.Rows[i], s.Rows[i+1])
					right[i] = len(kept) > 0 && s.Value[kept[0]] > 0
				}
				RightTerm(d, s.LogProb, s.Mask, s.Rows, right, 0.7, rows, sum)
			})
		}}
}

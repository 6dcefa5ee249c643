package rl

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// One advantage per row, by hand. Row lengths are for OPO.
func TestRowAdvantages(t *testing.T) {
	rloo := func(dropAlone bool) func(dst, score []float64, group []int) {
		return func(dst, score []float64, group []int) { RLOO(dst, score, group, dropAlone) }
	}
	softMean := func(dst, score []float64, _ []int) { SoftMeanAdvantage(dst, score, 2) }
	gpg := func(dst, score []float64, group []int) { GPGAdvantage(dst, score, group, 1) }
	opo := func(lengths ...int) func(dst, score []float64, group []int) {
		rows, mask := Rows{0}, []bool{}
		for _, n := range lengths {
			mask = append(mask, off) // no part of a length
			mask = append(mask, slices.Repeat([]bool{on}, n)...)
			rows = append(rows, len(mask))
		}
		return func(dst, score []float64, group []int) { OPO(dst, score, group, mask, rows) }
	}
	passK := func(scale bool) func(dst, score []float64, group []int) {
		return func(dst, score []float64, group []int) {
			if err := PassKAdvantage(dst, score, group, scale); err != nil {
				t.Error(err)
			}
		}
	}
	tests := []struct {
		name  string
		f     func(dst, score []float64, group []int)
		score []float64
		group []int
		want  []float64
	}{
		// over the means of the others: (2+6)/2, (1+6)/2, (1+2)/2
		{"rloo", rloo(false), []float64{1, 2, 6}, []int{0, 0, 0}, []float64{-3, -1.5, 4.5}},
		{"rloo, one alone", rloo(false), []float64{3, 1, 2}, []int{9, 0, 0}, []float64{3, -1, 1}},
		{"rloo, one dropped", rloo(true), []float64{3, 1, 2}, []int{9, 0, 0}, []float64{0, -1, 1}},
		{"rloo, all equal", rloo(false), []float64{2, 2, 2}, []int{0, 0, 0}, []float64{0, 0, 0}},
		{"rloo, none", rloo(false), nil, nil, nil},
		// alpha = 4/2, mean ½
		{"gpg", gpg, []float64{0, 1, 1, 0}, []int{0, 0, 0, 0}, []float64{-1, 1, 1, -1}},
		{"gpg, no reward", gpg, []float64{0, 0}, []int{0, 0}, []float64{0, 0}},
		{"gpg, one alone", gpg, []float64{0, 3}, []int{0, 1}, []float64{0, 6}}, // alpha = 2/1
		// (1·4 + 3·0)/4 = 1
		{"opo", opo(1, 3), []float64{4, 0}, []int{0, 0}, []float64{3, -1}},
		{"opo, equal lengths", opo(2, 2), []float64{4, 0}, []int{0, 0}, []float64{2, -2}},
		{"opo, one alone", opo(2), []float64{4}, []int{0}, []float64{4}},
		{"opo, one empty", opo(0, 2), []float64{4, 1}, []int{0, 0}, []float64{3, 0}},
		{"opo, all empty", opo(0, 0), []float64{4, 1}, []int{0, 0}, []float64{4, 1}},
		// exp(2·0) and exp(2·ln 2) = 4 have the mean 5/2, over both groups
		{"soft mean", softMean, []float64{0, math.Ln2}, []int{0, 1}, []float64{math.Log(2. / 5), math.Log(8. / 5)}},
		{"soft mean of large rewards", softMean, []float64{1e4, 1e4}, []int{0, 0}, []float64{0, 0}},
		{"pass@k", passK(false), []float64{1, 5, 3}, []int{0, 0, 0}, []float64{0, 2, 0}},
		{"pass@k, best first", passK(false), []float64{5, 1, 4}, []int{0, 0, 0}, []float64{1, 0, 0}},
		{"pass@k, best last", passK(false), []float64{1, 4, 5}, []int{0, 0, 0}, []float64{0, 0, 1}},
		{"pass@k, scaled", passK(true), []float64{0, 2}, []int{0, 0}, []float64{0, 2 / (math.Sqrt2 + 1e-6)}}, // std = √2
		{"pass@k, tie", passK(true), []float64{0, 2, 2}, []int{0, 0, 0}, []float64{0, 0, 0}},
		{"pass@k, all equal", passK(true), []float64{0.30000000000000004, 0.3}, []int{0, 0}, []float64{0, 0}},
		{"pass@k, two groups", passK(false), []float64{1, 7, 4, 7}, []int{0, 1, 0, 1}, []float64{0, 0, 3, 0}},
	}
	for _, tt := range tests {
		got := slices.Clone(tt.score) // in place
		tt.f(got, got, tt.group)
		for i := range got {
			if !near(got[i], tt.want[i], 1e-15) {
				t.Errorf("%s: A[%d] = %.17g, want %.17g", tt.name, i, got[i], tt.want[i])
			}
		}
	}
	dst := []float64{7, 8, 9}
	if err := PassKAdvantage(dst, []float64{1, 2, 3}, []int{0, 0, 1}, false); !errors.Is(err, ErrAlone) || !slices.Equal(dst, []float64{0, 1, 0}) {
		t.Errorf("pass@k of a row alone: %v, error %v", dst, err)
	}
	for name, f := range map[string]func(){
		"rloo": func() { RLOO(make([]float64, 1), []float64{1, 2}, []int{0, 0}, false) },
		"opo":  func() { OPO(make([]float64, 1), []float64{1}, []int{0}, []bool{on}, Rows{0}) },
		"gpg":  func() { GPGAdvantage(make([]float64, 2), []float64{1, 2}, []int{0}, 1) },
		"gdpo": func() {
			GDPO(make([]float64, 1), [][]float64{{1}, {1}}, []float64{1}, []int{0}, []bool{on}, Rows{0, 1}, true)
		},
	} {
		if !panics(f) {
			t.Errorf("%s: no panic for lengths that differ", name)
		}
	}
}

// Two rewards in one group: the second, of a thousandth the size, has the same say
// once each is standardised. Scores 0,1,2 and 0.002,0.001,0 cancel.
func TestGDPO(t *testing.T) {
	mask, rows, group := []bool{on, on, off, on}, Rows{0, 1, 3, 4}, []int{0, 0, 0}
	scores := [][]float64{{0, 1, 2}, {0.002, 0.001, 0}}
	adv := make([]float64, 4)
	if err := GDPO(adv, scores, nil, group, mask, rows, true); err != nil {
		t.Fatal(err)
	}
	for i, a := range adv {
		// Sums are (1/(1+1e-6) - 0.001/(0.001+1e-6)) = 1e-3 off zero, whitened to ∓1.
		if want := []float64{-1, 0, 0, 1}[i]; !near(a, want, 1e-2) {
			t.Errorf("equal weights: A[%d] = %g, want %g", i, a, want)
		}
	}
	if err := GDPO(adv, scores, []float64{0, 1}, group, mask, rows, true); err != nil {
		t.Fatal(err)
	}
	for i, a := range adv {
		if want := []float64{1, 0, 0, -1}[i]; !near(a, want, 1e-7) {
			t.Errorf("the second alone: A[%d] = %g, want %g", i, a, want)
		}
	}
	if err := GDPO(adv, scores, nil, group, make([]bool, 4), rows, true); !errors.Is(err, ErrTooFew) {
		t.Errorf("nothing unmasked: error %v", err)
	}
}

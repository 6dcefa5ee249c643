package rl

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestGroupAdvantage(t *testing.T) {
	third := math.Sqrt(1. / 3)
	tests := []struct {
		name  string
		score []float64
		group []int
		scale bool
		want  []float64
	}{
		{"centred", []float64{0, 1, 2}, []int{7, 7, 7}, false, []float64{-1, 0, 1}},
		// mean ½, squares 4·¼ = 1 over 3
		{"scaled", []float64{0, 1, 1, 0}, []int{0, 0, 0, 0}, true,
			[]float64{-.5 / (third + 1e-6), .5 / (third + 1e-6), .5 / (third + 1e-6), -.5 / (third + 1e-6)}},
		{"two groups, mixed", []float64{4, 1, 8, 3}, []int{5, -2, 5, -2}, false, []float64{-2, -1, 2, 1}},
		{"equal rewards", []float64{0.30000000000000004, 0.3, 0.3}, []int{1, 1, 1}, true, []float64{0, 0, 0}},
		{"equal rewards, centred", []float64{0.30000000000000004, 0.3, 0.3}, []int{1, 1, 1}, false, []float64{0, 0, 0}},
		{"one alone", []float64{3}, []int{4}, true, []float64{3 / 1.000001}},
		{"one alone, centred", []float64{3}, []int{4}, false, []float64{3}},
		{"none", nil, nil, true, nil},
	}
	for _, tt := range tests {
		got := append([]float64(nil), tt.score...) // in place
		GroupAdvantage(got, got, tt.group, tt.scale)
		for i := range got {
			if !near(got[i], tt.want[i], 1e-15) {
				t.Errorf("%s: A[%d] = %.17g, want %.17g", tt.name, i, got[i], tt.want[i])
			}
		}
	}
	if !panics(func() { GroupAdvantage(make([]float64, 1), []float64{1, 2}, []int{0, 0}, true) }) {
		t.Error("no panic for lengths 1, 2, 2")
	}
}

// Advantages of a group sum to zero; a constant added to all rewards of a group
// changes nothing; neither does the order of rows or the naming of groups.
func TestGroupAdvantageLaws(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		const G, n = 4, 24
		score, moved, group := make([]float64, n), make([]float64, n), make([]int, n)
		shift := [G]float64{r.NormFloat64(), 0, 3, -1}
		for i := range score {
			group[i] = i % G
			score[i] = math.Round(4*r.Float64()) / 4
			moved[i] = score[i] + shift[group[i]]
		}
		adv, movedAdv := make([]float64, n), make([]float64, n)
		GroupAdvantage(adv, score, group, true)
		GroupAdvantage(movedAdv, moved, group, true)
		var sum [G]float64
		for i := range adv {
			sum[group[i]] += adv[i]
			if !near(movedAdv[i], adv[i], 1e-11) {
				t.Fatalf("seed %d: A[%d] = %g, after a shift %g", seed, i, adv[i], movedAdv[i])
			}
		}
		for g, s := range sum {
			if math.Abs(s) > 1e-12 {
				t.Fatalf("seed %d: group %d sums to %g", seed, g, s)
			}
		}

		perm := r.Perm(n)
		score2, group2, adv2 := make([]float64, n), make([]int, n), make([]float64, n)
		for i, p := range perm {
			score2[i], group2[i] = score[p], 10-3*group[p]
		}
		GroupAdvantage(adv2, score2, group2, true)
		for i, p := range perm {
			if !near(adv2[i], adv[p], 1e-12) {
				t.Fatalf("seed %d: row %d moved to %d: A %g becomes %g", seed, p, i, adv[p], adv2[i])
			}
		}
	}
}

package rl

import (
	"math"
	"slices"
	"testing"
)

func TestKLCovTokens(t *testing.T) {
	for _, tt := range []struct {
		ratio float64
		want  []int
	}{{0, nil}, {1e-9, []int{0}}, {0.5, []int{0, 3}}, {0.99, []int{0, 3, 4}}, {1, []int{0, 2, 3, 4}}, {7, []int{0, 2, 3, 4}}} {
		picked := []bool{on, on, on, on, on}
		KLCovTokens(picked, covExample(), tt.ratio)
		if got := trueAt(picked); !slices.Equal(got, tt.want) {
			t.Errorf("ratio %g: picked %v, want %v", tt.ratio, got, tt.want)
		}
	}
	// All equal: no token has more covariance than another, the first is picked.
	b := covExample()
	b.Adv = []float64{2, nan, 2, 2, 2}
	picked := make([]bool, 5)
	KLCovTokens(picked, b, 0.3)
	if got := trueAt(picked); !slices.Equal(got, []int{0}) {
		t.Errorf("of equals: picked %v", got)
	}
	b.Mask = make([]bool, 5)
	KLCovTokens(picked, b, 1)
	if got := trueAt(picked); got != nil {
		t.Errorf("of nothing: picked %v", got)
	}
}

func TestKLCov(t *testing.T) {
	picked := []bool{off}
	run := func(d []float64, b *Batch[float64], s *PolicyStats) { KLCov(d, b, picked, 0.1, s) }
	up, down := math.Exp(25), math.Exp(-0.5)
	checkTokens(t, []tokenCase{
		{"no clip", 1.5, 2, -3, -3, 0, 0},
		{"nor for bad", 10, -2, 20, 20, 0, 0},
		{"e^25", up, -2, 2 * up, 2 * up, 0, 0},
		{"e^-25", 1 / up, 2, -2 / up, -2 / up, 0, 0},
	}, run)
	picked[0] = on
	checkTokens(t, []tokenCase{
		{"picked, up", math.Exp(0.5), 1, -math.Exp(0.5) + 0.05, -math.Exp(0.5) + 0.1, 0, 0},
		{"picked, down", down, 1, -down + 0.05, -down - 0.1, 0, 0},
		{"picked, on-policy", 1, 1, -1, -1, 0, 0},
		{"picked, e^-25", 1 / up, 0, 2.5, -0.1, 0, 0},
	}, run)
	var s PolicyStats
	run([]float64{0}, oneToken(down, 1), &s)
	if kl := s.Metrics()[3]; !near(kl.Value, 0.5, 1e-7) {
		t.Errorf("%s = %g, want |D| = 0.5", kl.Name, kl.Value)
	}
}

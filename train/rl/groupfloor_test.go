package rl

import (
	"math"
	"testing"
)

// The first case comes from verl #6348, which gives ∓0.0050 where GRPO has ∓0.6196.
func TestFlooredGroupAdvantage(t *testing.T) {
	for _, tt := range []struct {
		name  string
		score []float64
		group []int
		want  []float64
	}{
		// (1 - 1.000005)/(0.001 + 1e-6), (2 - 2.000005)/(0.001 + 1e-6)
		{"below the floor", []float64{1, 1.00001, 2, 2.00001}, []int{0, 0, 1, 1}, []float64{-0.004995004995, 0.004995004995, -0.004995004995, 0.004995004995}},
		// std = √2, far above it: GRPO's
		{"above the floor", []float64{0, 2}, []int{0, 0}, []float64{-1 / (math.Sqrt2 + 1e-6), 1 / (math.Sqrt2 + 1e-6)}},
		// var = (0.0009² + 0.0009²)/1 = 1.62e-6, just above
		{"near the floor", []float64{0, 0.0018}, []int{3, 3}, []float64{-0.706551661774, 0.706551661774}}, // 0.0009/(0.00127279 + 1e-6)
		{"all equal", []float64{3, 3, 3}, []int{0, 0, 0}, []float64{0, 0, 0}},
		{"one alone", []float64{5}, []int{0}, []float64{5 / (1 + 1e-6)}}, // mean 0, std 1
		{"none", nil, nil, nil},
	} {
		got := make([]float64, len(tt.score))
		FlooredGroupAdvantage(got, tt.score, tt.group)
		for i := range got {
			if math.Abs(got[i]-tt.want[i]) > 1e-11 {
				t.Errorf("%s: advantage %d is %.9g, want %.9g", tt.name, i, got[i], tt.want[i])
			}
		}
	}
	if !panics(func() { FlooredGroupAdvantage(make([]float64, 1), []float64{1, 2}, []int{0, 0}) }) {
		t.Error("lengths differ, and it does not panic")
	}
}

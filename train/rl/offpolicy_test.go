package rl

import (
	"slices"
	"testing"
)

// Rows that the policy has left, on average by more than the bound, lose their negative advantages.
func TestDropOffPolicy(t *testing.T) {
	b := &Batch[float64]{Rows: Rows{0, 3, 5, 5, 6, 7}, Mask: []bool{on, off, on, on, on, off, on},
		Coef:       []float64{0.1, 0, 0.2, 0.3, 0.15, 0, 0.25},
		LogProb:    []float64{-2, nan, -1.5, -1, -1, -9, -3},
		OldLogProb: []float64{-1, nan, -1, -1.5, 0, 0, -4}}
	// means: (1 + 0.5)/2 = 0.75, (-0.5 + 1)/2 = 0.25, nothing, nothing unmasked, -1
	for _, tt := range []struct {
		bound   float64
		adv     []float64
		dropped float64
	}{
		{1, []float64{-1, -1, 2, -1, -2, -1, -1}, 0},
		{0.75, []float64{-1, -1, 2, -1, -2, -1, -1}, 0},
		{0.5, []float64{0, -1, 2, -1, -2, -1, -1}, 0.1},
		{0.1, []float64{0, -1, 2, 0, 0, -1, -1}, 0.1 + 0.3 + 0.15},
	} {
		adv, dropped := []float64{-1, -1, 2, -1, -2, -1, -1}, 7.0
		DropOffPolicy(adv, b, tt.bound, &dropped)
		if !slices.Equal(adv, tt.adv) || !near(dropped, 7+tt.dropped, 1e-12) {
			t.Errorf("bound %g: %v, dropped %g, want %v, %g", tt.bound, adv, dropped-7, tt.adv, tt.dropped)
		}
	}
}

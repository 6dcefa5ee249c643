package rl

import (
	"math"
	"testing"
)

// TRL's own lines (grpo_trainer.py, scale_rewards "batch") give the same for the first case but for its 1e-4.
func TestBatchScaledAdvantage(t *testing.T) {
	for _, tt := range []struct {
		name  string
		score []float64
		group []int
		want  []float64 // times std + 1e-6
		std   float64
	}{
		// mean 3/2, squares 9/4 + 1/4 + 1/4 + 9/4, over 3
		{"two groups", []float64{0, 2, 1, 3}, []int{0, 0, 1, 1}, []float64{-1, 1, -1, 1}, math.Sqrt(5. / 3)},
		// a group of equal rewards has none, another all of the std: mean ¼, squares 3/16 + 9/16, over 3
		{"one group equal", []float64{0, 0, 0, 1}, []int{0, 0, 1, 1}, []float64{0, 0, -0.5, 0.5}, 0.5},
		{"all equal", []float64{2, 2, 2, 2}, []int{0, 0, 1, 1}, []float64{0, 0, 0, 0}, 1},
		{"none", nil, nil, nil, 1},
	} {
		got := make([]float64, len(tt.score))
		copy(got, tt.score)
		BatchScaledAdvantage(got, got, tt.group)
		for i := range got {
			if want := tt.want[i] / (tt.std + 1e-6); !near(got[i], want, 1e-15) {
				t.Errorf("%s: advantage %d is %v, want %v", tt.name, i, got[i], want)
			}
		}
	}
	if !panics(func() { BatchScaledAdvantage(make([]float64, 1), []float64{1, 2}, []int{0, 0}) }) {
		t.Error("lengths differ, and it does not panic")
	}
}

package rl

import (
	"math"
	"testing"
)

func TestDataMetrics(t *testing.T) {
	d := Data[float64]{
		Rows: Rows{0, 2, 2, 5}, Mask: []bool{on, off, on, on, off},
		Score: []float64{1, 100, 3}, Reward: []float64{0.5, 100, 3.5}, // row 1 is aborted
		Adv: []float64{1, nan, 2, 6, nan}, Ret: []float64{1, nan, 2, 3, nan}, Value: []float64{0, nan, 1, 2, nan},
		PromptLen: []int{4, 8, 6}, ResponseLen: []int{2, 0, 3}, MaxPrompt: 8, MaxResponse: 3,
		Turns: []int{1, 2, 6},
	}
	want := []Metric{
		{"critic/score/mean", 2}, {"critic/score/max", 3}, {"critic/score/min", 1},
		{"critic/rewards/mean", 2}, {"critic/rewards/max", 3.5}, {"critic/rewards/min", 0.5},
		{"critic/advantages/mean", 3}, {"critic/advantages/max", 6}, {"critic/advantages/min", 1},
		{"critic/returns/mean", 2}, {"critic/returns/max", 3}, {"critic/returns/min", 1},
		{"critic/values/mean", 1}, {"critic/values/max", 2}, {"critic/values/min", 0},
		{"critic/vf_explained_var", 1}, // ret - value is 1 everywhere
		{"response_length/mean", 5. / 3}, {"response_length/max", 3}, {"response_length/min", 0}, {"response_length/clip_ratio", 1. / 3},
		{"response_length_non_aborted/mean", 2.5}, {"response_length_non_aborted/max", 3},
		{"response_length_non_aborted/min", 2}, {"response_length_non_aborted/clip_ratio", 0.5},
		{"response/aborted_ratio", 1. / 3},
		{"prompt_length/mean", 6}, {"prompt_length/max", 8}, {"prompt_length/min", 4}, {"prompt_length/clip_ratio", 1. / 3},
		{"num_turns/mean", 3}, {"num_turns/max", 6}, {"num_turns/min", 1},
	}
	compare(t, outcome{metrics: DataMetrics(d)}, outcome{metrics: want}, 1e-15)

	d.Value, d.Turns, d.Mask, d.ResponseLen = nil, nil, make([]bool, 5), []int{0, 0, 0}
	for _, m := range DataMetrics(d) {
		switch m.Name {
		case "critic/values/mean", "critic/vf_explained_var", "num_turns/mean":
			t.Errorf("%s without its input", m.Name)
		case "critic/score/mean", "critic/returns/max", "critic/advantages/min", "response_length_non_aborted/clip_ratio":
			if !math.IsNaN(m.Value) {
				t.Errorf("%s of nothing = %g, want NaN", m.Name, m.Value)
			}
		case "response/aborted_ratio":
			if m.Value != 1 {
				t.Errorf("%s = %g, want 1", m.Name, m.Value)
			}
		}
	}
}

func TestReduce(t *testing.T) {
	x := []float64{3, 1, 5}
	tests := []struct {
		name string
		want float64
	}{
		{"actor/pg_loss", 3}, {"perf/max_memory", 5}, {"grad/min_norm", 1}, {"x/maximin", 5}, {"a/dominant", 1},
	}
	for _, tt := range tests {
		if got := Reduce(tt.name, x); got != tt.want {
			t.Errorf("Reduce(%q) = %g, want %g", tt.name, got, tt.want)
		}
	}
	if got := Reduce("x/max", nil); got == got {
		t.Errorf("Reduce of nothing = %g, want NaN", got)
	}
}

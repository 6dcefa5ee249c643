package term

import (
	"math"
	"testing"
)

func TestBar(t *testing.T) {
	tests := []struct {
		done, total, width int
		unicode            bool
		want               string
	}{
		{0, 100, 4, true, "░░░░"},
		{81, 100, 20, true, "████████████████░░░░"}, // 81·20/100 = 16
		{99, 100, 4, true, "███░"},                  // full means done
		{100, 100, 4, false, "####"},
		{7, 5, 4, false, "####"},
		{-1, 5, 4, false, "----"},
		{1, 0, 4, false, "----"},
	}
	for _, tt := range tests {
		if got := Bar(tt.done, tt.total, tt.width, tt.unicode); got != tt.want {
			t.Errorf("Bar(%d, %d, %d) = %q, want %q", tt.done, tt.total, tt.width, got, tt.want)
		}
	}
}

func TestSpark(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name   string
		values []float64
		width  int
		want   string
	}{
		{"none", nil, 5, ""},
		{"ramp", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{"flat", []float64{3, 3, 3}, 8, "▁▁▁"},
		{"averaged", []float64{0, 0, 7, 7}, 2, "▁█"},
		{"gap", []float64{0, nan, math.Inf(1), 7}, 4, "▁  █"},
		{"huge", []float64{-math.MaxFloat64, math.MaxFloat64}, 4, "▁█"},
		{"only nan", []float64{nan}, 4, " "},
		{"no room", []float64{1, 2}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Spark(tt.values, tt.width, true); got != tt.want {
				t.Errorf("Spark(%v, %d) = %q, want %q", tt.values, tt.width, got, tt.want)
			}
		})
	}
	if got := Spark([]float64{0, 5}, 2, false); got != "_#" {
		t.Errorf("ASCII: %q, want %q", got, "_#")
	}
}

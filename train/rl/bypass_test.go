package rl

import (
	"slices"
	"testing"
)

// Three tokens, the second rejected, the last masked out.
func TestBypass(t *testing.T) {
	const half = 0.6931471805599453 // ln 2
	b := &Batch[float64]{Rows: Rows{0, 4}, Mask: []bool{on, on, on, off}, Coef: []float64{0.5, 0.5, 0.5, 0},
		LogProb: []float64{-1, -1, -2, nan}, OldLogProb: []float64{-1 - half, -9, -2, nan}, Adv: []float64{2, 1e9, -1, nan},
		Weight: []float64{nan, nan, nan, nan}} // not read
	weight, kept := []float64{3, nan, 5, nan}, []bool{on, off, on, off}
	tests := []struct {
		name    string
		loss    BypassLoss
		weight  []float64
		want    float64
		grad    []float64
		clipped float64
	}{
		// ½·(-2·1.25 + 1): the ratio 2 is clipped
		{"ppo", BypassPPO, weight, -0.75, []float64{0, 0, 0.5, 0}, 0.5},
		// ½·(2·3 - 2·5)
		{"reinforce", BypassReinforce, weight, -2, []float64{-3, 0, 2.5, 0}, 0},
		// ½·(2 - 2)
		{"reinforce without weights", BypassReinforce, nil, 0, []float64{-1, 0, 0.5, 0}, 0},
	}
	for _, tt := range tests {
		var s PolicyStats
		d := make([]float64, 4)
		Bypass(d, b, tt.weight, kept, tt.loss, Clip{Low: 0.25, High: 0.25, Dual: 3}, &s)
		m := s.Metrics()
		if s.Loss != tt.want || !slices.Equal(d, tt.grad) || !near(m[1].Value, tt.clipped, 1e-8) || !near(m[3].Value, -half/2, 1e-8) {
			t.Errorf("%s: %v, gradient %v, want loss %g, gradient %v", tt.name, m, d, tt.want, tt.grad)
		}
	}
}

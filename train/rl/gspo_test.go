package rl

import (
	"math"
	"testing"
)

// Of a row of one token, GSPO is PPO without dual clip.
func TestGSPOOneToken(t *testing.T) {
	checkTokens(t, []tokenCase{
		{"inside", 1.1, 2, -2.2, -2.2, 0, 0},
		{"too high, good", 1.5, 2, -2.56, 0, 1, 0},
		{"too high, bad", 4, -2, 8, 8, 0, 0},
		{"too low, bad", 0.5, -2, 1.6, 0, 1, 0},
		{"ratio e^25 is e^10", math.Exp(25), -1, math.Exp(10), 0, 0, 0},
		{"ratio e^-25", math.Exp(-25), 1, -math.Exp(-25), -math.Exp(-25), 0, 0},
	}, func(d []float64, b *Batch[float64], s *PolicyStats) { GSPO(d, b, 0.2, 0.28, s) })
}

func TestGSPO(t *testing.T) {
	// Row 0: D = 0.3, (masked), -0.1, mean 0.1. Row 1 is empty. Row 2: mean 0.5 > ln 1.28.
	b := &Batch[float64]{Rows: Rows{0, 3, 3, 5}, Mask: []bool{on, off, on, on, on}, Coef: []float64{1, 0, 1, 2, 2},
		LogProb: []float64{-1, nan, -2, -1, -1}, OldLogProb: []float64{-1.3, nan, -1.9, -1.9, -1.1},
		Adv: []float64{1, nan, 3, 1, -1}}
	var s PolicyStats
	d := make([]float64, 5)
	GSPO(d, b, 0.2, 0.28, &s)
	r, r2 := math.Exp(0.1), math.Exp(0.5)
	// Row 2: A = 1 is clipped, A = -1 is not.
	for i, want := range []float64{-r, 0, -3 * r, 0, 2 * r2} {
		if !near(d[i], want, 1e-15) {
			t.Errorf("gradient %d = %g, want %g", i, d[i], want)
		}
	}
	want := []float64{-4*r - 2*1.28 + 2*r2, 1. / 4, 0, -1.2 / 4} // D: 0.3-0.1+0.9+0.1
	for i, m := range s.Metrics() {
		if !near(m.Value, want[i], 1e-8) {
			t.Errorf("%s = %g, want %g", m.Name, m.Value, want[i])
		}
	}
}

package rl

import (
	"math"
	"testing"
)

func TestReinforce(t *testing.T) {
	// -A·logProb, logProb = -1, whatever the ratio
	checkTokens(t, []tokenCase{
		{"good", 1.1, 2, 2, -2, 0, 0},
		{"bad", 0.1, -3, -3, 3, 0, 0},
		{"no advantage", 5, 0, 0, 0, 0, 0},
		{"ratio e^25", math.Exp(25), 2, 2, -2, 0, 0},
	}, Reinforce[float64])
	var s PolicyStats
	Reinforce([]float64{0}, oneToken(math.Exp(-25), 2), &s)
	if kl := s.Metrics()[3]; !near(kl.Value, 25, 1e-7) { // not bounded
		t.Errorf("%s = %g, want 25", kl.Name, kl.Value)
	}
}

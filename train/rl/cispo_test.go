package rl

import (
	"math"
	"testing"
)

func TestCISPO(t *testing.T) {
	// -clip(r)·A·logProb, logProb = -1
	checkTokens(t, []tokenCase{
		{"inside", 1.1, 2, 2.2, -2.2, 0, 0},
		{"too high, good", 2, 2, 2.56, -2.56, 1, 0}, // 1.28·2
		{"too high, bad", 2, -2, -2.56, 2.56, 1, 0},
		{"too low, bad", 0.5, -1, -0.8, 0.8, 1, 0},
		{"ratio e^25", math.Exp(25), 1, 1.28, -1.28, 1, 0},
		{"ratio e^-25", math.Exp(-25), 1, 0.8, -0.8, 1, 0},
	}, func(d []float64, b *Batch[float64], s *PolicyStats) { CISPO(d, b, 0.2, 0.28, s) })
	checkTokens(t, []tokenCase{
		{"no lower bound", 1e-3, 1, 1e-3, -1e-3, 0, 0},
	}, func(d []float64, b *Batch[float64], s *PolicyStats) { CISPO(d, b, 1, 4, s) })
}

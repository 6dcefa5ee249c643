package rl

import (
	"math"
	"testing"
)

func TestDRO(t *testing.T) {
	// -(A·logProb - ½·0.2·D²), logProb = -1; slope -A + 0.2·D
	checkTokens(t, []tokenCase{
		{"on-policy", 1, 2, 2, -2, 0, 0},
		{"high", math.Exp(0.5), 2, 2 + 0.1*0.25, -2 + 0.1, 0, 0},
		{"low, bad", math.Exp(-0.5), -1, -1 + 0.1*0.25, 1 - 0.1, 0, 0},
		{"ratio e^25", math.Exp(25), 0, 0.1 * 625, 5, 0, 0},
		{"ratio e^-25", math.Exp(-25), 0, 0.1 * 625, -5, 0, 0},
	}, func(d []float64, b *Batch[float64], s *PolicyStats) { DRO(d, b, 0.2, s) })
}

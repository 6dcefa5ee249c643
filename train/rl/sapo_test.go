package rl

import (
	"math"
	"testing"
)

func TestSAPO(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	g1, g2 := sigmoid(0.5), sigmoid(2*0.5)
	checkTokens(t, []tokenCase{
		{"on-policy, good", 1, 3, -6, -3, 0, 0}, // -A·½·4, slope -A·4·¼
		{"on-policy, bad", 1, -3, 3, 3, 0, 0},   // tau 2: halved loss, same slope
		{"high, good", 1.5, 1, -4 * g1, -4 * 1.5 * g1 * (1 - g1), 0, 0},
		{"high, bad", 1.5, -1, 2 * g2, 4 * 1.5 * g2 * (1 - g2), 0, 0},
		{"no advantage", 1.5, 0, 0, 0, 0, 0},
		{"ratio e^25", math.Exp(25), 1, -4, 0, 0, 0},
		{"ratio e^-25", math.Exp(-25), 1, -4 * sigmoid(math.Exp(-20)-1), 0, 0, 0},
	}, func(d []float64, b *Batch[float64], s *PolicyStats) { SAPO(d, b, 1, 2, s) })
}

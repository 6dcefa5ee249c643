package rl

import (
	"math"
	"testing"
)

func TestDPPO(t *testing.T) {
	// logProb = -1, p = 0.368; -min(r, 3)·A·logProb inside the trust region.
	//
	//	r     q      p-q     kl
	//	1.1   0.334   0.033  0.0024
	//	4     0.092   0.276  0.201
	//	0.5   0.736  -0.368  0.280
	tests := []tokenCase{
		{"small move, good", 1.1, 2, 2.2, -2.2, 0, 0},
		{"small move, bad", 1.1, -2, -2.2, 2.2, 0, 0},
		{"far up, good", 4, 2, 0, 0, 1, 0},
		{"far up, bad", 4, -2, -6, 6, 0, 1}, // towards the old policy: trained
		{"far down, good", 0.5, 2, 1, -1, 0, 0},
		{"far down, bad", 0.5, -2, 0, 0, 1, 0},
		{"far down, none", 0.5, 0, 0, 0, 1, 0}, // no advantage counts as bad
		{"ratio e^25, good", math.Exp(25), 2, 0, 0, 1, 0},
		{"ratio e^25, bad", math.Exp(25), -1, -3, 3, 0, 1},
	}
	for _, by := range []Divergence{BinaryTV, BinaryKL} {
		checkTokens(t, tests, func(d []float64, b *Batch[float64], s *PolicyStats) {
			DPPO(d, b, DPPOConfig{Divergence: by, Low: 0.1, High: 0.05, MaxRatio: 3}, s)
		})
	}
}

// The edges of both regions, and log-probs that rounding put above 0.
func TestDPPOTrusted(t *testing.T) {
	tv := DPPOConfig{Divergence: BinaryTV, Low: 0.25, High: 0.25}
	kl := DPPOConfig{Divergence: BinaryKL, Low: 0.25, High: 0.25}
	for _, tt := range []struct {
		name         string
		c            DPPOConfig
		logProb, old float64
		adv          float64
		want         bool
	}{
		{"up by 0.25", tv, math.Log(0.75), math.Log(0.5), 1, true},
		{"up by 0.26", tv, math.Log(0.76), math.Log(0.5), 1, false},
		{"down by 0.26", tv, math.Log(0.24), math.Log(0.5), -1, false},
		// ½·ln(½/0.75) + ½·ln(½/0.25) = 0.1438
		{"KL 0.14", kl, math.Log(0.75), math.Log(0.5), 1, true},
		// ½·ln(½/0.95) + ½·ln(½/0.05) = 0.8304
		{"KL 0.83", kl, math.Log(0.95), math.Log(0.5), 1, false},
		{"KL 0.83, bad", kl, math.Log(0.95), math.Log(0.5), -1, true},
		{"certain", kl, 0, 0, 1, true},
		{"more than certain, up", kl, 0.1, -0.1, 1, false},
		{"more than certain, down", kl, -0.1, 0.1, 1, true},
	} {
		if got := tt.c.trusted(tt.logProb, tt.old, tt.adv); got != tt.want {
			t.Errorf("%s: trusted is %t", tt.name, got)
		}
	}
}

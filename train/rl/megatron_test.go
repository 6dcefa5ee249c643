package rl

import (
	"math"
	"testing"
)

func TestMegatronAdvantage(t *testing.T) {
	a := 0.5 / 0.5001 // mean ½, std √(4·¼/4)
	tests := []struct {
		name        string
		score       []float64
		group       []int
		placeholder []bool
		want        []float64
	}{
		{"population std", []float64{0, 1, 1, 0}, []int{3, 3, 3, 3}, nil, []float64{-a, a, a, -a}},
		{"two groups, mixed", []float64{0, 7, 1, 7}, []int{0, 1, 0, 1}, nil, []float64{-a, 0, a, 0}},
		{"equal but for rounding", []float64{0.30000000000000004, 0.3, 0.3}, []int{1, 1, 1}, nil, []float64{0, 0, 0}},
		{"one alone", []float64{3}, []int{4}, nil, []float64{0}},
		{"placeholders", []float64{0, 99, 1, nan}, []int{0, 0, 0, 0}, []bool{false, true, false, true}, []float64{-a, 0, a, 0}},
		{"only placeholders", []float64{5, 5}, []int{0, 0}, []bool{true, true}, []float64{0, 0}},
		{"none", nil, nil, nil, nil},
	}
	for _, tt := range tests {
		got := append([]float64(nil), tt.score...) // in place
		MegatronAdvantage(got, got, tt.group, tt.placeholder)
		for i := range got {
			if !near(got[i], tt.want[i], 1e-15) {
				t.Errorf("%s: A[%d] = %.17g, want %.17g", tt.name, i, got[i], tt.want[i])
			}
		}
	}
	if !panics(func() { MegatronAdvantage(make([]float64, 1), []float64{1}, []int{0}, []bool{}) }) {
		t.Error("no panic for a short list of placeholders")
	}
}

func TestMegatronGRPO(t *testing.T) {
	e, ln2 := math.E, math.Ln2
	p := 1 / e // of logProb -1: ent = p, its slope 0
	tests := []struct {
		name                     string
		ratio, adv, d            float64 // d = refLogProb - logProb
		c                        MegatronConfig
		surrogate, slope, kl     float64
		above, below, klGradient float64
	}{
		{"inside", 1.1, 2, 0, MegatronConfig{0.2, 0.3, 0, 0}, -2.2, -2.2, 0, 0, 0, 0},
		{"too high, good", 1.5, 2, 0, MegatronConfig{0.2, 0.3, 0, 0}, -2.6, 0, 0, 1, 0, 0},
		{"too high, bad: no dual clip", 5, -2, 0, MegatronConfig{0.2, 0.3, 0, 0}, 10, 10, 0, 1, 0, 0},
		{"too low, bad", 0.5, -2, 0, MegatronConfig{0.2, 0.3, 0, 0}, 1.6, 0, 0, 0, 1, 0},
		{"KL", 1, 0, ln2, MegatronConfig{0.2, 0.3, 0.1, 0}, 0, 0, 1 - ln2, 0, 0, 1 - 2}, // 2 - ln 2 - 1
		{"KL is not bounded to 10", 1, 0, 5, MegatronConfig{0.2, 0.3, 0.1, 0}, 0, 0, math.Exp(5) - 6, 0, 0, 1 - math.Exp(5)},
		{"KL at e^-25", 1, 0, -25, MegatronConfig{0.2, 0.3, 0.1, 0}, 0, 0, 24, 0, 0, 1},
		{"entropy", 1, 1, 0, MegatronConfig{0.2, 0.3, 0, 2}, -1, -1, 0, 0, 0, 0},
		{"e^25", math.Exp(25), -1, 0, MegatronConfig{0.2, 0.3, 0, 0}, math.Exp(25), math.Exp(25), 0, 1, 0, 0},
	}
	for _, tt := range tests {
		b := oneToken(tt.ratio, tt.adv)
		b.RefLogProb = []float64{-1 + tt.d}
		var s MegatronStats
		grad := []float64{10}
		MegatronGRPO(grad, b, tt.c, &s)
		// The weight 3 is on the surrogate only; the coefficient is ½.
		if want := 10 + 0.5*(3*tt.slope+tt.c.KLCoef*tt.klGradient); !near(grad[0], want, 1e-13) {
			t.Errorf("%s: gradient %g, want %g", tt.name, grad[0], want)
		}
		want := []float64{0.5 * (3*tt.surrogate + tt.c.KLCoef*tt.kl - tt.c.EntropyCoef*p), tt.kl, tt.ratio, p, tt.above, tt.below}
		for i, m := range s.Metrics() {
			if !near(m.Value, want[i], 2e-8) {
				t.Errorf("%s: %s = %g, want %g", tt.name, m.Name, m.Value, want[i])
			}
		}
	}
	// -e^lp·lp at lp = -2 falls with slope e^-2·(2-1).
	b := oneToken(1, 0)
	b.LogProb, b.RefLogProb, b.OldLogProb = []float64{-2}, []float64{-2}, []float64{-2}
	grad := []float64{0}
	MegatronGRPO(grad, b, MegatronConfig{0.2, 0.3, 0, 2}, &MegatronStats{})
	if want := -0.5 * 2 * math.Exp(-2); !near(grad[0], want, 1e-15) {
		t.Errorf("entropy: gradient %g, want %g", grad[0], want)
	}
}

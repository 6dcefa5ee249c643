package rl

import (
	"math"
	"testing"
)

func TestPPO(t *testing.T) {
	c := Clip{Low: 0.2, High: 0.3, Dual: 3}
	ln := math.Log
	tests := []struct {
		name          string
		ratio, adv    float64
		loss, grad    float64
		clipped, dual float64
	}{
		{"inside", 1.1, 2, -2.2, -2.2, 0, 0},                                    // -A·r
		{"on-policy", 1, -1, 1, 1, 0, 0},                                        //
		{"too high, good", 1.5, 2, -2.6, 0, 1, 0},                               // -2·1.3 > -3
		{"too high, bad", 1.5, -2, 3, 3, 0, 0},                                  // 3 > 2.6: not clipped
		{"too low, bad", 0.5, -2, 1.6, 0, 1, 0},                                 // 2·0.8 > 1
		{"too low, good", 0.5, 2, -1, -1, 0, 0},                                 // -1 > -1.6
		{"dual", 4, -2, 6, 0, 0, 1},                                             // min(2·3, 8)
		{"no dual for good", 4, 2, -2.6, 0, 1, 0},                               //
		{"no advantage", 4, 0, 0, 0, 0, 0},                                      //
		{"ratio e^25 is e^20", math.Exp(25), 2, -2.6, 0, 1, 0},                  //
		{"ratio e^-25 is e^-20", math.Exp(-25), 2, -2 * math.Exp(-20), 0, 0, 0}, // no gradient beyond the bound
	}
	for _, tt := range tests {
		b := &Batch[float64]{Rows: Rows{0, 1}, Mask: []bool{on}, Coef: []float64{0.5},
			LogProb: []float64{ln(tt.ratio) - 1}, OldLogProb: []float64{-1}, Adv: []float64{tt.adv}, Weight: []float64{3}}
		var s PolicyStats
		d := []float64{10}
		PPO(d, b, c, &s)
		// coef·weight = 1.5, added to the 10 that was there.
		if got, want := d[0], 10+1.5*tt.grad; !near(got, want, 1e-14) {
			t.Errorf("%s: gradient %g, want %g", tt.name, got, want)
		}
		kl := -math.Max(-20, math.Min(20, ln(tt.ratio)))
		want := []float64{1.5 * tt.loss, tt.clipped, tt.dual, kl}
		for i, m := range s.Metrics() {
			if !near(m.Value, want[i], 2e-8) {
				t.Errorf("%s: %s = %g, want %g", tt.name, m.Name, m.Value, want[i])
			}
		}
	}
}

func TestPPOWithoutDualClip(t *testing.T) {
	b := &Batch[float32]{Rows: Rows{0, 1}, Mask: []bool{on}, Coef: []float64{1},
		LogProb: []float32{2}, OldLogProb: []float32{0}, Adv: []float32{-1}}
	var s PolicyStats
	d := []float32{0}
	PPO(d, b, Clip{Low: 0.2, High: 0.2, Dual: math.Inf(1)}, &s)
	if want := math.Exp(2); !near(s.Loss, want, 1e-15) || !near(float64(d[0]), want, 1e-6) {
		t.Errorf("loss %g, gradient %g, want both %g", s.Loss, d[0], want)
	}
}

func TestPPOPanics(t *testing.T) {
	good := func() *Batch[float64] {
		x := []float64{0, 0}
		return &Batch[float64]{Rows: Rows{0, 2}, Mask: []bool{on, on}, Coef: x, LogProb: x, OldLogProb: x, Adv: x}
	}
	c := Clip{0.2, 0.2, 3}
	for name, f := range map[string]func(b *Batch[float64]){
		"dual clip of 1":  func(b *Batch[float64]) { PPO(make([]float64, 2), b, Clip{0.2, 0.2, 1}, &PolicyStats{}) },
		"short gradient":  func(b *Batch[float64]) { PPO(make([]float64, 1), b, c, &PolicyStats{}) },
		"short advantage": func(b *Batch[float64]) { b.Adv = b.Adv[:1]; PPO(make([]float64, 2), b, c, &PolicyStats{}) },
		"short weight":    func(b *Batch[float64]) { b.Weight = b.Adv[:1]; PPO(make([]float64, 2), b, c, &PolicyStats{}) },
		"no coefficients": func(b *Batch[float64]) { b.Coef = nil; PPO(make([]float64, 2), b, c, &PolicyStats{}) },
		"short rows":      func(b *Batch[float64]) { b.Rows = Rows{0, 1}; PPO(make([]float64, 2), b, c, &PolicyStats{}) },
	} {
		if !panics(func() { f(good()) }) {
			t.Errorf("%s: no panic", name)
		}
	}
}

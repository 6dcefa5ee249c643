package rl

import (
	"math"
	"testing"
)

func TestGMPO(t *testing.T) {
	e := math.Exp
	tests := []struct {
		name      string
		move, adv []float64 // of the unmasked tokens of one row
		weight    []float64
		loss      float64
		free      []bool // tokens with a gradient
		metrics   []float64
	}{
		// M = 0.4 (bounded), 0.2; A = 2
		{"good", []float64{1, 0.2}, []float64{1, 3}, nil, -2 * e(0.3), []bool{off, on}, []float64{.5, 0, -0.6}},
		// M = 2, -0.3 (bounded): both are outside the bounds, one is held
		{"bad", []float64{2, -1}, []float64{-1, -1}, nil, e(0.85), []bool{on, off}, []float64{0, 1, -0.5}},
		{"good, far down", []float64{-25, 0.4}, []float64{1, 1}, nil, -e(-12.3), []bool{on, on}, []float64{.5, 0, 12.3}},
		{"bad, far up", []float64{25, 0}, []float64{-1, -1}, nil, e(12.5), []bool{on, on}, []float64{0, .5, -12.5}},
		// A token without advantage stays in both means.
		{"mixed", []float64{0.1, 5}, []float64{1, 0}, nil, -0.5 * e(0.05), []bool{on, off}, []float64{0, 0, -2.55}},
		{"weights", []float64{0.1, 0.3}, []float64{1, 1}, []float64{8, 0.5}, -2 * e(0.2), []bool{on, on}, []float64{0, 0, -0.2}}, // √(8·½) = 2
		{"all equal", []float64{0.1, 0.3}, []float64{0, 0}, nil, 0, []bool{off, off}, []float64{0, 0, -0.2}},
		{"alone", []float64{0.1}, []float64{2}, nil, -2 * e(0.1), []bool{on}, []float64{0, 0, -0.1}},
		{"beyond e^-80", []float64{-200, -200}, []float64{1, 1}, nil, -e(-80), []bool{off, off}, []float64{1, 0, 200}},
	}
	for _, tt := range tests {
		// A masked-out token stands first, and the mini-batch has 4 rows.
		b := &Batch[float64]{Rows: Rows{0, 0, 1 + len(tt.move)}, Mask: []bool{off}, LogProb: []float64{nan}, OldLogProb: []float64{nan}, Adv: []float64{nan}}
		if tt.weight != nil {
			b.Weight = append([]float64{nan}, tt.weight...)
		}
		for i, m := range tt.move {
			b.Mask, b.Adv = append(b.Mask, on), append(b.Adv, tt.adv[i])
			b.LogProb, b.OldLogProb = append(b.LogProb, -1), append(b.OldLogProb, -1-m)
		}
		var s PolicyStats
		d := make([]float64, len(b.Mask))
		GMPO(d, b, 0.3, 0.4, 4, &s)
		for i, free := range tt.free {
			want := 0.0
			if free {
				want = tt.loss / 4 / float64(len(tt.move))
			}
			if !near(d[1+i], want, 2e-8*math.Max(1, math.Abs(tt.loss))) || d[0] != 0 {
				t.Errorf("%s: gradient %v, want %g at %d", tt.name, d, want, 1+i)
			}
		}
		for i, want := range append([]float64{tt.loss / 4}, tt.metrics...) {
			if m := s.Metrics()[i]; !near(m.Value, want, 2e-7) {
				t.Errorf("%s: %s = %.12g, want %.12g", tt.name, m.Name, m.Value, want)
			}
		}
	}
}

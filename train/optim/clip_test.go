package optim

import (
	"math"
	"testing"
)

func TestClipFactor(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name        string
		norm, limit float64
		want        float64
		ok          bool
	}{
		{"under the limit", 0.5, 1, 1, true},
		{"zero", 0, 1, 1, true},                         // 1/1e-6, at most 1
		{"at the limit", 1, 1, 1 / 1.000001, true},      // torch shrinks a little here too
		{"over the limit", 4, 1, 1 / 4.000001, true},    //
		{"another limit", 4, 0.5, 0.5 / 4.000001, true}, //
		{"no limit", 1e30, inf, 1, true},
		{"NaN", math.NaN(), 1, 0, false},
		{"infinite", inf, 1, 0, false},
		{"infinite without limit", inf, inf, 0, false},
	}
	for _, tt := range tests {
		if got, ok := ClipFactor(tt.norm, tt.limit); math.Abs(got-tt.want) > 1e-15 || ok != tt.ok {
			t.Errorf("%s: ClipFactor(%g, %g) = %v, %t, want %v, %t", tt.name, tt.norm, tt.limit, got, ok, tt.want, tt.ok)
		}
	}
}

// The clipped gradient's norm is never over the limit, and never far under it.
func TestClipFactorBoundsNorm(t *testing.T) {
	for norm := 1e-8; norm < 1e12; norm *= 1.7 {
		f, ok := ClipFactor(norm, 1)
		if got := f * norm; !ok || got > 1 || norm > 1 && got < 1-2e-6 {
			t.Errorf("norm %g becomes %g", norm, got)
		}
	}
}

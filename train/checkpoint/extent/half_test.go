package extent

import (
	"math"
	"testing"
)

// Every binary16 against the formula: (-1)^s·2^(e-15)·(1+f/1024), for e = 0
// (-1)^s·2^-14·f/1024.
func TestHalfIsItsFormula(t *testing.T) {
	for h := range 1 << 16 {
		e, f := h>>10&31, float64(h&1023)/1024
		want := math.Ldexp(1+f, e-15)
		switch {
		case e == 0:
			want = math.Ldexp(f, -14)
		case e == 31 && f == 0:
			want = math.Inf(1)
		case e == 31:
			want = math.NaN()
		}
		if h>>15 == 1 {
			want = math.Copysign(want, -1)
		}
		got := Half(uint16(h))
		same := math.Float32bits(got) == math.Float32bits(float32(want))
		if e == 31 && f != 0 {
			same = got != got
		}
		if !same {
			t.Fatalf("Half(%#04x) = %g, want %g", h, got, want)
		}
	}
}

// The fast way gives what the other does, around every binary16 and between them.
func TestNearHalf(t *testing.T) {
	for h := range 1 << 16 {
		for _, to := range []float32{float32(math.Inf(-1)), float32(math.Inf(1))} {
			v := Half(uint16(h))
			mid := float32((float64(v) + float64(Half(uint16(h)+1))) / 2)
			for _, f := range []float32{v, math.Nextafter32(v, to), mid, math.Nextafter32(mid, to)} {
				if want, _ := F16(f); nearHalf(f) != want {
					t.Fatalf("%g is %#04x, want %#04x", f, nearHalf(f), want)
				}
			}
		}
	}
	for _, f := range []float32{65519.996, 65520, 1e30, -65520} {
		if want, _ := F16(f); nearHalf(f) != want {
			t.Errorf("%g is %#04x, want %#04x", f, nearHalf(f), want)
		}
	}
}

package ref

import (
	"math"
	"testing"
)

func TestGELUKnown(t *testing.T) {
	// Φ(1) = 0.8413447460685429, Φ(-1) = 0.15865525393145707 (any table);
	// φ(1) = e^-½/√(2π) = 0.24197072451914337.
	out := make([]float64, 3)
	GELU(out, []float64{0, 1, -1})
	wantNear(t, "out", out, []float64{0, 0.8413447460685429, -0.15865525393145707}, 1e-15)
	// GELU'(0) = Φ(0) = 1/2; GELU'(1) = Φ(1)+φ(1); GELU'(-1) = Φ(-1)-φ(-1).
	dx := []float64{2, 1, 1}
	GELUBackward(dx, dx, []float64{0, 1, -1})
	wantNear(t, "dx in place", dx, []float64{1, 1.0833154705876863, -0.08331547058768630}, 1e-15)
}

func TestGaussian(t *testing.T) {
	cdf := func(x float64) float64 {
		_, c := gaussian(x)
		return c
	}
	// math.Erfc is accurate to the last bits on both tails. Where a float32 has a value, so
	// is Φ; beyond, the rounding of x² counts.
	worst := 0.0
	for x := -37.0; x <= 10; x += 1.0 / 128 {
		want := math.Erfc(-x/math.Sqrt2) / 2
		e := math.Abs(cdf(x)-want) / want
		worst = max(worst, e)
		if !(e <= 2e-15+x*x*2e-16) {
			t.Fatalf("Φ(%v) = %v, want %v: relative error %.2g, want ≤ 2e-15 + x²·2e-16", x, cdf(x), want, e)
		}
	}
	t.Logf("worst relative error %.2g", worst)

	inf := math.Inf(1)
	for _, tt := range []struct{ got, want float64 }{
		{cdf(inf), 1}, {cdf(-inf), 0}, {exp64(-1001), 0}, {exp64(-inf), 0}, {exp64(0), 1},
	} {
		if tt.got != tt.want {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	if got := cdf(math.NaN()); got == got {
		t.Errorf("Φ(NaN) = %v, want NaN", got)
	}
}

func TestExp64(t *testing.T) {
	for x := -700.0; x <= 700; x += 0.37 {
		want := math.Exp(x)
		if e := math.Abs(exp64(x)-want) / want; !(e <= 4.5e-16) {
			t.Errorf("exp64(%v) = %v, want %v: relative error %.2g", x, exp64(x), want, e)
		}
	}
}

func TestGELUGradient(t *testing.T) {
	r := source(5)
	x, c := normal(r, 40), normal(r, 40)
	out, dx := zeros(40), zeros(40)
	loss := func() float64 {
		GELU(out, x)
		return project(out, c)
	}
	GELUBackward(dx, c, x)
	checkGradient(t, loss, limit, argument{"x", x, dx})
	wantPanic(t, "ref: GELU: length mismatch", func() { GELU(out, x[:3]) })
	wantPanic(t, "ref: GELUBackward: length mismatch", func() { GELUBackward(dx, c[:3], x) })
}

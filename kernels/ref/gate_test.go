package ref

import (
	"math"
	"testing"

	"exp/kernels"
)

func TestGateKnown(t *testing.T) {
	// SiLU: Sigmoid(0) = 1/2, Sigmoid(ln 3) = 3/4, as in TestSwiGLUKnown.
	const ln3 = 1.0986122886681098
	row := []float64{0, ln3, 5, 4}
	act := zeros(2)
	Gate(act, row, 2, kernels.SiLU)
	wantNear(t, "SiLU", act, []float64{0, 3 * ln3}, 1e-14)
	d := zeros(4)
	GateBackward(d, []float64{2, 1}, row, 2, kernels.SiLU)
	wantNear(t, "SiLU's gradients", d, []float64{5, 3 + 0.75*ln3, 0, 0.75 * ln3}, 1e-14)

	// GELUTanh: with y = √(2/π)·(1+0.044715) = 0.833561969, tanh(y) = 0.682383981 and
	// a(1) = (1+tanh(y))/2 = 0.841191991; a(-1) = -(1-tanh(y))/2; a(0) = 0.
	// a'(x) = (1+tanh(y))/2 + x·(1-tanh²(y))/2·√(2/π)·(1+3·0.044715·x²): a'(0) = 1/2, and
	// a'(±1) = 0.5 ± (0.341191991 + 0.267176051·0.904916785).
	row = []float64{0, 1, -1, 3, 10, 100}
	act = zeros(3)
	Gate(act, row, 3, kernels.GELUTanh)
	wantNear(t, "GELUTanh", act, []float64{0, 8.411919906082768, -15.880800939172324}, 1e-13)
	d = zeros(6)
	GateBackward(d, []float64{2, 1, 1}, row, 3, kernels.GELUTanh)
	wantNear(t, "GELUTanh's gradients", d, []float64{2 * 3 * 0.5, 10 * 1.0829640838457826, 100 * -0.08296408384578256,
		0, 0.8411919906082768, -0.15880800939172324}, 1e-12)
}

// Sigmoid(1.702·c) is 3/4 at c = ln 3/1.702. A clamped number counts as its bound and gets no gradient.
func TestClampedGateKnown(t *testing.T) {
	const c = 1.0986122886681098 / 1.702
	row := []float64{c, 0, 100, -100, c, c, 1, 5, -1, 3, 8, -8}
	act := zeros(6)
	Gate(act, row, 6, kernels.Clamped)
	top := 7 / (1 + math.Exp(-1.702*7))
	wantNear(t, "Clamped", act, []float64{0.75 * c * 2, 0, 0, -100 * math.Exp(-170.2) * 4, 0.75 * c * 8, -0.75 * c * 6}, 1e-14)
	row[8] = 1
	Gate(act, row, 6, kernels.Clamped)
	wantNear(t, "above", act[2:3], []float64{top * 2}, 1e-13)

	d := zeros(12)
	GateBackward(d, []float64{1, 1, 1, 0, 1, 1}, row, 6, kernels.Clamped)
	slope := 0.75 * (1 + 1.702*c*0.25)
	wantNear(t, "gradients", d, []float64{2 * slope, 6 * 0.5, 0, 0, 8 * slope, -6 * slope, 0.75 * c, 0, top, 0, 0, 0}, 1e-13)

	Gate(act, []float64{math.NaN(), 1, 1, 1, 1, 1, 1, math.NaN(), 1, 1, 1, 1}, 6, kernels.Clamped)
	if act[0] == act[0] || act[1] == act[1] {
		t.Errorf("a NaN became %v", act[:2])
	}
}

func TestGELUTanh(t *testing.T) {
	// math.Tanh loses digits of 1+tanh(y) for negative y: the bound is absolute.
	for x := -12.0; x <= 12; x += 1.0 / 64 {
		want := x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
		if got, _ := geluTanh(x); !(math.Abs(got-want) <= 1e-14) {
			t.Errorf("geluTanh(%v) = %v, want %v", x, got, want)
		}
	}
	// On the tail nothing cancels: a(-6) = -6/(1+exp(1.595769·(6+0.044715·216))), the
	// exponent being 24.98726.
	if got, want := first(geluTanh(-6)), -6*math.Exp(-1.5957691216057308*(6+0.044715*216)); !(math.Abs(got-want) <= 1e-10*math.Abs(want)) {
		t.Errorf("geluTanh(-6) = %v, want %v", got, want)
	}
	for _, tt := range []struct{ x, want float64 }{{40, 40}, {-40, 0}, {math.MaxFloat32, math.MaxFloat32}, {-math.MaxFloat32, 0}, {math.Inf(1), math.Inf(1)}} {
		if got, _ := geluTanh(tt.x); got != tt.want {
			t.Errorf("geluTanh(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
	if got, slope := geluTanh(math.NaN()); got == got || slope == slope {
		t.Errorf("geluTanh(NaN) = %v with slope %v, want NaN", got, slope)
	}
}

func first(y, _ float64) float64 { return y }

// In float32 the activation is rounded once, before it is multiplied.
func TestGateRoundsOnce(t *testing.T) {
	x := []float32{0.7, 3}
	act, d := make([]float32, 1), make([]float32, 2)
	a, slope := geluTanh(float64(x[0]))
	Gate(act, x, 1, kernels.GELUTanh)
	wantExact(t, "act", act, []float32{float32(a) * 3})
	GateBackward(d, []float32{1.1}, x, 1, kernels.GELUTanh)
	du := float32(1.1)
	wantExact(t, "gradients", d, []float32{float32(du*3) * float32(slope), du * float32(a)})
}

func TestGateGradient(t *testing.T) {
	const M, F = 3, 7
	for _, kind := range []kernels.GateKind{kernels.SiLU, kernels.GELUTanh, kernels.Clamped} {
		r := source(6)
		x, c := normal(r, M*2*F), normal(r, M*F)
		for i := range x {
			if kind == kernels.Clamped {
				x[i] *= 6 // some are beyond 7
			}
		}
		out, dx := zeros(M*F), zeros(M*2*F)
		loss := func() float64 {
			Gate(out, x, F, kind)
			return project(out, c)
		}
		GateBackward(dx, c, x, F, kind)
		checkGradient(t, loss, limit, argument{"gateUp", x, dx})
		inPlace := clone(x)
		GateBackward(inPlace, c, inPlace, F, kind)
		wantExact(t, "in place", inPlace, dx)
	}
	x := zeros(6)
	wantPanic(t, "ref: Gate: length mismatch", func() { Gate(x[:3], x[:4], 3, kernels.GELUTanh) })
	wantPanic(t, "ref: GateBackward: length mismatch", func() { GateBackward(x[:4], x[:3], x, 3, kernels.GELUTanh) })
}

package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

// step is the h of central differences: the error of the formula grows as h²
// (h² = 4e-11, times a third derivative of order 1 over 6), the error of rounding as
// 1e-16·|loss|/h; they meet near 6e-6.
const step = 6e-6

// limit is the largest relative error of a gradient, |numeric-analytic| over the
// largest |analytic| of the tensor.
const limit = 1e-9

// argument is a tensor that a loss depends on and what a backward pass says of
// it.
type argument struct {
	name string
	x    []float64
	grad []float64
}

// checkGradient compares the analytic gradients with central differences of
// loss, which recomputes everything from the arguments.
func checkGradient(t *testing.T, loss func() float64, limit float64, args ...argument) {
	t.Helper()
	for _, a := range args {
		if len(a.x) != len(a.grad) {
			t.Fatalf("%s: %d elements but %d gradients", a.name, len(a.x), len(a.grad))
		}
		var worst, scale float64
		at := 0
		for i, x := range a.x {
			up, down := x+step, x-step
			a.x[i] = up
			lu := loss()
			a.x[i] = down
			ld := loss()
			a.x[i] = x
			numeric := (lu - ld) / (up - down)
			if e := math.Abs(numeric - a.grad[i]); !(e <= worst) {
				worst, at = e, i
			}
			scale = max(scale, math.Abs(a.grad[i]))
		}
		if !(worst <= limit*scale) {
			t.Errorf("d%s[%d]: off by %.3g of the largest gradient %.3g: relative %.3g, want ≤ %.0e", a.name, at, worst, scale, worst/scale, limit)
		} else {
			t.Logf("d%s: relative error %.1e", a.name, worst/scale)
		}
	}
}

// source draws test data; its seed is part of the test's name in failures.
func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func normal(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// project returns the sum of a[i]·b[i].
func project(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// minus returns a - b, for gradients that were added to b.
func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

func zeros(n int) []float64 { return make([]float64, n) }

// clone returns a copy of x.
func clone[T any](x []T) []T { return append([]T(nil), x...) }

// wantExact reports the first element of got that is not want.
func wantExact[T Float](t *testing.T, name string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", name, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s[%d] = %v, want %v (all: %v)", name, i, got[i], want[i], got)
			return
		}
	}
}

// wantNear is wantExact with an absolute error.
func wantNear[T Float](t *testing.T, name string, got, want []T, abs float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", name, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= abs) {
			t.Errorf("%s[%d] = %v, want %v ± %g (all: %v)", name, i, got[i], want[i], abs, got)
			return
		}
	}
}

// wantPanic fails unless f panics with the message.
func wantPanic(t *testing.T, message string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != message {
			t.Errorf("panic %v, want %q", got, message)
		}
	}()
	f()
}

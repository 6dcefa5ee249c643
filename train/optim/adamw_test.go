package optim

import (
	"math"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

func buffer(t *testing.T, be kernels.Backend, x ...float64) kernels.Buffer {
	t.Helper()
	b, err := be.Alloc(be.Float(), len(x))
	if err != nil {
		t.Fatal(err)
	}
	be.Copy(b, kernels.Host(x))
	return b
}

func host(be kernels.Backend, b kernels.Buffer) []float64 {
	x := make([]float64, b.Len())
	be.Copy(kernels.Host(x), b)
	be.Sync()
	return x
}

// Two updates by hand, lr 0.1, betas 0.9 and 0.99, eps 0, decay 0.5.
//
//	g = 2:  m = 0.2, v = 0.04;  m/0.1 = 2, √(v/0.01) = 2
//	        p = 1·(1-0.05) - 0.1·1                 = 0.85
//	g = -1: m = 0.9·0.2 - 0.1 = 0.08, v = 0.99·0.04 + 0.01 = 0.0496
//	        m/(1-0.81) = 0.42105…, √(v/(1-0.9801)) = √2.49246… = 1.57875…
//	        p = 0.85·0.95 - 0.1·0.42105/1.57875    = 0.780829…
func TestAdamWByHand(t *testing.T) {
	be := ref.New[float64]()
	p := buffer(t, be, 1)
	o, err := NewAdamW(be, 1, 0.9, 0.99, 0, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	o.Update(p, buffer(t, be, 4), 0.1, 0.5) // the scale halves the gradient
	if got := host(be, p)[0]; math.Abs(got-0.85) > 1e-12 {
		t.Errorf("after one update p = %.15g, want 0.85", got)
	}
	o.Update(p, buffer(t, be, -1), 0.1, 1)
	want := 0.85*0.95 - 0.1*(0.08/0.19)/math.Sqrt(0.0496/0.0199)
	if got := host(be, p)[0]; math.Abs(got-want) > 1e-12 {
		t.Errorf("after two updates p = %.15g, want %.15g", got, want)
	}
	if o.Steps() != 2 {
		t.Errorf("Steps() = %d, want 2", o.Steps())
	}
}

// Continuing from saved moments and count equals never having stopped.
func TestAdamWContinues(t *testing.T) {
	be := ref.New[float32]()
	grads := [][]float64{{1, -2, 0.5}, {0.3, 0, -4}, {-1, 1, 1}, {2, 2, -2}}
	run := func(o *AdamW, p kernels.Buffer, gs [][]float64) {
		for _, g := range gs {
			o.Update(p, buffer(t, be, g...), 0.01, 1)
		}
	}
	newOpt := func() *AdamW {
		o, err := NewAdamW(be, 3, 0.9, 0.999, 1e-8, 0.1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Close)
		return o
	}
	whole, first, second := newOpt(), newOpt(), newOpt()
	p, q := buffer(t, be, 1, 2, 3), buffer(t, be, 1, 2, 3)
	run(whole, p, grads)
	run(first, q, grads[:2])
	m, v := first.m, first.v
	m2, v2 := second.m, second.v
	be.Copy(m2, m)
	be.Copy(v2, v)
	second.Restore(first.Steps())
	run(second, q, grads[2:])
	for i, want := range host(be, p) {
		if got := host(be, q)[i]; got != want {
			t.Errorf("parameter %d = %v, want %v", i, got, want)
		}
	}
}

func TestNorm(t *testing.T) {
	be := ref.New[float32]()
	o, err := NewAdamW(be, 2, 0.9, 0.999, 1e-8, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if got := o.Norm(buffer(t, be, 3, -4)); got != 5 {
		t.Errorf("Norm(3, -4) = %v, want 5", got)
	}
	if got := o.Norm(buffer(t, be, 1, math.NaN())); !math.IsNaN(got) {
		t.Errorf("Norm with NaN = %v", got)
	}
	if got := o.Norm(buffer(t, be, 1e30, 1e30)); math.IsInf(got, 0) {
		t.Errorf("Norm(1e30, 1e30) overflows: %v", got)
	}
}

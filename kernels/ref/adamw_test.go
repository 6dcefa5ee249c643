package ref

import (
	"math"
	"testing"

	"exp/kernels"
)

func TestAdamWKnown(t *testing.T) {
	// Step 1 of g = 8 scaled by ½: g' = 4, m = 0.1·4 = 0.4, v = 0.001·16 = 0.016;
	// c1 = 1/0.1, c2 = 1/√0.001: m·c1 = 4, √v·c2 = 4, so the step is LR·4/(4+eps).
	// With eps = 4 and LR = 0.5 it is 0.25; the decay takes 1 - 0.5·0.1 = 0.95 of p.
	a := kernels.AdamW{LR: 0.5, Beta1: 0.9, Beta2: 0.999, Eps: 4, WeightDecay: 0.1, GradScale: 0.5, Step: 1}
	p, m, v := []float64{2}, zeros(1), zeros(1)
	AdamW(p, m, v, []float64{8}, a)
	wantNear(t, "p", p, []float64{2*0.95 - 0.25}, 1e-13)
	wantNear(t, "m", m, []float64{0.4}, 1e-15)
	wantNear(t, "v", v, []float64{0.016}, 1e-15)

	// Step 2 of g' = -4: m = 0.36 - 0.4 = -0.04, v = 0.015984 + 0.016 = 0.031984;
	// c1 = 1/(1-0.81) = 1/0.19, c2 = 1/√(1-0.998001) = 1/√0.001999.
	// √(0.031984/0.001999) = √16 = 4: the step is 0.5·(-0.04/0.19)/8.
	a.Step = 2
	p[0] = 2
	AdamW(p, m, v, []float64{-8}, a)
	wantNear(t, "p of step 2", p, []float64{1.9 + 0.5*0.04/0.19/8}, 1e-13)
	wantNear(t, "m of step 2", m, []float64{-0.04}, 1e-15)
	wantNear(t, "v of step 2", v, []float64{0.031984}, 1e-15)
}

func TestAdamWRoundsCoefficientsOnce(t *testing.T) {
	a := kernels.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, GradScale: 1, Step: 10}
	c := NewAdamWCoefficients[float32](a)
	// 1-0.9 in float64 is 0.09999999999999998, which rounds to float32(0.1);
	// 1-float32(0.9) would be 0.100000024.
	want := AdamWCoefficients[float32]{
		GradScale: 1, Beta1: 0.9, OneMinus1: 0.1, Beta2: 0.999, OneMinus2: 0.001,
		C2: float32(1 / math.Sqrt(1-math.Pow(0.999, 10))), Eps: 1e-8,
		// 0.9¹⁰ = 0.3486784401
		StepSize: float32(1e-3 / 0.6513215599), KeepWeight: 0.9999,
	}
	if c != want {
		t.Errorf("coefficients %+v, want %+v", c, want)
	}
}

func TestAdamWPanics(t *testing.T) {
	x := zeros(2)
	wantPanic(t, "ref: AdamW: length mismatch", func() { AdamW(x, x, x, x[:1], kernels.AdamW{Step: 1}) })
	wantPanic(t, "ref: AdamW: step is not positive", func() { AdamW(x, x, x, x, kernels.AdamW{}) })
}

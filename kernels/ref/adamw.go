package ref

import (
	"math"

	"exp/kernels"
)

// AdamWCoefficients holds the coefficients of an update, computed in float64 and
// rounded to T once.
type AdamWCoefficients[T Float] struct {
	GradScale  T
	Beta1      T
	OneMinus1  T // 1-Beta1
	Beta2      T
	OneMinus2  T // 1-Beta2
	C2         T // 1/sqrt(1-Beta2^Step)
	Eps        T
	StepSize   T // LR/(1-Beta1^Step)
	KeepWeight T // 1-LR·WeightDecay
}

// NewAdamWCoefficients returns the coefficients of a. It panics if Step is not
// positive.
func NewAdamWCoefficients[T Float](a kernels.AdamW) AdamWCoefficients[T] {
	if a.Step < 1 {
		panic("ref: AdamW: step is not positive")
	}
	c1 := 1 / (1 - math.Pow(a.Beta1, float64(a.Step)))
	c2 := 1 / math.Sqrt(1-math.Pow(a.Beta2, float64(a.Step)))
	return AdamWCoefficients[T]{
		GradScale:  T(a.GradScale),
		Beta1:      T(a.Beta1),
		OneMinus1:  T(1 - a.Beta1),
		Beta2:      T(a.Beta2),
		OneMinus2:  T(1 - a.Beta2),
		C2:         T(c2),
		Eps:        T(a.Eps),
		StepSize:   T(a.LR * c1),
		KeepWeight: T(1 - float64(a.LR*a.WeightDecay)),
	}
}

// AdamW updates p, m and v from gradient g, all of one length:
//
//	g' = g·GradScale
//	m  = fma(1-Beta1, g', Beta1·m)
//	v  = fma((1-Beta2)·g', g', Beta2·v)
//	d  = sqrt(v)·c2 + Eps
//	p  = fma(-(LR·c1), m/d, p·(1-LR·WeightDecay))
//
// with c1 = 1/(1-Beta1^Step) and c2 = 1/sqrt(1-Beta2^Step). Loshchilov and
// Hutter, arXiv:1711.05101 algorithm 2, with PyTorch's decay by LR·WeightDecay.
func AdamW[T Float](p, m, v, g []T, a kernels.AdamW) {
	if len(m) != len(p) || len(v) != len(p) || len(g) != len(p) {
		panic("ref: AdamW: length mismatch")
	}
	c := NewAdamWCoefficients[T](a)
	for i := range p {
		gs := T(g[i] * c.GradScale)
		m[i] = FMA(c.OneMinus1, gs, T(c.Beta1*m[i]))
		v[i] = FMA(T(c.OneMinus2*gs), gs, T(c.Beta2*v[i]))
		d := T(sqrt(v[i])*c.C2) + c.Eps
		p[i] = FMA(-c.StepSize, m[i]/d, T(p[i]*c.KeepWeight))
	}
}

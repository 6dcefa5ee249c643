package ref

import (
	"math"

	"exp/kernels"
)

// Gate sets act[m,f] = a(g)·u with g = gateUp[m,f] and u = gateUp[m,F+f]; act [M,F],
// gateUp [M,2F]. For SiLU it is SwiGLU; for GELUTanh, a is computed in float64 and
// rounded once; for Clamped see clampedGate. For the kinds of one factor act = a(g) and gateUp is [M,F]: for ReLU2
// r² with r = max(g, 0), for PlainGELU and PlainGELUTanh a is computed in float64 and rounded once.
// Shazeer, arXiv:2002.05202 eq. 6, without the projections.
func Gate[T Float](act, gateUp []T, F int, kind kernels.GateKind) {
	if kind == kernels.SiLU {
		SwiGLU(act, gateUp, F)
		return
	}
	if kind.Factors() == 1 {
		if len(act) != len(gateUp) {
			panic("ref: Gate: length mismatch")
		}
		for i, g := range gateUp {
			act[i], _ = plainGate(g, kind)
		}
		return
	}
	M := len(act) / F
	if len(act) != M*F || len(gateUp) != M*2*F {
		panic("ref: Gate: length mismatch")
	}
	for m := range M {
		row := gateUp[m*2*F : (m+1)*2*F]
		for f := range F {
			if kind == kernels.Clamped {
				x := clampedGate(row[f], row[F+f])
				act[m*F+f] = T(x.c*x.s) * x.up
				continue
			}
			a, _ := geluTanh(float64(row[f]))
			act[m*F+f] = T(a) * row[F+f]
		}
	}
}

// GateBackward sets dgateUp [M,2F]: for SiLU as SwiGLUBackward; for GELUTanh, with a
// and its derivative a' computed in float64 and rounded once,
//
//	du = dact·a(g)
//	dg = (dact·u)·a'(g)
//
// and for Clamped, with c, s and up of clampedGate, 0 where g or u is beyond its bounds,
//
//	du = dact·(c·s)
//	dg = (dact·up)·(s·fma(1.702·c, 1-s, 1))
//
// and for ReLU2 dgateUp = dact·(r + r), for PlainGELU and PlainGELUTanh dgateUp = dact·a'(g).
// dact is [M,F]. dgateUp may be gateUp.
func GateBackward[T Float](dgateUp, dact, gateUp []T, F int, kind kernels.GateKind) {
	if kind == kernels.SiLU {
		SwiGLUBackward(dgateUp, dact, gateUp, F)
		return
	}
	if kind.Factors() == 1 {
		if len(dact) != len(gateUp) || len(dgateUp) != len(gateUp) {
			panic("ref: GateBackward: length mismatch")
		}
		for i, g := range gateUp {
			_, slope := plainGate(g, kind)
			dgateUp[i] = dact[i] * slope
		}
		return
	}
	M := len(dact) / F
	if len(dact) != M*F || len(gateUp) != M*2*F || len(dgateUp) != len(gateUp) {
		panic("ref: GateBackward: length mismatch")
	}
	for m := range M {
		row, drow := gateUp[m*2*F:(m+1)*2*F], dgateUp[m*2*F:(m+1)*2*F]
		for f := range F {
			u, d := row[F+f], dact[m*F+f]
			if kind == kernels.Clamped {
				x := clampedGate(row[f], u)
				drow[f] = x.within(x.gateOut, T(d*x.up)*T(x.s*FMA(x.z, 1-x.s, 1)))
				drow[F+f] = x.within(x.upOut, d*T(x.c*x.s))
				continue
			}
			a, slope := geluTanh(float64(row[f]))
			drow[f] = T(d*u) * T(slope)
			drow[F+f] = d * T(a)
		}
	}
}

// plainGate returns an activation of one number, and its derivative.
func plainGate[T Float](g T, kind kernels.GateKind) (value, slope T) {
	switch x := float64(g); kind {
	case kernels.PlainGELU:
		y, dy := gelu(x)
		return T(y), T(dy)
	case kernels.PlainGELUTanh:
		y, dy := geluTanh(x)
		return T(y), T(dy)
	}
	return positive(g) * positive(g), positive(g) + positive(g)
}

// positive returns max(g, 0), or g if it is NaN.
func positive[T Float](g T) T {
	if g < 0 {
		return 0
	}
	return g
}

// clamped are the parts of gpt-oss's gate: act = (c·s)·up.
type clamped[T Float] struct {
	c, s, up       T // the clamped gate, its Sigmoid, 1 + the clamped up
	z              T // 1.702·c; s is Sigmoid(z)
	gateOut, upOut bool
}

// clampedGate returns c = min(g, 7), s = Sigmoid(1.702·c) and up = 1 + u, u clamped to -7 to 7.
// gpt-oss, arXiv:2508.10925. A NaN stays one.
func clampedGate[T Float](g, u T) (x clamped[T]) {
	const limit = kernels.GateLimit
	x.c, x.gateOut = g, g > limit
	if x.gateOut {
		x.c = limit
	}
	x.upOut = u > limit || u < -limit
	if x.upOut {
		u = min(max(u, -limit), limit)
	}
	x.z = T(kernels.GateSlope) * x.c
	x.s, x.up = Sigmoid(x.z), u+1
	return x
}

// within returns the gradient d, or 0 where the clamp cut its variable.
func (clamped[T]) within(out bool, d T) T {
	if out {
		return 0
	}
	return d
}

// geluTanh returns x·(1+tanh(y))/2 with y = √(2/π)·(x+0.044715·x³), and its derivative
// in x. (1+tanh(y))/2 is the logistic function of 2y. Hendrycks and Gimpel,
// arXiv:1606.08415 §2, the approximation by tanh.
func geluTanh(x float64) (y, slope float64) {
	const root, cubic = 0.7978845608028654, 0.044715 // √(2/π)
	xx := float64(x * x)
	arg := float64(2*root*x) * math.FMA(cubic, xx, 1)
	s := logistic64(arg)
	dArg := 2 * root * math.FMA(3*cubic, xx, 1)
	return float64(x * s), math.FMA(float64(x*s)*(1-s), dArg, s)
}

// logistic64 returns 1/(1+exp(-x)) with exp64, which gives the same bits on every machine.
func logistic64(x float64) float64 {
	if x < 0 {
		e := exp64(x)
		return e / (1 + e)
	}
	return 1 / (1 + exp64(-x))
}

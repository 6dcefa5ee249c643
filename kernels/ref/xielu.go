package ref

import (
	"math"

	"exp/kernels"
)

// XIELU sets act [M,F] to Apertus's activation of x [M,F], computed in float64 and rounded once: with
// n = (exp(min(g, Eps)) - 1) - g for an element g of x,
//
//	act = fma(Beta, g, Positive·(g·g))   where g > 0
//	act = fma(Beta, g, Negative·n)       elsewhere
//
// act may be x. Huang and Schlag, arXiv:2411.13010.
func XIELU[T Float](act, x []T, F int, a kernels.Xielu) {
	if len(act) != len(x) || len(x)%F != 0 {
		panic("ref: XIELU: length mismatch")
	}
	for i, g := range x {
		act[i] = xielu[T](float64(g), a).value
	}
}

// XIELUBackward sets dx [M,F] to d·a'(g), with d from dact [M,F] and
//
//	a'(g) = fma(2·Positive, g, Beta)     where g > 0
//	a'(g) = fma(Negative, e-1, Beta)     elsewhere, e = exp(g) where g < Eps, else 0
//
// and adds to dalpha [2] the blocked plain sums over rows of the lane sums of d·p and d·q, with p = DPositive·(g·g)
// where g > 0 and q = DNegative·n elsewhere, each 0 otherwise. At g = Eps, where n has two slopes, e is 0. dx may be x
// or dact.
func XIELUBackward[T Float](dx, dalpha, x, dact []T, blocks []int32, F int, a kernels.Xielu) {
	if len(dx) != len(x) || len(dact) != len(x) || len(x)%F != 0 || len(dalpha) != 2 {
		panic("ref: XIELUBackward: length mismatch")
	}
	checkBlocks(blocks, len(x)/F)
	acc := make([]T, 2)
	p, q, d := make([]T, F), make([]T, F), make([]T, F)
	for b := 1; b < len(blocks); b++ {
		clear(acc)
		for m := int(blocks[b-1]); m < int(blocks[b]); m++ {
			copy(d, dact[m*F:(m+1)*F])
			for f := range F {
				y := xielu[T](float64(x[m*F+f]), a)
				p[f], q[f] = y.dPositive, y.dNegative
				dx[m*F+f] = d[f] * y.slope
			}
			acc[0] += LaneDot(d, p)
			acc[1] += LaneDot(d, q)
		}
		addTo(dalpha, acc)
	}
}

// xielus are an activation's value and its derivatives: in x, and in the parameters of Positive and Negative.
type xielus[T Float] struct{ value, slope, dPositive, dNegative T }

func xielu[T Float](g float64, a kernels.Xielu) xielus[T] {
	if g > 0 {
		gg := float64(g * g)
		return xielus[T]{T(math.FMA(a.Beta, g, float64(a.Positive*gg))), T(math.FMA(2*a.Positive, g, a.Beta)),
			T(float64(a.DPositive * gg)), 0}
	}
	low := a.Eps
	if g < a.Eps {
		low = g
	}
	e := exp64(low)
	n, rise := float64(float64(e-1)-g), 0.0
	if g < a.Eps {
		rise = e
	}
	return xielus[T]{T(math.FMA(a.Beta, g, float64(a.Negative*n))), T(math.FMA(a.Negative, rise-1, a.Beta)), 0,
		T(float64(a.DNegative * n))}
}

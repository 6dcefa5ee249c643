package ref

import "math"

// GELU sets out[i] = x[i]·Φ(x[i]), Φ(x) = (1+erf(x/√2))/2, computed in float64
// and rounded once. out and x have the same length. Hendrycks and Gimpel,
// arXiv:1606.08415 eq. 1, the exact form.
func GELU[T Float](out, x []T) {
	if len(out) != len(x) {
		panic("ref: GELU: length mismatch")
	}
	for i, v := range x {
		y, _ := gelu(float64(v))
		out[i] = T(y)
	}
}

// GELUBackward sets dx[i] = dout[i] · GELU'(x[i]) with
//
//	GELU'(x) = Φ(x) + x·φ(x)
//
// computed in float64 and rounded once. dx may be dout.
func GELUBackward[T Float](dx, dout, x []T) {
	if len(dx) != len(dout) || len(dx) != len(x) {
		panic("ref: GELUBackward: length mismatch")
	}
	for i, v := range x {
		_, slope := gelu(float64(v))
		dx[i] = dout[i] * T(slope)
	}
}

// gelu returns x·Φ(x) and its derivative Φ(x) + x·φ(x).
func gelu(x float64) (value, slope float64) {
	pdf, cdf := gaussian(x)
	return float64(x * cdf), cdf + float64(x*pdf)
}

// gaussian returns φ(x) = exp(-x²/2)/√(2π) and Φ(x), the standard normal density and
// distribution function, within a relative error of 2e-15 + x²·2e-16 (of 2e-15 where x is
// a float32). The bits of math.Erf would depend on what the compiler fuses.
func gaussian(x float64) (pdf, cdf float64) {
	a := math.Abs(x)
	e := exp64(-0.5 * float64(a*a))
	// Φ(-a) = exp(-a²/2)·t·R(t) with t = 4/(4+a), R smooth.
	t := 4 / (4 + a)
	tt := float64(t * t)
	even, odd := tailTerms[20], tailTerms[19]
	for k := 18; k > 0; k -= 2 {
		even = math.FMA(even, tt, tailTerms[k])
		odd = math.FMA(odd, tt, tailTerms[k-1])
	}
	even = math.FMA(even, tt, tailTerms[0])
	tail := float64(e * float64(t*math.FMA(odd, t, even)))
	pdf = e * 0.39894228040143267794 // 1/√(2π)
	if x < 0 {
		return pdf, tail
	}
	return pdf, 1 - tail
}

// tailTerms are the coefficients of R, ascending. R interpolates
// erfc(a/√2)·exp(a²/2)/(2t) in relative terms at the 21 extremes of a Chebyshev
// polynomial on 0 ≤ a ≤ 40, both ends included. Its relative error is at most 7e-16;
// R is 1/2 at a = 0.
var tailTerms = [21]float64{
	0.09973557009844201, 0.09973557021882096, 0.09350209384594217, 0.08103519469221665, 0.06350320438266296,
	0.043244298312919115, 0.023432445677962738, 0.006801599475307911, -0.0003322974200197988, -0.02046130846541813,
	0.04772104882031563, -0.1550478122928355, 0.35341440825232057, -0.6152447995386304, 0.8375498375970393,
	-0.8510633209935692, 0.6214794612129552, -0.31606903447983875, 0.10661860138120374, -0.021533383658753184,
	0.001978622880956145,
}

// exp64 returns eˣ in float64 within 2 ulp for -1000 ≤ x ≤ 700, 0 below (and
// for -Inf), with the same bits on every machine; math.Exp is assembly on some.
func exp64(x float64) float64 {
	if x < -1000 {
		return 0
	}
	n := math.RoundToEven(float64(x * log2e))
	r := math.FMA(n, -ln2hi64, x)
	r = math.FMA(n, -ln2lo64, r)
	p := expTerms[13] // Taylor: |r|¹⁴/14! < 1e-17
	for k := 12; k >= 0; k-- {
		p = math.FMA(p, r, expTerms[k])
	}
	return math.Ldexp(p, int(n))
}

// expTerms are 1/k!.
var expTerms = [14]float64{
	1, 1, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333, 0.001388888888888889,
	0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07,
	2.505210838544172e-08, 2.08767569878681e-09, 1.6059043836821613e-10,
}

// ln 2 in two parts; the first has 33 bits, so that n·ln2hi64 is exact.
const (
	ln2hi64 = 6.93147180369123816490e-01
	ln2lo64 = 1.90821492927058770002e-10
)

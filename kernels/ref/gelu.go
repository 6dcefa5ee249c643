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
		out[i] = T(float64(v) * normalCDF(float64(v)))
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
		y := float64(v)
		dx[i] = dout[i] * T(normalCDF(y)+float64(y*normalPDF(y)))
	}
}

// normalPDF returns φ(x) = exp(-x²/2)/√(2π).
func normalPDF(x float64) float64 {
	return exp64(-0.5*float64(x*x)) * 0.39894228040143267794 // 1/√(2π)
}

// normalCDF returns Φ(x), the standard normal distribution function, within a
// relative error of 2e-12. math.Erf is not used because its bits depend on what
// the compiler fuses on a machine.
func normalCDF(x float64) float64 {
	switch {
	case x < -3:
		return normalTail(-x)
	case x > 3:
		return 1 - normalTail(x)
	}
	// Φ(x) = 1/2 + φ(x)·(x + x³/3 + x⁵/(3·5) + …): Marsaglia, "Evaluating the
	// Normal Distribution", 2004. Terms have one sign; at |x| = 3 forty of them
	// count.
	xx := float64(x * x)
	term, sum, before := x, x, 0.0
	for n := 3.0; sum != before && n < 101; n += 2 {
		before = sum
		term = term * xx / n
		sum += term
	}
	return 0.5 + float64(sum*normalPDF(x))
}

// normalTail returns 1-Φ(x) for x ≥ 3 by Laplace's continued fraction
// φ(x)/(x+1/(x+2/(x+3/(x+…)))). Forty levels leave an error below 1e-20.
func normalTail(x float64) float64 {
	d := x
	for k := 40.0; k > 0; k-- {
		d = x + k/d
	}
	return normalPDF(x) / d
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
	p := 1.0
	for k := 14.0; k > 0; k-- { // Taylor: |r|¹⁵/15! < 1e-19
		p = math.FMA(p, r/k, 1)
	}
	return math.Ldexp(p, int(n))
}

// ln 2 in two parts; the first has 33 bits, so that n·ln2hi64 is exact.
const (
	ln2hi64 = 6.93147180369123816490e-01
	ln2lo64 = 1.90821492927058770002e-10
)

// Package exact has elementary functions with the same bits on every machine.
package exact

import "math"

const (
	log2e = 1.44269504088896338700 // 1/ln 2
	// ln 2 in two parts: k·ln2Hi is exact for |k| < 2^20, since the last 21 bits
	// of ln2Hi are zero.
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10

	expMax = 709.782712893384 // above it eˣ overflows float64
	expMin = -745.1332191019412
)

// expTerms are 1/13!, 1/12!, … 1/0!: on |r| ≤ ln(2)/2 the next term is below
// 1e-17.
var expTerms = [...]float64{
	1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040,
	1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1,
}

// Exp returns eˣ to within 1 ulp, with the same bits on every machine. math.Exp does not
// guarantee that: it is assembly with fused instructions on some processors and Go code on
// others.
//
//	eˣ = 2ᵏ·eʳ,  k = round(x/ln 2),  r = x - k·ln 2,  eʳ by its Taylor series
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > expMax:
		return math.Inf(1)
	case x < expMin:
		return 0
	case x == 0:
		return 1 // equals the series; a common case, as sampler and trainer mostly agree
	}
	k := math.RoundToEven(float64(x * log2e))
	r := x - float64(k*ln2Hi) - float64(k*ln2Lo)
	sum := 0.0
	for _, term := range expTerms {
		sum = float64(sum*r) + term
	}
	if k < -1020 {
		return math.Ldexp(sum, int(k)) // rounds once
	}
	half := math.Float64frombits(uint64(1022+int64(k)) << 52) // 2^(k-1): k may be 1024
	return float64(float64(sum*half) * 2)                     // exact, or +Inf
}

package ref

import (
	"math"
	"math/bits"

	"exp/kernels"
)

// matrixPlaces is how many binary places below the leading one of the largest addend a step of
// MatrixSum keeps.
const matrixPlaces = 25

// matrixLeast is the least exponent of a step's largest addend.
const matrixLeast = -133

// MatrixSum returns acc plus the matrix sum of a[i]·b[i], both rounded to BF16 first. In each step
// of kernels.MatrixTerms terms, acc and the exact products are added at once:
//
//   - The largest exponent among acc and the products counts, at least -133. A product's exponent is
//     the sum of its factors' exponents, and zeros have none.
//   - Every addend is cut off, towards zero, 25 binary places below that exponent's.
//   - The sum of the rest is exact, and is cut to float32, towards zero. A sum that is 0, or is cut
//     to 0, is +0.
//
// A step with an infinity or a NaN is the float64 sum of acc and the products in order.
//
// So do the matrix units of NVIDIA's Hopper and Blackwell compute (arXiv:2511.10909,
// github.com/microsoft/MMA-Sim). The least exponent and the sign of 0 are an H200's.
func MatrixSum(a, b []float32, acc float32) float32 {
	for len(a) > 0 {
		n := min(len(a), kernels.MatrixTerms)
		acc = matrixStep(a[:n], b[:n], acc)
		a, b = a[n:], b[n:]
	}
	return acc
}

// matrixStep is one step of MatrixSum. The products are exact in float64, and so are they and acc in units of the last
// place that is kept; turning these into integers cuts them towards zero.
func matrixStep(a, b []float32, acc float32) float32 {
	if acc-acc != 0 {
		return specialStep(a, b, acc)
	}
	var products [kernels.MatrixTerms]float64
	top := matrixLeast
	if acc != 0 {
		top = max(top, exponent(acc))
	}
	for i, v := range a {
		x, y := Round(v), Round(b[i]) // none of them subnormal
		ex, ey := int(math.Float32bits(x)>>23&0xff), int(math.Float32bits(y)>>23&0xff)
		if ex == 0xff || ey == 0xff {
			return specialStep(a, b, acc)
		}
		if ex > 0 && ey > 0 {
			top = max(top, ex+ey-2*127)
		}
		products[i] = float64(x) * float64(y)
	}
	units := math.Float64frombits(uint64(1023+matrixPlaces-top) << 52) // 2^(matrixPlaces-top)
	sum := int64(float64(acc) * units)
	for _, p := range products[:len(a)] {
		sum += int64(p * units)
	}
	return cutToFloat(sum, top-matrixPlaces)
}

// exponent returns e where the leading bit of a normal x is 2^e, and -126 for a subnormal.
func exponent(x float32) int { return max(int(math.Float32bits(x)>>23&0xff), 1) - 127 }

// specialStep is a step with an infinity or a NaN.
func specialStep(a, b []float32, acc float32) float32 {
	sum := float64(acc)
	for i, v := range a {
		sum += float64(float64(Round(v)) * float64(Round(b[i])))
	}
	return float32(sum)
}

// cutToFloat returns sum · 2^unit as a float32, cut towards zero.
func cutToFloat(sum int64, unit int) float32 {
	if sum == 0 {
		return 0
	}
	sign, m := uint32(0), uint64(sum)
	if sum < 0 {
		sign, m = 1<<31, uint64(-sum)
	}
	exponent := bits.Len64(m) - 1 + unit
	last := max(exponent-23, -149) // exponent of the last place that is kept
	if drop := last - unit; drop > 0 {
		m >>= min(uint(drop), 63)
	} else {
		m <<= uint(-drop)
	}
	switch {
	case m == 0:
		return 0
	case exponent > 127:
		return math.Float32frombits(sign | 0x7f800000)
	case exponent < -126:
		return math.Float32frombits(sign | uint32(m))
	}
	return math.Float32frombits(sign | uint32(exponent+127)<<23 | uint32(m)&0x7fffff)
}

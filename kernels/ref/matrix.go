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

// addend is ± m · 2^(e-places), where places is the position of the leading bit of m, or one
// above it: 14 for products, 23 for acc.
type addend struct {
	m        uint32
	e        int
	negative bool
}

// cut returns the addend in units of 2^(top-matrixPlaces), towards zero.
func (x addend) cut(top, places int) int64 {
	m := int64(uint64(x.m) << (matrixPlaces - places) >> min(uint(top-x.e), 63))
	if x.negative {
		return -m
	}
	return m
}

// matrixStep is one step of MatrixSum.
func matrixStep(a, b []float32, acc float32) float32 {
	var products [kernels.MatrixTerms]addend
	c, special := split(math.Float32bits(acc))
	top := matrixLeast
	if c.m != 0 {
		top = c.e
	}
	for i, v := range a {
		x, odd := split(uint32(roundBits(v)) << 16)
		y, strange := split(uint32(roundBits(b[i])) << 16)
		special = special || odd || strange
		p := addend{x.m >> 16 * (y.m >> 16), x.e + y.e, x.negative != y.negative}
		if p.m != 0 {
			top = max(top, p.e)
		}
		products[i] = p
	}
	if special {
		return specialStep(a, b, acc)
	}
	sum := int64(0)
	if c.m != 0 {
		sum = c.cut(top, 23)
	}
	for _, p := range products[:len(a)] {
		if p.m != 0 {
			sum += p.cut(top, 14)
		}
	}
	return cutToFloat(sum, top-matrixPlaces)
}

// split returns the bits of a float32 as an addend with 23 places; special: it is infinite or NaN.
func split(u uint32) (x addend, special bool) {
	exponent := int(u >> 23 & 0xff)
	x = addend{m: u & 0x7fffff, e: max(exponent, 1) - 127, negative: u>>31 != 0}
	if exponent != 0 {
		x.m |= 1 << 23
	}
	return x, exponent == 0xff
}

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

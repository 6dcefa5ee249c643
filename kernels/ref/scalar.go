package ref

import (
	"math"
	"unsafe"
)

// Float is the element type of the reference: float32 gives the bits of numerics
// class "cpu/fma", float64 is for finite differences.
type Float interface{ float32 | float64 }

// is32 reports whether T is float32; it is a constant of each instance.
func is32[T Float]() bool {
	var z T
	return unsafe.Sizeof(z) == 4
}

// FMA returns a·b + c rounded once.
//
// For float32 the product is exact in float64, and the float64 sum rounds
// correctly to float32 unless it lies exactly between two float32, where the
// rounded-off part decides. Those ties go through roundOdd, and so do all results that
// are subnormal in float32, which have their ties at other bits. A sum that is 0 is exact.
func FMA[T Float](a, b, c T) T {
	if y, ok := quickFMA(a, b, c); ok {
		return y
	}
	p := float64(a) * float64(b)
	return T(roundOdd(p, float64(c), p+float64(c)))
}

// quickFMA returns FMA of the same numbers if ok, as for nearly all of them. Loops that take most of the time try it
// first: it is small enough that Go compiles it into them.
func quickFMA[T Float](a, b, c T) (y T, ok bool) {
	if !is32[T]() {
		return T(math.FMA(float64(a), float64(b), float64(c))), true
	}
	s := float64(float64(a)*float64(b)) + float64(c)
	// A float64 has 29 bits more than a float32; a tie has only the first set.
	u := math.Float64bits(s)
	return T(s), u<<35 != 1<<63 && u<<1-1 >= leastNormal<<1-1
}

// leastNormal has the bits of 0x1p-126, the least normal float32, in float64.
const leastNormal = (1023 - 126) << 52

// roundOdd returns p + c rounded to odd, given s, the sum rounded to nearest: the
// last bit is set if anything was lost, so that the second rounding, to float32, sees
// on which side of a tie the exact value lies (Boldo and Melquiond, "Emulation of a
// FMA and correctly rounded sums", 2008).
func roundOdd(p, c, s float64) float64 {
	// Knuth's two-sum: the exact error of the addition.
	bb := s - p
	e := (p - (s - bb)) + (c - bb)
	if e < 0 || e > 0 { // not for the NaN that an infinite sum leaves
		u := math.Float64bits(s)
		if u&1 == 0 {
			// The neighbour on the side of the error is odd.
			if (e > 0) == (s > 0) {
				u++
			} else {
				u--
			}
			s = math.Float64frombits(u)
		}
	}
	return s
}

// Constants of Exp and Log for float32. The polynomials are our own minimax fits;
// the stated errors are the polynomial's alone, before rounding.
const (
	log2e = 1.44269504088896341 // 1/ln 2
	ln2hi = 0.693359375         // 10 bits: n·ln2hi is exact for |n| < 2^14
	ln2lo = -2.12194440e-4      // ln 2 - ln2hi

	// (exp(x)-1-x)/x² on |x| ≤ ln(2)/2, relative error of exp 3.1e-9.
	exp0 = 0.4999999403953552
	exp1 = 0.1666652113199234
	exp2 = 0.04166838899254799
	exp3 = 0.008368716575205326
	exp4 = 0.001381459878757596

	// Above expMax exp overflows float32; below expMin its result would be
	// subnormal and is 0 instead.
	expMax = 88.72283172607422
	expMin = -87.33654022216797

	// (log(1+x)-x+x²/2)/x³ on [√½-1, √2-1], relative error of log 7.6e-10.
	log0 = 0.3333331346511841
	log1 = -0.25000008940696716
	log2 = 0.20002120733261108
	log3 = -0.1666799634695053
	log4 = 0.1421951949596405
	log5 = -0.12405543029308319
	log6 = 0.11888375133275986
	log7 = -0.11676054447889328
	log8 = 0.06746647506952286
)

// Exp returns eˣ. In float32 it is within 1 ulp, 0 below -87.33654 (where the
// result would be subnormal), +Inf above 88.72283, and NaN for NaN.
func Exp[T Float](x T) T {
	if !is32[T]() {
		return T(math.Exp(float64(x)))
	}
	return T(exp32(float32(x)))
}

func exp32(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > expMax:
		return float32(math.Inf(1))
	case x < expMin:
		return 0
	}
	n := float32(math.RoundToEven(float64(float32(x * log2e))))
	r := FMA(n, float32(-ln2hi), x)
	r = FMA(n, float32(-ln2lo), r)
	p := float32(exp4)
	p = FMA(p, r, exp3)
	p = FMA(p, r, exp2)
	p = FMA(p, r, exp1)
	p = FMA(p, r, exp0)
	y := FMA(p, float32(r*r), r) + 1
	// 2ⁿ in two steps, since n = 128 exceeds the float32 exponents.
	h := int32(n) >> 1
	y *= pow2(h)
	y *= pow2(int32(n) - h)
	return y
}

// pow2 returns 2ⁿ for a normal result.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// Log returns the natural logarithm. In float32 it is within 1 ulp; -Inf for
// zeros, NaN below zero.
func Log[T Float](x T) T {
	if !is32[T]() {
		return T(math.Log(float64(x)))
	}
	return T(log32(float32(x)))
}

func log32(x float32) float32 {
	switch {
	case x != x || math.IsInf(float64(x), 1):
		return x
	case x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	}
	e := float32(0)
	if x < 0x1p-126 { // subnormal
		x *= 0x1p25
		e = -25
	}
	// x = m·2ᵏ with m in [√½, √2): 0x3f3504f3 is √½.
	u := math.Float32bits(x)
	k := int32(u-0x3f3504f3) >> 23
	m := math.Float32frombits(u - uint32(k)<<23)
	e += float32(k)

	r := m - 1
	p := float32(log8)
	p = FMA(p, r, log7)
	p = FMA(p, r, log6)
	p = FMA(p, r, log5)
	p = FMA(p, r, log4)
	p = FMA(p, r, log3)
	p = FMA(p, r, log2)
	p = FMA(p, r, log1)
	p = FMA(p, r, log0)
	q := float32(r * r)
	t := float32(float32(p*r) * q)
	t = FMA(-0.5, q, t)
	t = FMA(e, float32(ln2lo), t)
	return FMA(e, float32(ln2hi), float32(r+t))
}

// Sigmoid returns 1/(1+Exp(-x)).
func Sigmoid[T Float](x T) T {
	return 1 / (1 + Exp(-x))
}

// Tanh returns (1-e)/(1+e) with e = Exp(-2|x|), with the sign of x. In float32 it is
// within 1e-7 of the exact value, an absolute error near 0.
func Tanh[T Float](x T) T {
	a := x
	if a < 0 {
		a = -a
	}
	e := Exp(-2 * a)
	y := (1 - e) / (1 + e)
	if x < 0 {
		return -y
	}
	return y
}

// sqrt returns the correctly rounded square root. For float32 the float64 root
// rounds correctly to float32 (53 ≥ 2·24+2 bits).
func sqrt[T Float](x T) T { return T(math.Sqrt(float64(x))) }

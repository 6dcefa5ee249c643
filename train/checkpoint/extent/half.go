package extent

import "math"

// Half returns the value of an IEEE binary16: sign, 5 bits of exponent (bias 15),
// 10 bits of fraction. The payload of a NaN is kept.
func Half(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0: // ±frac·2⁻²⁴, exact in float32
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// F16 rounds to IEEE binary16, to nearest, ties to even; ok is false for a finite number
// out of range.
func F16(f float32) (h uint16, ok bool) {
	const most = 65519.996 // halfway to 65536: rounding overflows from here on
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	abs := math.Float32frombits(b &^ (1 << 31))
	switch {
	case f != f:
		return sign | 0x7e00 | uint16(b>>13&0x3ff), true
	case math.IsInf(float64(abs), 0):
		return sign | 0x7c00, true
	case abs > most:
		return sign | 0x7c00, false
	case abs < 0x1p-14: // subnormal: a multiple of 2⁻²⁴
		return sign | uint16(math.RoundToEven(float64(abs)*0x1p24)), true
	}
	b = math.Float32bits(abs) - (127-15)<<23
	return sign | uint16((b+0xfff+b>>13&1)>>13), true
}

// nearHalf is F16 of a number that may be out of range: it becomes infinite. It is fast for ordinary ones.
func nearHalf(f float32) uint16 {
	const small, large = 0x38800000, 0x477ff000 // bits of 2⁻¹⁴ and of 65520, which rounds to 65536
	b := math.Float32bits(f)
	if abs := b &^ (1 << 31); abs-small < large-small {
		abs -= (127 - 15) << 23
		return uint16(b>>16&0x8000) | uint16((abs+0xfff+abs>>13&1)>>13)
	}
	if f == 0 {
		return uint16(b >> 16)
	}
	h, _ := F16(f)
	return h
}

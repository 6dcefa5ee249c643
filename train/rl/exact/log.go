package exact

import "math"

// logTerms are 2/21, 2/19, … 2/3: at the greatest s, (√2-1)/(√2+1) = 0.172, the
// next term of the series is below 1e-17 of the first.
var logTerms = [...]float64{
	2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13, 2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3,
}

// Log returns ln x to within 2 ulp, with the same bits on every machine, which math.Log
// does not guarantee either (see Exp). It is -Inf at 0 and NaN below.
//
//	ln x = k·ln 2 + ln f,  x = f·2ᵏ,  √½ ≤ f < √2
//	ln f = 2·artanh(s) = 2s + 2s³/3 + 2s⁵/5 + …,  s = (f-1)/(f+1)
func Log(x float64) float64 {
	switch {
	case x != x || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f = float64(2 * f)
		e--
	}
	s := (f - 1) / (f + 1)
	s2 := float64(s * s)
	sum := 0.0
	for _, term := range logTerms {
		sum = float64((sum + term) * s2)
	}
	k := float64(e)
	return float64(k*ln2Hi) + (float64(2*s) + (float64(sum*s) + float64(k*ln2Lo)))
}

// Log1p returns ln(1 + x) for x ≥ 0, of small ones too: ln u · x/(u - 1) with u = 1 + x rounded.
func Log1p(x float64) float64 {
	u := 1 + x
	if u == 1 {
		return x
	}
	return float64(Log(u) * (x / (u - 1)))
}

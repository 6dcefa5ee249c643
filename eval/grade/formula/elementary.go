package formula

import (
	"math"
	"math/big"
)

// Elementary functions of big.Float at 256 bits, by argument reduction and Taylor series. Slow and simple;
// errors are a few hundred units in the last place, within the margin of agreeBits.

// pi256 computes π by Machin's formula, π/4 = 4 arctan(1/5) - arctan(1/239).
func pi256() *big.Float {
	a := fMul(floatOf(16), arctanInverse(5))
	return fSub(a, fMul(floatOf(4), arctanInverse(239)))
}

// arctanInverse returns arctan(1/n) = Σ (-1)^k / ((2k+1) n^(2k+1)).
func arctanInverse(n int64) *big.Float {
	power := fQuo(floatOf(1), floatOf(float64(n)))
	square := fMul(power, power)
	s := newFloat().Set(power)
	for k := 1; power.MantExp(nil) > -precision-8; k++ {
		power = fMul(power, square)
		t := fQuo(power, floatOf(float64(2*k+1)))
		if k%2 == 1 {
			s = fSub(s, t)
		} else {
			s = fAdd(s, t)
		}
	}
	return s
}

// fExp returns e^x: the series at x/2^k, squared k times. Overflow gives infinity.
func fExp(x *big.Float) *big.Float {
	if x.Sign() == 0 {
		return floatOf(1)
	}
	e := x.MantExp(nil)
	if e > 30 {
		if x.Sign() < 0 {
			return newFloat()
		}
		return newFloat().SetInf(false)
	}
	k := max(0, e+8)
	y := newFloat().SetMantExp(x, -k)
	s, t := floatOf(1), floatOf(1)
	for n := 1; t.Sign() != 0 && t.MantExp(nil) > -precision-8; n++ {
		t = fQuo(fMul(t, y), floatOf(float64(n)))
		s = fAdd(s, t)
	}
	for ; k > 0; k-- {
		s = fMul(s, s)
	}
	return s
}

// fLog returns ln x for positive x: it solves e^y = x by Newton's method from float64.
func fLog(x *big.Float) (*big.Float, bool) {
	if x.Sign() <= 0 || x.IsInf() {
		return nil, false
	}
	m := newFloat()
	e := x.MantExp(m)
	f, _ := m.Float64()
	y := floatOf(math.Log(f))
	for range 3 { // 53, 106, 212, 424 bits
		q := fMul(m, fExp(newFloat().Neg(y)))
		y = fAdd(y, fMul(floatOf(2), fQuo(fSub(q, floatOf(1)), fAdd(q, floatOf(1)))))
	}
	if e == 0 {
		return y, true
	}
	// ln 2 = -ln(1/2), by the same iteration.
	half := floatOf(0.5)
	ln2 := floatOf(math.Ln2)
	for range 3 {
		q := fMul(half, fExp(ln2))
		ln2 = fSub(ln2, fMul(floatOf(2), fQuo(fSub(q, floatOf(1)), fAdd(q, floatOf(1)))))
	}
	return fAdd(y, fMul(floatOf(float64(e)), ln2)), true
}

// fSinCos reduces to [-π/4, π/4] divided by 2^6 and doubles the angle back.
func fSinCos(x *big.Float) (sin, cos *big.Float, ok bool) {
	if x.Sign() == 0 {
		return newFloat(), floatOf(1), true
	}
	if x.MantExp(nil) > 40 {
		return nil, nil, false // too many bits lost
	}
	half := fQuo(pi256(), floatOf(2))
	q := fQuo(x, half)
	n, _ := q.Float64()
	quadrant := int64(math.Round(n))
	y := fSub(x, fMul(floatOf(float64(quadrant)), half))
	const halvings = 6
	y.SetMantExp(y, -halvings)
	square := fMul(y, y)
	s, t := newFloat().Set(y), newFloat().Set(y)
	for n := 1; t.Sign() != 0 && t.MantExp(nil) > -precision-16; n++ {
		t = fQuo(fMul(t, square), floatOf(float64(-2*n*(2*n+1))))
		s = fAdd(s, t)
	}
	c := newFloat().Sqrt(fSub(floatOf(1), fMul(s, s)))
	for range halvings {
		s, c = fMul(floatOf(2), fMul(s, c)), fSub(floatOf(1), fMul(floatOf(2), fMul(s, s)))
	}
	switch (quadrant%4 + 4) % 4 {
	case 1:
		s, c = c, s.Neg(s)
	case 2:
		s, c = s.Neg(s), c.Neg(c)
	case 3:
		s, c = c.Neg(c), s
	}
	return s, c, true
}

// fAtan solves tan y = x by Newton's method: y += (x cos y - sin y)·cos y / (…), in
// the form y - sin(y-arctan x) ≈ y - (sin y - x cos y)/sqrt(1+x²), which is cubic.
func fAtan(x *big.Float) (*big.Float, bool) {
	f, _ := x.Float64()
	y := floatOf(math.Atan(f))
	root := newFloat().Sqrt(fAdd(floatOf(1), fMul(x, x)))
	if root.IsInf() {
		return nil, false
	}
	for range 3 { // 53, 159, 477 bits
		s, c, ok := fSinCos(y)
		if !ok {
			return nil, false
		}
		y = fSub(y, fQuo(fSub(s, fMul(x, c)), root))
	}
	return y, true
}

// fCall evaluates a function of one real number.
func fCall(name string, x *big.Float) (*big.Float, bool) {
	switch name {
	case "ln":
		return fLog(x)
	case "sin", "cos", "tan", "cot", "sec", "csc":
		return fCircular(name, x)
	case "sinh", "cosh", "tanh":
		return fHyperbolic(name, x)
	case "sech", "csch", "coth":
		y, ok := fHyperbolic(map[string]string{"sech": "cosh", "csch": "sinh", "coth": "tanh"}[name], x)
		if !ok || y.Sign() == 0 || y.MantExp(nil) < -agreeBits {
			return nil, false
		}
		return fQuo(floatOf(1), y), true
	case "arctan":
		return fAtan(x)
	case "arccot":
		y, ok := fAtan(x)
		if !ok {
			return nil, false
		}
		return fSub(fQuo(pi256(), floatOf(2)), y), true
	case "arcsin", "arccos":
		y, ok := fAsin(x)
		if ok && name == "arccos" {
			y = fSub(fQuo(pi256(), floatOf(2)), y)
		}
		return y, ok
	}
	return nil, false
}

// fCircular returns a circular function of x, unless x is too close to a pole.
func fCircular(name string, x *big.Float) (*big.Float, bool) {
	s, c, ok := fSinCos(x)
	if !ok {
		return nil, false
	}
	over := func(a, b *big.Float) (*big.Float, bool) {
		if b.Sign() == 0 || b.MantExp(nil) < -agreeBits {
			return nil, false
		}
		return fQuo(a, b), true
	}
	switch name {
	case "sin":
		return s, true
	case "cos":
		return c, true
	case "tan":
		return over(s, c)
	case "cot":
		return over(c, s)
	case "sec":
		return over(floatOf(1), c)
	}
	return over(floatOf(1), s)
}

// fHyperbolic returns sinh, cosh or tanh of x, unless it leaves the range of floats.
func fHyperbolic(name string, x *big.Float) (*big.Float, bool) {
	p := fExp(x)
	if p.IsInf() || p.Sign() == 0 {
		return nil, false
	}
	q := fQuo(floatOf(1), p)
	switch name {
	case "sinh":
		return fQuo(fSub(p, q), floatOf(2)), true
	case "cosh":
		return fQuo(fAdd(p, q), floatOf(2)), true
	}
	return fQuo(fSub(p, q), fAdd(p, q)), true
}

// fAsin returns arcsin x, for x from -1 to 1.
func fAsin(x *big.Float) (*big.Float, bool) {
	d := fSub(floatOf(1), fMul(x, x))
	switch d.Sign() {
	case -1:
		return nil, false
	case 0:
		y := newFloat().Set(fQuo(pi256(), floatOf(2)))
		if x.Sign() < 0 {
			y.Neg(y)
		}
		return y, true
	}
	return fAtan(fQuo(x, newFloat().Sqrt(d)))
}

package grade

import (
	"math"
	"math/big"
)

// Values at 256 bits, for what float64 cannot tell apart. It covers real functions, and complex numbers
// through the four operations, integer powers and square roots; anything else stays undecided.

const (
	precision = 256
	agreeBits = 180 // values that agree to this many bits count as equal
)

// precise is re + im·i.
type precise struct{ re, im *big.Float }

func newFloat() *big.Float              { return new(big.Float).SetPrec(precision) }
func floatOf(v float64) *big.Float      { return newFloat().SetFloat64(v) }
func fAdd(a, b *big.Float) *big.Float   { return newFloat().Add(a, b) }
func fSub(a, b *big.Float) *big.Float   { return newFloat().Sub(a, b) }
func fMul(a, b *big.Float) *big.Float   { return newFloat().Mul(a, b) }
func fQuo(a, b *big.Float) *big.Float   { return newFloat().Quo(a, b) }
func realPrecise(a *big.Float) precise  { return precise{a, newFloat()} }
func (a precise) isReal() bool          { return a.im.Sign() == 0 }
func (a precise) isZero() bool          { return a.re.Sign() == 0 && a.im.Sign() == 0 }
func (a precise) add(b precise) precise { return precise{fAdd(a.re, b.re), fAdd(a.im, b.im)} }
func (a precise) sub(b precise) precise { return precise{fSub(a.re, b.re), fSub(a.im, b.im)} }

func (a precise) mul(b precise) precise {
	if a.isReal() && b.isReal() {
		return realPrecise(fMul(a.re, b.re))
	}
	return precise{fSub(fMul(a.re, b.re), fMul(a.im, b.im)), fAdd(fMul(a.re, b.im), fMul(a.im, b.re))}
}

func (a precise) inverse() precise {
	d := fAdd(fMul(a.re, a.re), fMul(a.im, a.im))
	return precise{fQuo(a.re, d), newFloat().Neg(fQuo(a.im, d))}
}

// exponent returns the binary exponent of the larger part.
func (a precise) exponent() int {
	e := math.MinInt32
	for _, f := range []*big.Float{a.re, a.im} {
		if f.Sign() != 0 {
			e = max(e, f.MantExp(nil))
		}
	}
	return e
}

func (a precise) infinite() bool { return a.re.IsInf() || a.im.IsInf() }

// agree compares two values to agreeBits of the larger one, or of 1: float64 has already told apart what is
// much smaller than 1.
func (a precise) agree(b precise) bool {
	d := a.sub(b)
	return d.isZero() || d.exponent() <= max(a.exponent(), b.exponent(), 0)-agreeBits
}

// precisely evaluates x at a point.
func (w *budget) precisely(x *expr, p *point) (v precise, ok bool) {
	if !w.spend(4) {
		return v, false
	}
	defer func() { ok = ok && !v.infinite() && (p.complex || v.isReal()) }()
	switch x.op {
	case opNum:
		return realPrecise(newFloat().SetRat(x.num)), true
	case opSym:
		switch x.name {
		case symPi:
			return realPrecise(pi256()), w.spend(20)
		case symE:
			return realPrecise(fExp(floatOf(1))), w.spend(80)
		case symI:
			return precise{newFloat(), floatOf(1)}, true
		}
		r, ok := p.values[x.name]
		if !ok {
			return v, false
		}
		return realPrecise(newFloat().SetRat(r)), true
	case opBase:
		r, ok := w.rational(x)
		if !ok {
			return v, false
		}
		return realPrecise(newFloat().SetRat(r)), true
	case opPercent:
		return w.precisely(product(x.args[0], number(big.NewRat(1, 100))), p)
	case opDegree:
		return w.precisely(inRadians(x), p)
	case opAdd, opMul:
		return w.preciseFold(x, p)
	case opPow:
		return w.precisePower(x, p)
	case opFunc:
		return w.preciseCall(x, p)
	}
	return v, false
}

func (w *budget) preciseFold(x *expr, p *point) (precise, bool) {
	acc, ok := w.precisely(x.args[0], p)
	for _, arg := range x.args[1:] {
		if !ok {
			break
		}
		var a precise
		if a, ok = w.precisely(arg, p); !ok {
			break
		}
		if x.op == opAdd {
			acc = acc.add(a)
		} else {
			acc = acc.mul(a)
		}
	}
	return acc, ok
}

func (w *budget) precisePower(x *expr, p *point) (precise, bool) {
	a, ok := w.precisely(x.args[0], p)
	if !ok {
		return a, false
	}
	exp, rational := w.rational(x.args[1])
	if !rational {
		e, ok := w.precisely(x.args[1], p)
		if !ok || !e.isReal() || !a.isReal() {
			return eulerPower(a, e, x, ok, w)
		}
		if n, ok := smallInteger(e.re); ok {
			exp = new(big.Rat).SetInt64(n)
		} else {
			if a.re.Sign() <= 0 || !w.spend(400) {
				return a, false
			}
			l, ok := fLog(a.re)
			if !ok {
				return a, false
			}
			return realPrecise(fExp(fMul(e.re, l))), true
		}
	}
	if exp.IsInt() {
		return w.preciseInteger(a, exp.Num())
	}
	if !exp.Denom().IsInt64() || exp.Denom().Int64() > 1<<16 {
		return a, false
	}
	root, ok := w.preciseRoot(a, int(exp.Denom().Int64()), p)
	if !ok {
		return a, false
	}
	return w.preciseInteger(root, exp.Num())
}

// smallInteger returns f if it is an integer below 2^40; the Rat of a large float would fill memory.
func smallInteger(f *big.Float) (int64, bool) {
	if !f.IsInt() || f.MantExp(nil) > 40 {
		return 0, false
	}
	n, acc := f.Int64()
	return n, acc == big.Exact
}

// eulerPower returns e^(a+bi), and r^(a+bi) for positive r.
func eulerPower(a, e precise, x *expr, ok bool, w *budget) (precise, bool) {
	if !ok || !a.isReal() || a.re.Sign() <= 0 || !w.spend(900) {
		return a, false
	}
	l, ok := fLog(a.re)
	if !ok {
		return a, false
	}
	size := fExp(fMul(e.re, l))
	angle := fMul(e.im, l)
	s, c, ok := fSinCos(angle)
	if !ok {
		return a, false
	}
	return precise{fMul(size, c), fMul(size, s)}, true
}

func (w *budget) preciseInteger(a precise, n *big.Int) (precise, bool) {
	if n.BitLen() > 40 || !w.spend(2*n.BitLen()) {
		return a, false
	}
	k := n.Int64()
	if k < 0 {
		if a.isZero() {
			return a, false
		}
		a, k = a.inverse(), -k
	}
	acc := realPrecise(floatOf(1))
	for ; k > 0; k >>= 1 {
		if k&1 == 1 {
			acc = acc.mul(a)
		}
		if k > 1 {
			a = a.mul(a)
		}
		if a.infinite() || acc.infinite() {
			return acc, false
		}
	}
	return acc, true
}

// preciseRoot returns the n-th root: real, or the principal square root.
func (w *budget) preciseRoot(a precise, n int, p *point) (precise, bool) {
	if !w.spend(60) {
		return a, false
	}
	if a.isZero() {
		return a, true
	}
	if !a.isReal() {
		if n != 2 {
			return a, false
		}
		size := newFloat().Sqrt(fAdd(fMul(a.re, a.re), fMul(a.im, a.im)))
		half := floatOf(0.5)
		re := newFloat().Sqrt(newFloat().Abs(fMul(half, fAdd(size, a.re))))
		im := newFloat().Sqrt(newFloat().Abs(fMul(half, fSub(size, a.re))))
		if a.im.Sign() < 0 {
			im.Neg(im)
		}
		return precise{re, im}, true
	}
	if a.re.Sign() > 0 {
		r, ok := fRoot(a.re, n)
		return realPrecise(r), ok
	}
	r, ok := fRoot(newFloat().Neg(a.re), n)
	switch {
	case n == 2:
		return precise{newFloat(), r}, ok && p.complex
	case n%2 == 1 && !p.complex:
		return realPrecise(r.Neg(r)), ok
	}
	return a, false
}

// fRoot returns the n-th root of a positive number by Newton's method.
func fRoot(a *big.Float, n int) (*big.Float, bool) {
	if n == 2 {
		return newFloat().Sqrt(a), true
	}
	l, ok := fLog(a)
	if !ok {
		return nil, false
	}
	return fExp(fQuo(l, floatOf(float64(n)))), true
}

func (w *budget) preciseCall(x *expr, p *point) (precise, bool) {
	if r, ok := w.rational(x); ok {
		return realPrecise(newFloat().SetRat(r)), true
	}
	if x.name == "binom" {
		if falling, ok := w.binomial(x); ok {
			return w.precisely(falling, p)
		}
	}
	if len(x.args) != 1 {
		return precise{}, false
	}
	a, ok := w.precisely(x.args[0], p)
	if !ok || !w.spend(200) {
		return a, false
	}
	switch {
	case x.name == "abs":
		if a.isReal() {
			return realPrecise(newFloat().Abs(a.re)), true
		}
		return realPrecise(newFloat().Sqrt(fAdd(fMul(a.re, a.re), fMul(a.im, a.im)))), true
	case x.name == "re":
		return realPrecise(a.re), true
	case x.name == "im":
		return realPrecise(a.im), true
	case x.name == "bar" && p.complex:
		return precise{a.re, newFloat().Neg(a.im)}, true
	case x.name == "fact" && a.isReal():
		if n, ok := smallInteger(a.re); ok {
			if v, ok := w.rational(call("fact", integer(n))); ok {
				return realPrecise(newFloat().SetRat(v)), true
			}
		}
	}
	if !a.isReal() {
		return a, false
	}
	v, ok := fCall(x.name, a.re)
	if !ok || !w.spend(400) {
		return a, false
	}
	return realPrecise(v), true
}

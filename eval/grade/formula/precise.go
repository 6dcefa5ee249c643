package formula

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

// Precise is re + im·i.
type Precise struct{ re, im *big.Float }

func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

func floatOf(v float64) *big.Float { return newFloat().SetFloat64(v) }

func fAdd(a, b *big.Float) *big.Float { return newFloat().Add(a, b) }

func fSub(a, b *big.Float) *big.Float { return newFloat().Sub(a, b) }

func fMul(a, b *big.Float) *big.Float { return newFloat().Mul(a, b) }

func fQuo(a, b *big.Float) *big.Float { return newFloat().Quo(a, b) }

func realPrecise(a *big.Float) Precise { return Precise{a, newFloat()} }

func (a Precise) isReal() bool { return a.im.Sign() == 0 }

func (a Precise) isZero() bool { return a.re.Sign() == 0 && a.im.Sign() == 0 }

func (a Precise) add(b Precise) Precise { return Precise{fAdd(a.re, b.re), fAdd(a.im, b.im)} }

func (a Precise) sub(b Precise) Precise { return Precise{fSub(a.re, b.re), fSub(a.im, b.im)} }

func (a Precise) mul(b Precise) Precise {
	if a.isReal() && b.isReal() {
		return realPrecise(fMul(a.re, b.re))
	}
	return Precise{fSub(fMul(a.re, b.re), fMul(a.im, b.im)), fAdd(fMul(a.re, b.im), fMul(a.im, b.re))}
}

func (a Precise) inverse() Precise {
	d := fAdd(fMul(a.re, a.re), fMul(a.im, a.im))
	return Precise{fQuo(a.re, d), newFloat().Neg(fQuo(a.im, d))}
}

// exponent returns the binary exponent of the larger part.
func (a Precise) exponent() int {
	e := math.MinInt32
	for _, f := range []*big.Float{a.re, a.im} {
		if f.Sign() != 0 {
			e = max(e, f.MantExp(nil))
		}
	}
	return e
}

func (a Precise) infinite() bool { return a.re.IsInf() || a.im.IsInf() }

// Agree compares two values to agreeBits of the larger one, or of 1: float64 has already told apart values
// much smaller than 1.
func (a Precise) Agree(b Precise) bool {
	d := a.sub(b)
	return d.isZero() || d.exponent() <= max(a.exponent(), b.exponent(), 0)-agreeBits
}

// Precisely evaluates x at a point.
func (w *Budget) Precisely(x *Expr, p *Point) (v Precise, ok bool) {
	if !w.Spend(4) {
		return v, false
	}
	defer func() { ok = ok && !v.infinite() && (p.Complex || v.isReal()) }()
	switch x.Op {
	case Num:
		return realPrecise(newFloat().SetRat(x.Num)), true
	case Sym:
		switch x.Name {
		case Pi:
			return realPrecise(pi256()), w.Spend(20)
		case E:
			return realPrecise(fExp(floatOf(1))), w.Spend(80)
		case I:
			return Precise{newFloat(), floatOf(1)}, true
		}
		r, ok := p.Values[x.Name]
		if !ok {
			return v, false
		}
		return realPrecise(newFloat().SetRat(r)), true
	case Base:
		r, ok := w.Rational(x)
		if !ok {
			return v, false
		}
		return realPrecise(newFloat().SetRat(r)), true
	case Percent:
		return w.Precisely(Product(x.Args[0], Number(big.NewRat(1, 100))), p)
	case Degree:
		return w.Precisely(inRadians(x), p)
	case Add, Mul:
		return w.preciseFold(x, p)
	case Pow:
		return w.precisePower(x, p)
	case Func:
		return w.preciseCall(x, p)
	}
	return v, false
}

func (w *Budget) preciseFold(x *Expr, p *Point) (Precise, bool) {
	acc, ok := w.Precisely(x.Args[0], p)
	for _, arg := range x.Args[1:] {
		if !ok {
			break
		}
		var a Precise
		if a, ok = w.Precisely(arg, p); !ok {
			break
		}
		if x.Op == Add {
			acc = acc.add(a)
		} else {
			acc = acc.mul(a)
		}
	}
	return acc, ok
}

func (w *Budget) precisePower(x *Expr, p *Point) (Precise, bool) {
	a, ok := w.Precisely(x.Args[0], p)
	if !ok {
		return a, false
	}
	exp, rational := w.Rational(x.Args[1])
	if !rational {
		e, ok := w.Precisely(x.Args[1], p)
		if !ok || !e.isReal() || !a.isReal() {
			return eulerPower(a, e, x, ok, w)
		}
		if n, ok := smallInteger(e.re); ok {
			exp = new(big.Rat).SetInt64(n)
		} else {
			if a.re.Sign() <= 0 || !w.Spend(400) {
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
func eulerPower(a, e Precise, x *Expr, ok bool, w *Budget) (Precise, bool) {
	if !ok || !a.isReal() || a.re.Sign() <= 0 || !w.Spend(900) {
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
	return Precise{fMul(size, c), fMul(size, s)}, true
}

func (w *Budget) preciseInteger(a Precise, n *big.Int) (Precise, bool) {
	if n.BitLen() > 40 || !w.Spend(2*n.BitLen()) {
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
func (w *Budget) preciseRoot(a Precise, n int, p *Point) (Precise, bool) {
	if !w.Spend(60) {
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
		return Precise{re, im}, true
	}
	if a.re.Sign() > 0 {
		r, ok := fRoot(a.re, n)
		return realPrecise(r), ok
	}
	r, ok := fRoot(newFloat().Neg(a.re), n)
	switch {
	case n == 2:
		return Precise{newFloat(), r}, ok && p.Complex
	case n%2 == 1 && !p.Complex:
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

func (w *Budget) preciseCall(x *Expr, p *Point) (Precise, bool) {
	if r, ok := w.Rational(x); ok {
		return realPrecise(newFloat().SetRat(r)), true
	}
	if x.Name == "binom" {
		if falling, ok := w.binomial(x); ok {
			return w.Precisely(falling, p)
		}
	}
	if x.Name == "max" || x.Name == "min" {
		return w.preciseExtremum(x, p)
	}
	if len(x.Args) != 1 {
		return Precise{}, false
	}
	a, ok := w.Precisely(x.Args[0], p)
	if !ok || !w.Spend(200) {
		return a, false
	}
	switch {
	case x.Name == "abs":
		if a.isReal() {
			return realPrecise(newFloat().Abs(a.re)), true
		}
		return realPrecise(newFloat().Sqrt(fAdd(fMul(a.re, a.re), fMul(a.im, a.im)))), true
	case x.Name == "re":
		return realPrecise(a.re), true
	case x.Name == "im":
		return realPrecise(a.im), true
	case x.Name == "bar" && p.Complex:
		return Precise{a.re, newFloat().Neg(a.im)}, true
	case x.Name == "fact" && a.isReal():
		if n, ok := smallInteger(a.re); ok {
			if v, ok := w.Rational(Call("fact", Integer(n))); ok {
				return realPrecise(newFloat().SetRat(v)), true
			}
		}
	}
	if !a.isReal() {
		return a, false
	}
	v, ok := fCall(x.Name, a.re)
	if !ok || !w.Spend(400) {
		return a, false
	}
	return realPrecise(v), true
}

// preciseExtremum computes max or min of real numbers.
func (w *Budget) preciseExtremum(x *Expr, p *Point) (Precise, bool) {
	var best Precise
	for i, arg := range x.Args {
		a, ok := w.Precisely(arg, p)
		if !ok || !a.isReal() {
			return a, false
		}
		if i == 0 || (a.re.Cmp(best.re) > 0) == (x.Name == "max") {
			best = a
		}
	}
	return best, len(x.Args) > 0
}

package formula

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Canonical computes the form of a scalar expression; it fails if the form would be too large or a
// denominator is zero.
func (b *Budget) Canonical(x *Expr) (Fraction, bool) {
	if !b.Spend(2) {
		return Fraction{}, false
	}
	if v, ok := b.Rational(x); ok {
		return whole(constant(v)), true
	}
	switch x.Op {
	case Sym:
		return whole(atom(x.Name, 1, 1)), x.Name != Infinity
	case Add, Mul:
		return b.canonicalFold(x)
	case Pow:
		return b.canonicalPower(x)
	case Percent:
		return b.Canonical(Product(x.Args[0], Number(big.NewRat(1, 100))))
	case Degree:
		return b.Canonical(inRadians(x))
	case Func:
		return b.canonicalCall(x)
	}
	return Fraction{}, false
}

func inRadians(x *Expr) *Expr {
	return Product(x.Args[0], Symbol(Pi), Number(big.NewRat(1, 180)))
}

func (b *Budget) canonicalFold(x *Expr) (Fraction, bool) {
	acc, ok := b.Canonical(x.Args[0])
	for _, a := range x.Args[1:] {
		if !ok {
			break
		}
		var f Fraction
		if f, ok = b.Canonical(a); !ok {
			break
		}
		if x.Op == Add {
			acc, ok = b.addFraction(acc, f)
		} else {
			acc, ok = b.mulFraction(acc, f)
		}
	}
	return acc, ok
}

func (b *Budget) canonicalCall(x *Expr) (Fraction, bool) {
	if x.Name == "binom" && len(x.Args) == 2 {
		if falling, ok := b.binomial(x); ok {
			return b.Canonical(falling)
		}
	}
	if x.Name == "binom" && len(x.Args) == 2 {
		n, k := x.Args[0], x.Args[1]
		return b.Canonical(Quotient(Call("fact", n), Product(Call("fact", k), Call("fact", Difference(n, k)))))
	}
	parts := make([]string, len(x.Args))
	for i, a := range x.Args {
		f, ok := b.Canonical(a)
		if !ok {
			return Fraction{}, false
		}
		parts[i] = f.key()
	}
	switch x.Name {
	case "gcd", "lcm", "max", "min": // in any order
		slices.Sort(parts)
	}
	return whole(atom(x.Name+"("+strings.Join(parts, ",")+")", 1, 1)), true
}

// binomial writes n over a small k as n(n-1)…(n-k+1)/k!.
func (b *Budget) binomial(x *Expr) (*Expr, bool) {
	v, ok := b.Rational(x.Args[1])
	if !ok {
		return nil, false
	}
	k, ok := SmallNatural(v, 12)
	if !ok {
		return nil, false
	}
	factors := []*Expr{Number(new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).MulRange(1, int64(k))))}
	for i := range k {
		factors = append(factors, Sum(x.Args[0], Integer(int64(-i))))
	}
	return Product(factors...), true
}

func (b *Budget) canonicalPower(x *Expr) (Fraction, bool) {
	base, ok := b.Canonical(x.Args[0])
	if !ok {
		return Fraction{}, false
	}
	exp, rational := b.Rational(x.Args[1])
	if !rational {
		f, ok := b.Canonical(x.Args[1])
		if !ok {
			return Fraction{}, false
		}
		return whole(atom("("+base.key()+")^("+f.key()+")", 1, 1)), true
	}
	if !exp.Num().IsInt64() || !exp.Denom().IsInt64() {
		return Fraction{}, false
	}
	n, d := exp.Num().Int64(), exp.Denom().Int64()
	switch {
	case d == 1:
		return b.integerPower(base, n)
	case d > 1000 || n > 1000 || n < -1000:
		return Fraction{}, false
	}
	if n < 0 {
		f, ok := b.rootPower(base, -n, d)
		return Fraction{f.Den, f.Num}, ok && len(f.Num) > 0
	}
	return b.rootPower(base, n, d)
}

func (b *Budget) integerPower(f Fraction, n int64) (Fraction, bool) {
	if n < 0 {
		f, n = Fraction{f.Den, f.Num}, -n
		if len(f.Den) == 0 {
			return Fraction{}, false
		}
	}
	if n > maxExponent && (len(f.Num) > 1 || len(f.Den) > 1) || n > 1000 {
		return whole(atom("("+f.key()+")", n, 1)), n < 1<<20
	}
	acc, ok := whole(constant(big.NewRat(1, 1))), true
	for square := f; n > 0 && ok; n >>= 1 {
		if n&1 == 1 {
			acc, ok = b.mulFraction(acc, square)
		}
		if n > 1 && ok {
			square, ok = b.mulFraction(square, square)
		}
	}
	return acc, ok
}

// rootPower returns f^(n/d) with d > 1 and n > 0.
func (b *Budget) rootPower(f Fraction, n, d int64) (Fraction, bool) {
	num, ok := f.Num[""]
	den, ok2 := f.Den[""]
	switch {
	case ok && ok2 && len(f.Num) == 1 && len(f.Den) == 1:
		return b.rationalRoot(new(big.Rat).Quo(num.Coef, den.Coef), n, d)
	case len(f.Num) == 1 && f.Den.isOne():
		for _, m := range f.Num {
			// A variable alone: x^(1/2)·x^(1/2) = x wherever the left side is real.
			if len(m.Powers) == 1 && m.Powers[0].Num == 1 && m.Powers[0].Den == 1 &&
				m.Coef.Cmp(big.NewRat(1, 1)) == 0 && m.Powers[0].Atom != I {
				p := m.Powers[0]
				p.Num, p.Den = n, d
				t := Monomial{Coef: big.NewRat(1, 1)}
				t.appendReduced(p)
				return whole(Poly{t.key(): t}), true
			}
		}
	}
	return whole(atom("("+f.key()+")", n, d)), true
}

// rationalRoot splits a positive rational into primes; a factor that trial division cannot split stays one
// atom.
func (b *Budget) rationalRoot(r *big.Rat, n, d int64) (Fraction, bool) {
	if r.Sign() < 0 {
		if d != 2 {
			return whole(atom("("+r.RatString()+")", n, d)), true
		}
		root, ok := b.rationalRoot(new(big.Rat).Neg(r), n, d)
		if !ok {
			return Fraction{}, false
		}
		return b.mulFraction(root, whole(atom(I, n, 1)))
	}
	if r.Sign() == 0 {
		return whole(Poly{}), true
	}
	num, ok := b.primePowers(r.Num(), n, d)
	if !ok {
		return Fraction{}, false
	}
	den, ok := b.primePowers(r.Denom(), n, d)
	return Fraction{num, den}, ok
}

func (b *Budget) primePowers(z *big.Int, n, d int64) (Poly, bool) {
	if !z.IsInt64() {
		if z.BitLen() > maxBits/8 {
			return nil, false
		}
		return atom("("+z.String()+")", n, d), true
	}
	rest := z.Int64()
	t := Monomial{Coef: big.NewRat(1, 1)}
	take := func(p, e int64) bool {
		if e*n > 1<<20 {
			return false
		}
		one := Monomial{Coef: big.NewRat(1, 1)}
		one.appendReduced(PowerOf{Atom: "#" + strconv.FormatInt(p, 10), prime: p, Num: e * n, Den: d})
		var ok bool
		t, ok = mulMonomial(t, one)
		return ok && ratBits(t.Coef) < maxBits
	}
	for p := int64(2); p*p <= rest && p < 3000; p++ {
		e := int64(0)
		for rest%p == 0 {
			rest /= p
			e++
		}
		if e > 0 && !take(p, e) {
			return nil, false
		}
	}
	if rest > 1 && !take(rest, 1) {
		return nil, false
	}
	return Poly{t.key(): t}, b.Spend(40)
}

// SameForm reports whether the canonical forms of x and y agree.
func (b *Budget) SameForm(x, y *Expr) bool {
	f, ok := b.Canonical(x)
	if !ok || len(f.Den) == 0 {
		return false
	}
	g, ok := b.Canonical(y)
	if !ok || len(g.Den) == 0 {
		return false
	}
	left, ok := b.mulPoly(f.Num, g.Den)
	if !ok {
		return false
	}
	right, ok := b.mulPoly(g.Num, f.Den)
	if !ok {
		return false
	}
	d, ok := b.addPoly(left, right, true)
	return ok && len(d) == 0
}

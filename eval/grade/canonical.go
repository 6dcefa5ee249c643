package grade

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// The canonical form of an expression is a quotient of two polynomials with rational coefficients. Atoms
// are variables, π, e, i (i² becomes -1), primes with fractional exponents (√8 is 2·2^(1/2); products of
// such powers are linearly independent over the rationals: Besicovitch 1940), and anything that cannot be
// decomposed, by its own canonical form. Two expressions whose forms agree after cross multiplication are
// equal; the converse is not claimed.

// powerOf is an atom of a monomial with its exponent num/den in lowest terms.
type powerOf struct {
	atom     string
	prime    int64 // the atom is this prime; 0: not a prime
	num, den int64
}

// monomial is coef times the powers, sorted by atom.
type monomial struct {
	coef   *big.Rat
	powers []powerOf
}

// poly maps the key of a monomial's powers to the monomial; coefficients are nonzero.
type poly map[string]monomial

type fraction struct{ num, den poly }

const (
	maxTerms    = 300 // of a polynomial
	maxExponent = 40  // of a sum that gets expanded
)

func (m monomial) key() string {
	var b strings.Builder
	for _, p := range m.powers {
		b.WriteString(p.atom)
		b.WriteByte('^')
		b.WriteString(strconv.FormatInt(p.num, 10))
		if p.den != 1 {
			b.WriteByte('/')
			b.WriteString(strconv.FormatInt(p.den, 10))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func constant(r *big.Rat) poly {
	if r.Sign() == 0 {
		return poly{}
	}
	return poly{"": {coef: r}}
}

func whole(p poly) fraction { return fraction{p, constant(big.NewRat(1, 1))} }

func atom(name string, num, den int64) poly {
	m := monomial{big.NewRat(1, 1), []powerOf{{atom: name, num: num, den: den}}}
	return poly{m.key(): m}
}

// key writes a polynomial with its terms in order.
func (p poly) key() string {
	keys := make([]string, 0, len(p))
	for k, m := range p {
		keys = append(keys, m.coef.RatString()+" "+k)
	}
	slices.Sort(keys)
	return strings.Join(keys, "+")
}

func (f fraction) key() string {
	if f.den.isOne() {
		return f.num.key()
	}
	return "(" + f.num.key() + ")/(" + f.den.key() + ")"
}

func (p poly) isOne() bool {
	m, ok := p[""]
	return ok && len(p) == 1 && m.coef.IsInt() && m.coef.Num().IsInt64() && m.coef.Num().Int64() == 1
}

func (b *budget) addPoly(p, q poly, negate bool) (poly, bool) {
	out := make(poly, len(p)+len(q))
	for k, m := range p {
		out[k] = m
	}
	for k, m := range q {
		c := m.coef
		if negate {
			c = new(big.Rat).Neg(c)
		}
		if have, ok := out[k]; ok {
			if !b.spendOn(have.coef, c) {
				return nil, false
			}
			c = new(big.Rat).Add(have.coef, c)
		}
		if c.Sign() == 0 {
			delete(out, k)
			continue
		}
		out[k] = monomial{c, m.powers}
	}
	return out, len(out) <= maxTerms && b.spend(len(p)+len(q))
}

func (b *budget) mulPoly(p, q poly) (poly, bool) {
	if p.isOne() {
		return q, true
	}
	if q.isOne() {
		return p, true
	}
	out := make(poly, len(p)*len(q))
	for _, m := range p {
		for _, n := range q {
			if !b.spend(4) || !b.spendOn(m.coef, n.coef) {
				return nil, false
			}
			t, ok := mulMonomial(m, n)
			if !ok {
				return nil, false
			}
			k := t.key()
			if have, ok := out[k]; ok {
				t.coef = new(big.Rat).Add(have.coef, t.coef)
			}
			if t.coef.Sign() == 0 {
				delete(out, k)
				continue
			}
			out[k] = t
			if len(out) > maxTerms {
				return nil, false
			}
		}
	}
	return out, true
}

func mulMonomial(m, n monomial) (monomial, bool) {
	t := monomial{coef: new(big.Rat).Mul(m.coef, n.coef), powers: make([]powerOf, 0, len(m.powers)+len(n.powers))}
	i, j := 0, 0
	for i < len(m.powers) || j < len(n.powers) {
		switch {
		case j == len(n.powers) || i < len(m.powers) && m.powers[i].atom < n.powers[j].atom:
			t.powers = append(t.powers, m.powers[i])
			i++
		case i == len(m.powers) || n.powers[j].atom < m.powers[i].atom:
			t.powers = append(t.powers, n.powers[j])
			j++
		default:
			p, q := m.powers[i], n.powers[j]
			p.num, p.den = p.num*q.den+q.num*p.den, p.den*q.den
			if p.den > 1<<20 || p.num > 1<<30 || p.num < -1<<30 {
				return monomial{}, false
			}
			t.appendReduced(p)
			i++
			j++
		}
	}
	return t, true
}

// appendReduced appends a power in normal form; rational parts go into the coefficient.
func (m *monomial) appendReduced(p powerOf) {
	g := gcd(max(p.num, -p.num), p.den)
	p.num, p.den = p.num/g, p.den/g
	switch {
	case p.atom == symI:
		p.num = (p.num%4 + 4) % 4
		if p.num >= 2 {
			m.coef = new(big.Rat).Neg(m.coef)
			p.num -= 2
		}
	case p.prime != 0:
		for p.num >= p.den {
			m.coef = new(big.Rat).Mul(m.coef, big.NewRat(p.prime, 1))
			p.num -= p.den
		}
	}
	if p.num != 0 {
		m.powers = append(m.powers, p)
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}

func (b *budget) mulFraction(f, g fraction) (fraction, bool) {
	num, ok := b.mulPoly(f.num, g.num)
	if !ok {
		return fraction{}, false
	}
	den, ok := b.mulPoly(f.den, g.den)
	return fraction{num, den}, ok
}

func (b *budget) addFraction(f, g fraction) (fraction, bool) {
	if f.den.isOne() && g.den.isOne() {
		num, ok := b.addPoly(f.num, g.num, false)
		return fraction{num, f.den}, ok
	}
	left, ok := b.mulPoly(f.num, g.den)
	if !ok {
		return fraction{}, false
	}
	right, ok := b.mulPoly(g.num, f.den)
	if !ok {
		return fraction{}, false
	}
	num, ok := b.addPoly(left, right, false)
	if !ok {
		return fraction{}, false
	}
	den, ok := b.mulPoly(f.den, g.den)
	return fraction{num, den}, ok
}

// canonical computes the form of a scalar expression; it fails if the form would be too large or a
// denominator is zero.
func (b *budget) canonical(x *expr) (fraction, bool) {
	if !b.spend(2) {
		return fraction{}, false
	}
	if v, ok := b.rational(x); ok {
		return whole(constant(v)), true
	}
	switch x.op {
	case opSym:
		return whole(atom(x.name, 1, 1)), x.name != symInf
	case opAdd, opMul:
		return b.canonicalFold(x)
	case opPow:
		return b.canonicalPower(x)
	case opPercent:
		return b.canonical(product(x.args[0], number(big.NewRat(1, 100))))
	case opDegree:
		return b.canonical(inRadians(x))
	case opFunc:
		return b.canonicalCall(x)
	}
	return fraction{}, false
}

func inRadians(x *expr) *expr {
	return product(x.args[0], symbol(symPi), number(big.NewRat(1, 180)))
}

func (b *budget) canonicalFold(x *expr) (fraction, bool) {
	acc, ok := b.canonical(x.args[0])
	for _, a := range x.args[1:] {
		if !ok {
			break
		}
		var f fraction
		if f, ok = b.canonical(a); !ok {
			break
		}
		if x.op == opAdd {
			acc, ok = b.addFraction(acc, f)
		} else {
			acc, ok = b.mulFraction(acc, f)
		}
	}
	return acc, ok
}

func (b *budget) canonicalCall(x *expr) (fraction, bool) {
	if x.name == "binom" && len(x.args) == 2 {
		if falling, ok := b.binomial(x); ok {
			return b.canonical(falling)
		}
	}
	if x.name == "binom" && len(x.args) == 2 {
		n, k := x.args[0], x.args[1]
		return b.canonical(quotient(call("fact", n), product(call("fact", k), call("fact", difference(n, k)))))
	}
	parts := make([]string, len(x.args))
	for i, a := range x.args {
		f, ok := b.canonical(a)
		if !ok {
			return fraction{}, false
		}
		parts[i] = f.key()
	}
	return whole(atom(x.name+"("+strings.Join(parts, ",")+")", 1, 1)), true
}

// binomial writes n over a small k as n(n-1)…(n-k+1)/k!.
func (b *budget) binomial(x *expr) (*expr, bool) {
	v, ok := b.rational(x.args[1])
	if !ok {
		return nil, false
	}
	k, ok := smallNatural(v, 12)
	if !ok {
		return nil, false
	}
	factors := []*expr{number(new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).MulRange(1, int64(k))))}
	for i := range k {
		factors = append(factors, sum(x.args[0], integer(int64(-i))))
	}
	return product(factors...), true
}

func (b *budget) canonicalPower(x *expr) (fraction, bool) {
	base, ok := b.canonical(x.args[0])
	if !ok {
		return fraction{}, false
	}
	exp, rational := b.rational(x.args[1])
	if !rational {
		f, ok := b.canonical(x.args[1])
		if !ok {
			return fraction{}, false
		}
		return whole(atom("("+base.key()+")^("+f.key()+")", 1, 1)), true
	}
	if !exp.Num().IsInt64() || !exp.Denom().IsInt64() {
		return fraction{}, false
	}
	n, d := exp.Num().Int64(), exp.Denom().Int64()
	switch {
	case d == 1:
		return b.integerPower(base, n)
	case d > 1000 || n > 1000 || n < -1000:
		return fraction{}, false
	}
	if n < 0 {
		f, ok := b.rootPower(base, -n, d)
		return fraction{f.den, f.num}, ok && len(f.num) > 0
	}
	return b.rootPower(base, n, d)
}

func (b *budget) integerPower(f fraction, n int64) (fraction, bool) {
	if n < 0 {
		f, n = fraction{f.den, f.num}, -n
		if len(f.den) == 0 {
			return fraction{}, false
		}
	}
	if n > maxExponent && (len(f.num) > 1 || len(f.den) > 1) || n > 1000 {
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
func (b *budget) rootPower(f fraction, n, d int64) (fraction, bool) {
	num, ok := f.num[""]
	den, ok2 := f.den[""]
	switch {
	case ok && ok2 && len(f.num) == 1 && len(f.den) == 1:
		return b.rationalRoot(new(big.Rat).Quo(num.coef, den.coef), n, d)
	case len(f.num) == 1 && f.den.isOne():
		for _, m := range f.num {
			// A variable alone: x^(1/2)·x^(1/2) = x wherever the left side is real.
			if len(m.powers) == 1 && m.powers[0].num == 1 && m.powers[0].den == 1 &&
				m.coef.Cmp(big.NewRat(1, 1)) == 0 && m.powers[0].atom != symI {
				p := m.powers[0]
				p.num, p.den = n, d
				t := monomial{coef: big.NewRat(1, 1)}
				t.appendReduced(p)
				return whole(poly{t.key(): t}), true
			}
		}
	}
	return whole(atom("("+f.key()+")", n, d)), true
}

// rationalRoot splits a positive rational into primes; a factor that trial division cannot split stays one
// atom.
func (b *budget) rationalRoot(r *big.Rat, n, d int64) (fraction, bool) {
	if r.Sign() < 0 {
		if d != 2 {
			return whole(atom("("+r.RatString()+")", n, d)), true
		}
		root, ok := b.rationalRoot(new(big.Rat).Neg(r), n, d)
		if !ok {
			return fraction{}, false
		}
		return b.mulFraction(root, whole(atom(symI, n, 1)))
	}
	if r.Sign() == 0 {
		return whole(poly{}), true
	}
	num, ok := b.primePowers(r.Num(), n, d)
	if !ok {
		return fraction{}, false
	}
	den, ok := b.primePowers(r.Denom(), n, d)
	return fraction{num, den}, ok
}

func (b *budget) primePowers(z *big.Int, n, d int64) (poly, bool) {
	if !z.IsInt64() {
		if z.BitLen() > maxBits/8 {
			return nil, false
		}
		return atom("("+z.String()+")", n, d), true
	}
	rest := z.Int64()
	t := monomial{coef: big.NewRat(1, 1)}
	take := func(p, e int64) bool {
		if e*n > 1<<20 {
			return false
		}
		one := monomial{coef: big.NewRat(1, 1)}
		one.appendReduced(powerOf{atom: "#" + strconv.FormatInt(p, 10), prime: p, num: e * n, den: d})
		var ok bool
		t, ok = mulMonomial(t, one)
		return ok && ratBits(t.coef) < maxBits
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
	return poly{t.key(): t}, b.spend(40)
}

// sameForm reports whether the canonical forms of x and y agree.
func (b *budget) sameForm(x, y *expr) bool {
	f, ok := b.canonical(x)
	if !ok || len(f.den) == 0 {
		return false
	}
	g, ok := b.canonical(y)
	if !ok || len(g.den) == 0 {
		return false
	}
	left, ok := b.mulPoly(f.num, g.den)
	if !ok {
		return false
	}
	right, ok := b.mulPoly(g.num, f.den)
	if !ok {
		return false
	}
	d, ok := b.addPoly(left, right, true)
	return ok && len(d) == 0
}

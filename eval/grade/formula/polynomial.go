package formula

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

// PowerOf is an atom of a monomial with its exponent num/den in lowest terms.
type PowerOf struct {
	Atom     string
	prime    int64 // the atom is this prime; 0: not a prime
	Num, Den int64
}

// Monomial is coef times the powers, sorted by atom.
type Monomial struct {
	Coef   *big.Rat
	Powers []PowerOf
}

// Poly maps the key of a monomial's powers to the monomial; coefficients are nonzero.
type Poly map[string]Monomial

// Fraction is a quotient of two polynomials.
type Fraction struct{ Num, Den Poly }

const (
	maxTerms    = 300 // of a polynomial
	maxExponent = 40  // of a sum that gets expanded
)

func (m Monomial) key() string {
	var b strings.Builder
	for _, p := range m.Powers {
		b.WriteString(p.Atom)
		b.WriteByte('^')
		b.WriteString(strconv.FormatInt(p.Num, 10))
		if p.Den != 1 {
			b.WriteByte('/')
			b.WriteString(strconv.FormatInt(p.Den, 10))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func constant(r *big.Rat) Poly {
	if r.Sign() == 0 {
		return Poly{}
	}
	return Poly{"": {Coef: r}}
}

func whole(p Poly) Fraction { return Fraction{p, constant(big.NewRat(1, 1))} }

func atom(name string, num, den int64) Poly {
	m := Monomial{big.NewRat(1, 1), []PowerOf{{Atom: name, Num: num, Den: den}}}
	return Poly{m.key(): m}
}

// key writes a polynomial with its terms in order.
func (p Poly) key() string {
	keys := make([]string, 0, len(p))
	for k, m := range p {
		keys = append(keys, m.Coef.RatString()+" "+k)
	}
	slices.Sort(keys)
	return strings.Join(keys, "+")
}

func (f Fraction) key() string {
	if f.Den.isOne() {
		return f.Num.key()
	}
	return "(" + f.Num.key() + ")/(" + f.Den.key() + ")"
}

func (p Poly) isOne() bool {
	m, ok := p[""]
	return ok && len(p) == 1 && m.Coef.IsInt() && m.Coef.Num().IsInt64() && m.Coef.Num().Int64() == 1
}

func (b *Budget) addPoly(p, q Poly, negate bool) (Poly, bool) {
	out := make(Poly, len(p)+len(q))
	for k, m := range p {
		out[k] = m
	}
	for k, m := range q {
		c := m.Coef
		if negate {
			c = new(big.Rat).Neg(c)
		}
		if have, ok := out[k]; ok {
			if !b.spendOn(have.Coef, c) {
				return nil, false
			}
			c = new(big.Rat).Add(have.Coef, c)
		}
		if c.Sign() == 0 {
			delete(out, k)
			continue
		}
		out[k] = Monomial{c, m.Powers}
	}
	return out, len(out) <= maxTerms && b.Spend(len(p)+len(q))
}

func (b *Budget) mulPoly(p, q Poly) (Poly, bool) {
	if p.isOne() {
		return q, true
	}
	if q.isOne() {
		return p, true
	}
	out := make(Poly, len(p)*len(q))
	for _, m := range p {
		for _, n := range q {
			if !b.Spend(4) || !b.spendOn(m.Coef, n.Coef) {
				return nil, false
			}
			t, ok := mulMonomial(m, n)
			if !ok {
				return nil, false
			}
			k := t.key()
			if have, ok := out[k]; ok {
				t.Coef = new(big.Rat).Add(have.Coef, t.Coef)
			}
			if t.Coef.Sign() == 0 {
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

func mulMonomial(m, n Monomial) (Monomial, bool) {
	t := Monomial{Coef: new(big.Rat).Mul(m.Coef, n.Coef), Powers: make([]PowerOf, 0, len(m.Powers)+len(n.Powers))}
	i, j := 0, 0
	for i < len(m.Powers) || j < len(n.Powers) {
		switch {
		case j == len(n.Powers) || i < len(m.Powers) && m.Powers[i].Atom < n.Powers[j].Atom:
			t.Powers = append(t.Powers, m.Powers[i])
			i++
		case i == len(m.Powers) || n.Powers[j].Atom < m.Powers[i].Atom:
			t.Powers = append(t.Powers, n.Powers[j])
			j++
		default:
			p, q := m.Powers[i], n.Powers[j]
			p.Num, p.Den = p.Num*q.Den+q.Num*p.Den, p.Den*q.Den
			if p.Den > 1<<20 || p.Num > 1<<30 || p.Num < -1<<30 {
				return Monomial{}, false
			}
			t.appendReduced(p)
			i++
			j++
		}
	}
	return t, true
}

// appendReduced appends a power in normal form; rational parts go into the coefficient.
func (m *Monomial) appendReduced(p PowerOf) {
	g := gcd(max(p.Num, -p.Num), p.Den)
	p.Num, p.Den = p.Num/g, p.Den/g
	switch {
	case p.Atom == I:
		p.Num = (p.Num%4 + 4) % 4
		if p.Num >= 2 {
			m.Coef = new(big.Rat).Neg(m.Coef)
			p.Num -= 2
		}
	case p.prime != 0:
		for p.Num >= p.Den {
			m.Coef = new(big.Rat).Mul(m.Coef, big.NewRat(p.prime, 1))
			p.Num -= p.Den
		}
	}
	if p.Num != 0 {
		m.Powers = append(m.Powers, p)
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}

func (b *Budget) mulFraction(f, g Fraction) (Fraction, bool) {
	num, ok := b.mulPoly(f.Num, g.Num)
	if !ok {
		return Fraction{}, false
	}
	den, ok := b.mulPoly(f.Den, g.Den)
	return Fraction{num, den}, ok
}

func (b *Budget) addFraction(f, g Fraction) (Fraction, bool) {
	if f.Den.isOne() && g.Den.isOne() {
		num, ok := b.addPoly(f.Num, g.Num, false)
		return Fraction{num, f.Den}, ok
	}
	left, ok := b.mulPoly(f.Num, g.Den)
	if !ok {
		return Fraction{}, false
	}
	right, ok := b.mulPoly(g.Num, f.Den)
	if !ok {
		return Fraction{}, false
	}
	num, ok := b.addPoly(left, right, false)
	if !ok {
		return Fraction{}, false
	}
	den, ok := b.mulPoly(f.Den, g.Den)
	return Fraction{num, den}, ok
}

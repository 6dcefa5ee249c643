package grade

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"exp/eval/grade/formula"
)

// Inequalities in one variable that are solved: rational functions with rational coefficients whose numerator and
// denominator split into factors of degree one and two, and absolute values, logarithms, powers of constants and roots
// against constants.

const (
	maxDegree      = 6
	maxCoefficient = 1_000_000 // of the polynomials whose rational roots are looked for
)

// solve returns where l rel r holds.
func (c *comparer) solve(l *formula.Expr, rel string, r *formula.Expr) ([]piece, bool) {
	vars := formula.Variables(l, r)
	if len(vars) != 1 || !l.IsScalar() || !r.IsScalar() || !c.Spend(20) {
		return nil, false
	}
	if isAbs(r) && len(formula.Variables(l)) == 0 {
		l, r, rel = r, l, flip(rel)
	}
	if isAbs(l) && len(formula.Variables(r)) == 0 {
		return c.solveAbsolute(l.Args[0], rel, r)
	}
	if l.Has(formula.IsImaginary) || r.Has(formula.IsImaginary) {
		return nil, false
	}
	if list, ok := c.solveLinear(l, rel, r, vars[0]); ok {
		return list, true
	}
	f, ok := c.Canonical(formula.Difference(l, r))
	if !ok {
		return nil, false
	}
	num, ok := coefficients(f.Num, vars[0])
	den, ok2 := coefficients(f.Den, vars[0])
	if !ok || !ok2 {
		return c.solveMonotone(l, rel, r)
	}
	zeros, ok := c.realRoots(num)
	poles, ok2 := c.realRoots(den)
	if !ok || !ok2 {
		return nil, false
	}
	return signPieces(num, den, zeros, poles, rel)
}

// solveLinear solves ax + b rel r, where r is an irrational number and a and b are rational.
func (c *comparer) solveLinear(l *formula.Expr, rel string, r *formula.Expr, v string) ([]piece, bool) {
	if len(formula.Variables(r)) > 0 {
		l, r, rel = r, l, flip(rel)
	}
	if _, ok := c.Rational(r); ok || len(formula.Variables(r)) > 0 {
		return nil, false
	}
	f, ok := c.Canonical(l)
	if !ok || len(f.Den) != 1 {
		return nil, false
	}
	den, ok := f.Den[""]
	p, ok2 := coefficients(f.Num, v)
	if !ok || !ok2 || len(p) != 2 {
		return nil, false
	}
	a, b := new(big.Rat).Quo(p[1], den.Coef), new(big.Rat).Quo(p[0], den.Coef)
	if a.Sign() < 0 {
		rel = flip(rel)
	}
	e, ok := c.end(formula.Quotient(formula.Difference(r, formula.Number(b)), formula.Number(a)))
	if !ok {
		return nil, false
	}
	return halfLine(rel, e)
}

func isAbs(x *formula.Expr) bool {
	return x.Op == formula.Func && x.Name == "abs" && len(formula.Variables(x)) == 1
}

// solveAbsolute solves |u| rel e.
func (c *comparer) solveAbsolute(u *formula.Expr, rel string, e *formula.Expr) ([]piece, bool) {
	end, ok := c.end(e)
	if !ok || end.expr == nil || end.v < 0 {
		return nil, false
	}
	a, ok := c.solve(u, rel, e)
	b, ok2 := c.solve(u, flip(rel), formula.Negative(e))
	if !ok || !ok2 {
		return nil, false
	}
	switch rel {
	case "<", "<=", "!=":
		return intersect(a, b), true
	case ">", ">=":
		return merge(append(a, b...)), true
	}
	return nil, false
}

// coefficients returns the rational coefficients of a polynomial in one variable, lowest degree first.
func coefficients(p formula.Poly, v string) ([]*big.Rat, bool) {
	out := make([]*big.Rat, maxDegree+1)
	for i := range out {
		out[i] = new(big.Rat)
	}
	for _, m := range p {
		switch {
		case len(m.Powers) == 0:
			out[0] = m.Coef
		case len(m.Powers) == 1 && m.Powers[0].Atom == v && m.Powers[0].Den == 1 && m.Powers[0].Num > 0 &&
			m.Powers[0].Num <= maxDegree:
			out[m.Powers[0].Num] = m.Coef
		default:
			return nil, false
		}
	}
	return trimmed(out), true
}

func trimmed(p []*big.Rat) []*big.Rat {
	for len(p) > 0 && p[len(p)-1].Sign() == 0 {
		p = p[:len(p)-1]
	}
	return p
}

// realRoots returns the different real roots of a polynomial as end points in order.
func (c *comparer) realRoots(p []*big.Rat) ([]endpoint, bool) {
	var roots []endpoint
	add := func(x *formula.Expr) bool {
		e, ok := c.end(x)
		if ok && !slices.ContainsFunc(roots, func(r endpoint) bool { return near(r.v, e.v) }) {
			roots = append(roots, e)
		}
		return ok
	}
	for len(p) > 3 {
		r, ok := c.rationalRoot1(p)
		if !ok {
			return nil, false
		}
		if !add(formula.Number(r)) {
			return nil, false
		}
		p = divideOut(p, r)
	}
	switch len(p) {
	case 0:
		return nil, false // zero everywhere
	case 2:
		if !add(formula.Number(new(big.Rat).Neg(new(big.Rat).Quo(p[0], p[1])))) {
			return nil, false
		}
	case 3:
		a, b := formula.Number(p[2]), formula.Number(p[1])
		disc := new(big.Rat).Mul(p[1], p[1])
		disc.Sub(disc, new(big.Rat).Mul(big.NewRat(4, 1), new(big.Rat).Mul(p[2], p[0])))
		if disc.Sign() < 0 {
			break
		}
		if disc.Sign() == 0 {
			if !add(formula.Number(new(big.Rat).Quo(p[1], new(big.Rat).Mul(big.NewRat(-2, 1), p[2])))) {
				return nil, false
			}
			break
		}
		for _, sign := range []int64{-1, 1} {
			top := formula.Sum(formula.Negative(b), formula.Product(formula.Integer(sign),
				formula.Root(formula.Number(disc))))
			if !add(formula.Quotient(top, formula.Product(formula.Integer(2), a))) {
				return nil, false
			}
		}
	}
	slices.SortFunc(roots, func(a, b endpoint) int { return cmp.Compare(a.v, b.v) })
	return roots, true
}

// rationalRoot1 finds a rational root by trying the divisors of the outer coefficients.
func (c *comparer) rationalRoot1(p []*big.Rat) (*big.Rat, bool) {
	if p[0].Sign() == 0 {
		return new(big.Rat), true
	}
	scale := new(big.Int).Set(p[0].Denom())
	for _, a := range p[1:] {
		g := new(big.Int).GCD(nil, nil, scale, a.Denom())
		scale.Mul(scale, new(big.Int).Quo(a.Denom(), g))
	}
	first := new(big.Rat).Mul(p[0], new(big.Rat).SetInt(scale))
	last := new(big.Rat).Mul(p[len(p)-1], new(big.Rat).SetInt(scale))
	low, high := first.Num(), last.Num()
	if !low.IsInt64() || !high.IsInt64() {
		return nil, false
	}
	a, b := max(low.Int64(), -low.Int64()), max(high.Int64(), -high.Int64())
	if a > maxCoefficient || b > 1000 {
		return nil, false
	}
	for n := int64(1); n*n <= a; n++ {
		if a%n != 0 {
			continue
		}
		for d := int64(1); d <= b; d++ {
			if b%d != 0 {
				continue
			}
			for _, r := range [...]*big.Rat{big.NewRat(n, d), big.NewRat(-n, d), big.NewRat(a/n, d),
				big.NewRat(-a/n, d)} {
				if !c.Spend(2) {
					return nil, false
				}
				if valueAt(p, r).Sign() == 0 {
					return r, true
				}
			}
		}
	}
	return nil, false
}

// valueAt evaluates by Horner's scheme.
func valueAt(p []*big.Rat, x *big.Rat) *big.Rat {
	v := new(big.Rat)
	for i := len(p) - 1; i >= 0; i-- {
		v.Add(v.Mul(v, x), p[i])
	}
	return v
}

// divideOut divides by x - r.
func divideOut(p []*big.Rat, r *big.Rat) []*big.Rat {
	out := make([]*big.Rat, len(p)-1)
	carry := new(big.Rat)
	for i := len(p) - 1; i > 0; i-- {
		carry = new(big.Rat).Add(p[i], new(big.Rat).Mul(carry, r))
		out[i-1] = carry
	}
	return trimmed(out)
}

// signPieces tests the sign of num/den between its zeros and poles.
func signPieces(num, den []*big.Rat, zeros, poles []endpoint, rel string) ([]piece, bool) {
	ends := append(slices.Clone(zeros), poles...)
	slices.SortFunc(ends, func(a, b endpoint) int { return cmp.Compare(a.v, b.v) })
	ends = slices.CompactFunc(ends, func(a, b endpoint) bool { return near(a.v, b.v) })
	holds := func(sign int) bool {
		switch rel {
		case "<", "<=":
			return sign < 0 || sign == 0 && rel == "<="
		case ">", ">=":
			return sign > 0 || sign == 0 && rel == ">="
		}
		return rel == "!=" && sign != 0
	}
	if !slices.Contains([]string{"<", "<=", ">", ">=", "!="}, rel) {
		return nil, false
	}
	var out []piece
	for i := 0; i <= len(ends); i++ {
		p := everything()
		if i > 0 {
			p.lo, p.loExpr = ends[i-1].v, ends[i-1].expr
		}
		if i < len(ends) {
			p.hi, p.hiExpr = ends[i].v, ends[i].expr
		}
		at := new(big.Rat)
		if at.SetFloat64(between(p.lo, p.hi)) == nil {
			return nil, false
		}
		if holds(valueAt(num, at).Sign() * valueAt(den, at).Sign()) {
			out = append(out, p)
		}
		if i == len(ends) || !holds(0) {
			continue
		}
		e := ends[i]
		if !slices.ContainsFunc(poles, func(pole endpoint) bool { return near(pole.v, e.v) }) {
			out = append(out, piece{e.v, e.v, e.expr, e.expr, true, true})
		}
	}
	return merge(out), true
}

// between returns a number between two ends; one may be infinite.
func between(lo, hi float64) float64 {
	switch {
	case math.IsInf(lo, -1) && math.IsInf(hi, 1):
		return 0
	case math.IsInf(lo, -1):
		return hi - 1 - math.Abs(hi)
	case math.IsInf(hi, 1):
		return lo + 1 + math.Abs(lo)
	}
	return lo + (hi-lo)/2
}

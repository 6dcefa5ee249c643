package grade

import (
	"math"
	"math/big"
	"slices"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// scalars compares two numbers or functions of variables, including percentages and angles.
func (c *comparer) scalars(g, p *formula.Expr) result {
	if !g.IsScalar() || !p.IsScalar() {
		return no(describe(p) + " against " + describe(g))
	}
	if g.Op == formula.Base || p.Op == formula.Base {
		return c.bases(g, p)
	}
	same := sameConstant(g, p)
	r := c.values(g, same)
	if r.equal {
		return r
	}
	if q, ok := c.naturals(g, same); ok && (q.equal || !r.sure) {
		return q
	}
	if c.upToConstant(g, same) {
		return yes("the same up to the constant of integration").by(Convention)
	}
	if g.Has(isArccot) != p.Has(isArccot) {
		if q := c.values(withoutArccot(g), withoutArccot(p)); q.equal {
			q.why += ", with arccot x as arctan 1/x"
			return q.by(Convention)
		}
	}
	if g.Has(isOpenLog) || p.Has(isOpenLog) {
		if q := c.values(toBaseTen(g), toBaseTen(p)); q.equal {
			q.why += ", with log to the base 10"
			return q.by(Convention)
		}
	}
	g, p = signInside(g), signInside(p)
	gp, pp := g.Op == formula.Percent, p.Op == formula.Percent
	gd, pd := g.Op == formula.Degree, p.Op == formula.Degree
	switch {
	case gp && pd, gd && pp:
		return no("per cent against degrees")
	case gp && !pp, pp && !gp && c.isAtLeastOne(g):
		if q := c.values(inner(g), inner(p)); q.equal {
			q.why += "; only one side has a per cent sign"
			return q.by(Convention)
		}
	case gd != pd:
		if q := c.values(inner(g), inner(p)); q.equal {
			q.why += "; only one side has a degree sign"
			return q.by(Convention)
		}
	}
	if q, ok := c.rounded(inner(g), inner(p), gp == pp && gd == pd); ok {
		return q
	}
	return r
}

// sameConstant renames the constant of integration of p to the C of g: x^2 + K is x^2 + C.
func sameConstant(g, p *formula.Expr) *formula.Expr {
	vars := formula.Variables(g)
	if !hasTerm(g, "C") || len(vars) != 2 {
		return p
	}
	for _, name := range []string{"K", "c", "k", "C_1", "c_1"} {
		if hasTerm(p, name) && !slices.Contains(vars, name) && !slices.Contains(formula.Variables(p), "C") {
			return formula.Rename(p, name, "C")
		}
	}
	return p
}

func hasTerm(x *formula.Expr, name string) bool {
	return x.Op == formula.Add && slices.ContainsFunc(x.Args, func(a *formula.Expr) bool {
		return a.Op == formula.Sym && a.Name == name
	})
}

// signInside writes -(5°) as (-5)°.
func signInside(x *formula.Expr) *formula.Expr {
	if x.Op != formula.Mul || len(x.Args) != 2 || x.Args[0].Op != formula.Num ||
		x.Args[1].Op != formula.Degree && x.Args[1].Op != formula.Percent {
		return x
	}
	y := *x.Args[1]
	y.Args = slices.Clone(y.Args)
	y.Args[0] = formula.Product(x.Args[0], y.Args[0])
	return &y
}

func isOpenLog(x *formula.Expr) bool { return x.OpenBase }

// toBaseTen writes log x, which is ln x otherwise, as the logarithm to the base 10.
func toBaseTen(x *formula.Expr) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if !y.OpenBase || len(y.Args) == 0 {
			return y
		}
		y.OpenBase = false
		return formula.Quotient(y, formula.Call("ln", formula.Integer(10)))
	})
}

func isArccot(x *formula.Expr) bool { return x.Op == formula.Func && x.Name == "arccot" }

// withoutArccot writes arccot x as arctan 1/x, which is another function for negative x; both are in use.
func withoutArccot(x *formula.Expr) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if !isArccot(y) || len(y.Args) == 0 {
			return y
		}
		return formula.Call("arctan", formula.Power(y.Args[0], formula.Integer(-1)))
	})
}

func inner(x *formula.Expr) *formula.Expr {
	if x.Op == formula.Percent || x.Op == formula.Degree {
		return x.Args[0]
	}
	return x
}

func (c *comparer) isAtLeastOne(x *formula.Expr) bool {
	v, ok := c.Rational(x)
	return ok && v.Cmp(big.NewRat(1, 1)) >= 0
}

// bases compares numbers if at least one is written in a base. 25_6 equals 17, but the answer to "write 17
// in base 6" is 25, not 17. A base that only the gold answer names is implied by the question.
func (c *comparer) bases(g, p *formula.Expr) result {
	if g.Op == formula.Base && p.Op == formula.Base {
		return c.values(g, p)
	}
	b, other := g, p
	if p.Op == formula.Base {
		b, other = p, g
	}
	if formula.HasPrefix(b) || b.Args[0].Num.Cmp(big.NewRat(10, 1)) == 0 {
		return c.values(g, p)
	}
	if b == p {
		return no("only the answer names a base")
	}
	if other.Op == formula.Num && !other.Decimal && other.Num.IsInt() && other.Num.Num().String() == b.Name {
		return yes("equal digits; only one side names the base").by(Convention)
	}
	return no("not the digits in that base")
}

// values compares by exact arithmetic, by canonical form, and at points: float64 with error bounds proves a
// difference, 256 bits count two values as equal.
func (c *comparer) values(g, p *formula.Expr) result {
	if g.Has(isEndless) || p.Has(isEndless) {
		if c.SameForm(g, p) {
			return yes("the same canonical form")
		}
		return c.structure(g, p)
	}
	if g.IsInfinite() || p.IsInfinite() {
		if c.signless(g) == c.signless(p) {
			return yes("the same infinity")
		}
		return no("infinite against another value")
	}
	if equal, ok := c.SameFactorials(g, p); ok {
		if equal {
			return yes("equal products of factorials")
		}
		return no("different products of factorials")
	}
	a, ok := c.Rational(g)
	b, ok2 := c.Rational(p)
	if ok && ok2 {
		if a.Cmp(b) == 0 {
			return yes("equal rational numbers")
		}
		return no("different rational numbers")
	}
	vars := formula.Variables(g, p)
	at := formula.Points(vars, g.Has(formula.IsImaginary) || p.Has(formula.IsImaginary))
	valid := at[:0:0]
	for i := range at {
		x, ok := c.Evaluate(g, &at[i])
		if !ok {
			continue
		}
		y, ok := c.Evaluate(p, &at[i])
		if !ok {
			continue
		}
		if d := formula.Ball.Size(formula.Ball{V: x.V - y.V}); d > 1.01*(x.R+y.R) {
			return no("different values")
		}
		valid = append(valid, at[i])
	}
	if c.SameForm(g, p) {
		return yes("the same canonical form")
	}
	if len(vars) > 0 && len(valid) < 3 && !(len(vars) == 0 && len(valid) == 1) {
		return c.structure(g, p)
	}
	return c.agreement(g, p, vars, valid)
}

// isEndless reports whether x is a sum, a product, an integral or a limit whose bounds are infinite. Its value is not
// computed.
func isEndless(x *formula.Expr) bool {
	return x.Op == formula.Func && len(x.Args) > 1 &&
		slices.ContainsFunc(x.Args[1:], func(a *formula.Expr) bool { return a.IsInfinite() })
}

// agreement compares at 256 bits at the points where both sides have a value.
func (c *comparer) agreement(g, p *formula.Expr, vars []string, at []formula.Point) result {
	if len(vars) == 0 {
		at = []formula.Point{{Complex: g.Has(formula.IsImaginary) || p.Has(formula.IsImaginary)}}
	}
	decided := 0
	for i := range at {
		x, ok := c.Precisely(g, &at[i])
		if !ok {
			continue
		}
		y, ok := c.Precisely(p, &at[i])
		if !ok {
			continue
		}
		if !x.Agree(y) {
			return no("different values at 256 bits")
		}
		if decided++; decided == 4 {
			break
		}
	}
	switch {
	case decided >= 3, decided == 1 && len(vars) == 0:
		return yes("equal values to 180 bits")
	}
	if c.sameRounding(g, p, vars) {
		return yes("equal values at rational numbers").by(Convention)
	}
	return c.structure(g, p)
}

// sameRounding compares formulas that round a variable, such as ⌊x+1⌋, at rational numbers, where they have exact
// values.
func (c *comparer) sameRounding(g, p *formula.Expr, vars []string) bool {
	if len(vars) == 0 || len(vars) > 3 || !g.Has(isRounding) && !p.Has(isRounding) {
		return false
	}
	at := append(formula.Points(vars, false), naturalPoints(vars)...)
	for i := range at {
		a, ok := c.Rational(formula.Substitute(g, &at[i]))
		b, ok2 := c.Rational(formula.Substitute(p, &at[i]))
		if !ok || !ok2 || a.Cmp(b) != 0 {
			return false
		}
	}
	return true
}

// structure is the last resort: equal trees are equal, others stay undecided.
func (c *comparer) structure(g, p *formula.Expr) result {
	if g.String() == p.String() {
		return yes("the same expression")
	}
	return unsure("not decided: no values to compare")
}

// signless normalises infinite expressions: +∞ becomes ∞.
func (c *comparer) signless(x *formula.Expr) string {
	if x.Op == formula.Sym {
		return x.Name
	}
	if x.Op == formula.Mul && len(x.Args) == 2 && x.Args[1].Op == formula.Sym {
		if v, ok := c.Rational(x.Args[0]); ok && v.Sign() != 0 {
			if v.Sign() < 0 {
				return "-" + x.Args[1].Name
			}
			return x.Args[1].Name
		}
	}
	return x.String()
}

// minDecimals is the fewest digits after the point with which a decimal answers a question whose exact answer
// differs: Math-Verify's default.
const minDecimals = 6

// rounded accepts a decimal with at least minDecimals digits after the point if the other side, rounded or
// truncated to as many digits, equals it. Of two such decimals the one with fewer digits is the rounded
// one. Decimals with 15 or more digits come from float64 and are allowed its error.
func (c *comparer) rounded(g, p *formula.Expr, sameSign bool) (result, bool) {
	if !sameSign || len(formula.Variables(g, p)) > 0 {
		return result{}, false
	}
	short, long, places := eligible(g), eligible(p), 0
	switch {
	case short == nil && long == nil:
		return result{}, false
	case short == nil, long != nil && long.Decimals < short.Decimals:
		places = long.Decimals
		g, p = p, g
		short, long = long, short
	default:
		places = short.Decimals
	}
	at := formula.Point{Complex: g.Has(formula.IsImaginary) || p.Has(formula.IsImaginary)}
	a, ok := c.Evaluate(g, &at)
	b, ok2 := c.Evaluate(p, &at)
	if !ok || !ok2 {
		return result{}, false
	}
	unit := math.Pow10(-places)
	if exact := c.atDecimals(g, p, short, places); exact && short.Digits < 15 {
		return result{}, false // 1 rounded to six places is not 0.999999
	}
	d := (formula.Ball{V: a.V - b.V}).Size()
	if d <= unit/2*1.0001 || d < unit*1.0001 && a.Size() < b.Size() && (long == nil || long.Decimals > places) ||
		short.Digits >= 15 && d <= 4e-15*a.Size() {
		return yes("equal when rounded to the decimals that are given").by(Convention), true
	}
	return result{}, false
}

// atDecimals reports whether the other side differs from its own value at that many places.
func (c *comparer) atDecimals(g, p, short *formula.Expr, places int) bool {
	other := p
	if literal(p) == short {
		other = g
	}
	v, ok := c.Rational(other)
	if !ok || places > 60 {
		return false
	}
	return new(big.Rat).Mul(v, new(big.Rat).SetInt(latex.TenTo(places))).IsInt()
}

// eligible returns the decimal that x is if it has enough digits to be a rounded value.
func eligible(x *formula.Expr) *formula.Expr {
	lit := literal(x)
	if lit == nil || !lit.Decimal || lit.Decimals < minDecimals && lit.Digits < 15 || lit.Digits < 4 {
		return nil
	}
	return lit
}

// literal returns the number that x is, with its sign, or nil.
func literal(x *formula.Expr) *formula.Expr {
	switch x.Op {
	case formula.Num:
		return x
	case formula.Mul:
		if len(x.Args) == 2 && x.Args[0].Op == formula.Num && x.Args[0].Num.Cmp(big.NewRat(-1, 1)) == 0 {
			return literal(x.Args[1])
		}
	}
	return nil
}

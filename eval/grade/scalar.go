package grade

import (
	"math"
	"math/big"
)

// scalars compares two numbers or functions of variables, including percentages and angles.
func (c *comparer) scalars(g, p *expr) result {
	if !g.isScalar() || !p.isScalar() {
		return no(describe(p) + " against " + describe(g))
	}
	if g.op == opBase || p.op == opBase {
		return c.bases(g, p)
	}
	r := c.values(g, p)
	if r.equal {
		return r
	}
	if g.has(isArccot) != p.has(isArccot) {
		if q := c.values(withoutArccot(g), withoutArccot(p)); q.equal {
			q.why += ", with arccot x as arctan 1/x"
			return q
		}
	}
	gp, pp := g.op == opPercent, p.op == opPercent
	gd, pd := g.op == opDegree, p.op == opDegree
	switch {
	case gp && pd, gd && pp:
		return no("per cent against degrees")
	case gp && !pp, pp && !gp && c.isAtLeastOne(g):
		if q := c.values(inner(g), inner(p)); q.equal {
			q.why += "; only one side has a per cent sign"
			return q
		}
	case gd != pd:
		if q := c.values(inner(g), inner(p)); q.equal {
			q.why += "; only one side has a degree sign"
			return q
		}
	}
	if q, ok := c.rounded(inner(g), inner(p), gp == pp && gd == pd); ok {
		return q
	}
	return r
}

func isArccot(x *expr) bool { return x.op == opFunc && x.name == "arccot" }

// withoutArccot writes arccot x as arctan 1/x, which is another function for negative x; both are in use.
func withoutArccot(x *expr) *expr {
	if len(x.args) == 0 {
		return x
	}
	y := *x
	y.args = make([]*expr, len(x.args))
	for i, a := range x.args {
		y.args[i] = withoutArccot(a)
	}
	if isArccot(x) {
		return call("arctan", power(y.args[0], integer(-1)))
	}
	return &y
}

func inner(x *expr) *expr {
	if x.op == opPercent || x.op == opDegree {
		return x.args[0]
	}
	return x
}

func (c *comparer) isAtLeastOne(x *expr) bool {
	v, ok := c.rational(x)
	return ok && v.Cmp(big.NewRat(1, 1)) >= 0
}

// bases compares numbers if at least one is written in a base. 25_6 equals 17, but the answer to "write 17
// in base 6" is 25, not 17.
func (c *comparer) bases(g, p *expr) result {
	if g.op == opBase && p.op == opBase {
		return c.values(g, p)
	}
	b, other := g, p
	if p.op == opBase {
		b, other = p, g
	}
	if hasPrefix(b) {
		return c.values(g, p)
	}
	if other.op == opNum && !other.decimal && other.num.IsInt() && other.num.Num().String() == b.name {
		return yes("equal digits; only one side names the base")
	}
	return no("not the digits in that base")
}

// hasPrefix reports whether the base was written as in 0b1101, which programs print for the number itself.
func hasPrefix(x *expr) bool { return len(x.name) > 2 && x.name[0] == '0' && isLetter(x.name[1]) }

// values compares by exact arithmetic, by canonical form, and at points: float64 with error bounds proves a
// difference, 256 bits count two values as equal.
func (c *comparer) values(g, p *expr) result {
	if g.isInfinite() || p.isInfinite() {
		if c.signless(g) == c.signless(p) {
			return yes("the same infinity")
		}
		return no("infinite against another value")
	}
	a, ok := c.rational(g)
	b, ok2 := c.rational(p)
	if ok && ok2 {
		if a.Cmp(b) == 0 {
			return yes("equal rational numbers")
		}
		return no("different rational numbers")
	}
	vars := variables(g, p)
	at := points(vars, g.has(isImaginary) || p.has(isImaginary))
	valid := at[:0:0]
	for i := range at {
		x, ok := c.evaluate(g, &at[i])
		if !ok {
			continue
		}
		y, ok := c.evaluate(p, &at[i])
		if !ok {
			continue
		}
		if d := ball.size(ball{v: x.v - y.v}); d > 1.01*(x.r+y.r) {
			return no("different values")
		}
		valid = append(valid, at[i])
	}
	if c.sameForm(g, p) {
		return yes("the same canonical form")
	}
	if len(vars) > 0 && len(valid) < 3 && !(len(vars) == 0 && len(valid) == 1) {
		return c.structure(g, p)
	}
	return c.agreement(g, p, vars, valid)
}

// agreement compares at 256 bits at the points where both sides have a value.
func (c *comparer) agreement(g, p *expr, vars []string, at []point) result {
	if len(vars) == 0 {
		at = []point{{complex: g.has(isImaginary) || p.has(isImaginary)}}
	}
	decided := 0
	for i := range at {
		x, ok := c.precisely(g, &at[i])
		if !ok {
			continue
		}
		y, ok := c.precisely(p, &at[i])
		if !ok {
			continue
		}
		if !x.agree(y) {
			return no("different values at 256 bits")
		}
		if decided++; decided == 4 {
			break
		}
	}
	switch {
	case decided >= 3, decided == 1 && len(vars) == 0:
		return yes("equal values to 180 bits")
	case len(at) >= 3 && decided == 0:
		return c.structure(g, p)
	}
	return c.structure(g, p)
}

// structure is the last resort: equal trees are equal, others stay undecided.
func (c *comparer) structure(g, p *expr) result {
	if g.String() == p.String() {
		return yes("the same expression")
	}
	return unsure("not decided: no values to compare")
}

// signless normalises infinite expressions: +∞ becomes ∞.
func (c *comparer) signless(x *expr) string {
	if x.op == opSym {
		return x.name
	}
	if x.op == opMul && len(x.args) == 2 && x.args[1].op == opSym {
		if v, ok := c.rational(x.args[0]); ok && v.Sign() != 0 {
			if v.Sign() < 0 {
				return "-" + x.args[1].name
			}
			return x.args[1].name
		}
	}
	return x.String()
}

// minDecimals is the number of digits after the point from which a decimal may answer a question with
// another exact answer: Math-Verify's default.
const minDecimals = 6

// rounded accepts a decimal with at least minDecimals digits after the point if the other side, rounded or
// truncated to as many digits, equals it. Of two such decimals the one with fewer digits is the rounded
// one. Decimals with 15 or more digits come from float64 and are allowed its error.
func (c *comparer) rounded(g, p *expr, sameSign bool) (result, bool) {
	if !sameSign || len(variables(g, p)) > 0 {
		return result{}, false
	}
	short, long, places := eligible(g), eligible(p), 0
	switch {
	case short == nil && long == nil:
		return result{}, false
	case short == nil, long != nil && long.decimals < short.decimals:
		places = long.decimals
		g, p = p, g
		short, long = long, short
	default:
		places = short.decimals
	}
	at := point{complex: g.has(isImaginary) || p.has(isImaginary)}
	a, ok := c.evaluate(g, &at)
	b, ok2 := c.evaluate(p, &at)
	if !ok || !ok2 {
		return result{}, false
	}
	unit := math.Pow10(-places)
	if exact := c.atDecimals(g, p, short, places); exact && short.digits < 15 {
		return result{}, false // 1 rounded to six places is not 0.999999
	}
	d := (ball{v: a.v - b.v}).size()
	if d <= unit/2*1.0001 || d < unit*1.0001 && a.size() < b.size() && (long == nil || long.decimals > places) ||
		short.digits >= 15 && d <= 4e-15*a.size() {
		return yes("equal when rounded to the decimals that are given"), true
	}
	return result{}, false
}

// atDecimals reports whether the other side differs from its own value at that many places.
func (c *comparer) atDecimals(g, p, short *expr, places int) bool {
	other := p
	if literal(p) == short {
		other = g
	}
	v, ok := c.rational(other)
	if !ok || places > 60 {
		return false
	}
	return new(big.Rat).Mul(v, new(big.Rat).SetInt(tenTo(places))).IsInt()
}

// eligible returns the decimal that x is if it has enough digits to be a rounded value.
func eligible(x *expr) *expr {
	lit := literal(x)
	if lit == nil || !lit.decimal || lit.decimals < minDecimals && lit.digits < 15 || lit.digits < 4 {
		return nil
	}
	return lit
}

// literal returns the number that x is, with its sign, or nil.
func literal(x *expr) *expr {
	switch x.op {
	case opNum:
		return x
	case opMul:
		if len(x.args) == 2 && x.args[0].op == opNum && x.args[0].num.Cmp(big.NewRat(-1, 1)) == 0 {
			return literal(x.args[1])
		}
	}
	return nil
}

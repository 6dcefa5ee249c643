package grade

import (
	"math/big"

	"exp/eval/grade/formula"
)

// solveMonotone returns where l rel r holds, if one side is a constant and the other a logarithm, a power of a
// constant or a root of something that solve can compare with a constant: \log_2(x-1) ≤ 3, 2^x > 8, \sqrt{x} < 3.
func (c *comparer) solveMonotone(l *formula.Expr, rel string, r *formula.Expr) ([]piece, bool) {
	if len(formula.Variables(l)) == 0 {
		l, r, rel = r, l, flip(rel)
	}
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > 40 || len(formula.Variables(r)) > 0 || rel == "!=" {
		return nil, false
	}
	switch {
	case l.Op == formula.Add || l.Op == formula.Mul:
		return c.solveIsolated(l, rel, r)
	case isLogarithm(l):
		return c.solveWhere(l.Args[0], ">", rel, formula.Power(formula.Symbol(formula.E), r))
	case l.Op == formula.Pow && len(formula.Variables(l.Args[0])) == 0:
		return c.solveExponential(l.Args[0], l.Args[1], rel, r)
	case l.Op == formula.Pow && len(formula.Variables(l.Args[1])) == 0:
		return c.solveRoot(l, rel, r)
	}
	return nil, false
}

func isLogarithm(x *formula.Expr) bool {
	return x.Op == formula.Func && x.Name == "ln" && len(x.Args) == 1 && len(formula.Variables(x)) == 1
}

// solveIsolated moves the constant terms or factors of l to the other side, if only one has variables.
func (c *comparer) solveIsolated(l *formula.Expr, rel string, r *formula.Expr) ([]piece, bool) {
	var varying *formula.Expr
	var constant []*formula.Expr
	for _, a := range l.Args {
		switch {
		case len(formula.Variables(a)) == 0:
			constant = append(constant, a)
		case varying != nil:
			return nil, false
		default:
			varying = a
		}
	}
	if varying == nil || len(constant) == 0 {
		return nil, false
	}
	if l.Op == formula.Add {
		return c.solve(varying, rel, formula.Difference(r, formula.Sum(constant...)))
	}
	factor := formula.ProductOf(constant)
	e, ok := c.end(factor)
	if !ok || e.expr == nil || e.v == 0 {
		return nil, false
	}
	if e.v < 0 {
		rel = flip(rel)
	}
	return c.solve(varying, rel, formula.Quotient(r, factor))
}

// solveWhere returns where u rel r holds and u is positive, or not negative.
func (c *comparer) solveWhere(u *formula.Expr, positive, rel string, r *formula.Expr) ([]piece, bool) {
	a, ok := c.solve(u, rel, r)
	b, ok2 := c.solve(u, positive, formula.Integer(0))
	if !ok || !ok2 {
		return nil, false
	}
	return intersect(a, b), true
}

// solveExponential solves base^u rel r.
func (c *comparer) solveExponential(base, u *formula.Expr, rel string, r *formula.Expr) ([]piece, bool) {
	b, ok := c.end(base)
	e, ok2 := c.end(r)
	switch {
	case !ok || !ok2 || b.expr == nil || e.expr == nil || b.v <= 0 || near(b.v, 1):
		return nil, false
	case e.v <= 0 && (rel == ">" || rel == ">="):
		return []piece{everything()}, true
	case e.v <= 0:
		return nil, true
	case b.v < 1:
		rel = flip(rel)
	}
	return c.solve(u, rel, formula.Quotient(formula.Call("ln", r), formula.Call("ln", base)))
}

// solveRoot solves u^(1/n) rel r.
func (c *comparer) solveRoot(l *formula.Expr, rel string, r *formula.Expr) ([]piece, bool) {
	u := l.Args[0]
	exp, ok := c.Rational(l.Args[1])
	e, ok2 := c.end(r)
	if !ok || !ok2 || e.expr == nil || exp.Num().Cmp(big.NewInt(1)) != 0 || exp.IsInt() || !exp.Denom().IsInt64() ||
		exp.Denom().Int64() > 20 {
		return nil, false
	}
	n := exp.Denom().Int64()
	power := formula.Power(r, formula.Integer(n))
	switch {
	case n%2 == 1:
		return c.solve(u, rel, power)
	case e.v < 0 && (rel == ">" || rel == ">="):
		return c.solve(u, ">=", formula.Integer(0))
	case e.v < 0:
		return nil, true
	}
	return c.solveWhere(u, ">=", rel, power)
}

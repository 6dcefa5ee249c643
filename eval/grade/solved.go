package grade

import (
	"slices"

	"exp/eval/grade/formula"
)

// solveEachOther reports whether two equations in the same variables, each solved for one of them, have the same
// solutions: y = \log_2 x and x = 2^y. The solutions of a solved equation are the graph of its right side, and all
// of it satisfies the other.
func (c *comparer) solveEachOther(g, p *formula.Expr) bool {
	return slices.Equal(formula.Variables(g), formula.Variables(p)) && c.satisfies(g, p) && c.satisfies(p, g)
}

// satisfies reports whether an equation gives a variable a value that always satisfies another equation.
func (c *comparer) satisfies(solved, other *formula.Expr) bool {
	for i, name := range solved.Args {
		value := solved.Args[1-i]
		if name.Op != formula.Sym || !slices.Contains(formula.Variables(name), name.Name) ||
			slices.Contains(formula.Variables(value), name.Name) {
			continue
		}
		if c.holds(replaced(other.Args[0], name.Name, value), replaced(other.Args[1], name.Name, value), value) {
			return true
		}
	}
	return false
}

// holds reports whether two sides are equal wherever a value exists, where both must exist too: x = \sqrt{x^2} does
// not hold where x is any number.
func (c *comparer) holds(left, right, value *formula.Expr) bool {
	const enough = 4
	valid := 0
	for _, at := range formula.Points(formula.Variables(left, right, value), value.Has(formula.IsImaginary)) {
		if _, ok := c.Evaluate(value, &at); !ok {
			continue
		}
		a, ok := c.Evaluate(left, &at)
		b, ok2 := c.Evaluate(right, &at)
		if !ok || !ok2 || (formula.Ball{V: a.V - b.V}).Size() > 1.01*(a.R+b.R) {
			return false
		}
		valid++
	}
	if valid < enough {
		return false
	}
	r := c.values(left, right)
	return r.equal && r.sure
}

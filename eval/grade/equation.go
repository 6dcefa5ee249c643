package grade

import (
	"slices"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// multiples compares l = r by l - r: two equations agree if one is a multiple of the other, two
// inequalities if the factor also has the right sign.
func (c *comparer) multiples(g, p *formula.Expr) result {
	for _, x := range []*formula.Expr{g, p} {
		if !x.Args[0].IsScalar() || !x.Args[1].IsScalar() || x.Rels[0] == "in" || x.Rels[0] == "->" {
			if g.Rels[0] == p.Rels[0] {
				return c.inOrder(g.Args, p.Args)
			}
			return differ(g.Rels[0], p.Rels[0])
		}
	}
	a, b := formula.Difference(g.Args[0], g.Args[1]), formula.Difference(p.Args[0], p.Args[1])
	sameSign := g.Rels[0] == p.Rels[0]
	if !sameSign && flip(g.Rels[0]) != p.Rels[0] {
		return differ(g.Rels[0], p.Rels[0])
	}
	if u, v := formula.Variables(a), formula.Variables(b); isAnyName(u) && len(v) == 1 { // at least 7
		a = formula.Rename(a, latex.AnyName, v[0])
	} else if isAnyName(v) && len(u) == 1 {
		b = formula.Rename(b, latex.AnyName, u[0])
	}
	vars := formula.Variables(a, b)
	if len(vars) == 0 {
		return unsure("a relation between numbers")
	}
	if !slices.Equal(formula.Variables(a), formula.Variables(b)) && len(formula.Variables(a)) != 0 &&
		len(formula.Variables(b)) != 0 &&
		len(formula.Variables(a)) == len(formula.Variables(b)) {
		if !slices.ContainsFunc(formula.Variables(a),
			func(v string) bool { return slices.Contains(formula.Variables(b), v) }) {
			return no("other variables")
		}
	}
	for _, at := range formula.Points(vars, a.Has(formula.IsImaginary) || b.Has(formula.IsImaginary)) {
		va, ok := c.Evaluate(a, &at)
		vb, ok2 := c.Evaluate(b, &at)
		if !ok || !ok2 || va.Size() <= 4*va.R || vb.Size() <= 4*vb.R {
			continue
		}
		positive := real(va.V/vb.V) > 0
		if g.Rels[0] != "=" && g.Rels[0] != "!=" && positive != sameSign {
			return no("the inequality points the other way")
		}
		ka, kb := formula.Substitute(a, &at), formula.Substitute(b, &at)
		r := c.scalars(formula.Product(a, kb), formula.Product(b, ka))
		if r.equal {
			r.why = "one is a multiple of the other"
		} else if r.sure {
			r = unsure("not multiples of each other")
			r.sure = g.Rels[0] == "=" && polynomialDegreeOne(a, b)
		}
		return r
	}
	return unsure("no point to compare at")
}

// polynomialDegreeOne is a weak test: without products of variables and powers, relations that are not
// multiples have different solutions.
func polynomialDegreeOne(list ...*formula.Expr) bool {
	for _, x := range list {
		if x.Has(func(n *formula.Expr) bool {
			return n.Op == formula.Pow && len(formula.Variables(n)) > 0 || n.Op == formula.Func
		}) {
			return false
		}
	}
	return true
}

// differ returns the verdict on two signs that are not the same. Some write ⊂ for a subset that may be the whole set,
// others for a strict one.
func differ(gold, answer string) result {
	for _, both := range [][]string{{"⊂", "⊆", "⊊"}, {"⊃", "⊇", "⊋"}} {
		for _, sign := range []string{answer, flip(answer)} {
			if (gold == both[0] || sign == both[0]) && slices.Contains(both, gold) && slices.Contains(both, sign) {
				return unsure("a subset that may be strict or not")
			}
		}
	}
	return no("the relations differ")
}

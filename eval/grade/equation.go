package grade

import "slices"

// multiples compares l = r by l - r: two equations agree if one is a multiple of the other, two
// inequalities if the factor also has the right sign.
func (c *comparer) multiples(g, p *expr) result {
	for _, x := range []*expr{g, p} {
		if !x.args[0].isScalar() || !x.args[1].isScalar() || x.rels[0] == "in" || x.rels[0] == "->" {
			if g.rels[0] == p.rels[0] {
				return c.inOrder(g.args, p.args)
			}
			return no("the relations differ")
		}
	}
	a, b := difference(g.args[0], g.args[1]), difference(p.args[0], p.args[1])
	sameSign := g.rels[0] == p.rels[0]
	if !sameSign && flip(g.rels[0]) != p.rels[0] {
		return no("the relations differ")
	}
	if u, v := variables(a), variables(b); isAnyName(u) && len(v) == 1 { // at least 7
		a = rename(a, anyName, v[0])
	} else if isAnyName(v) && len(u) == 1 {
		b = rename(b, anyName, u[0])
	}
	vars := variables(a, b)
	if len(vars) == 0 {
		return unsure("a relation between numbers")
	}
	if !slices.Equal(variables(a), variables(b)) && len(variables(a)) != 0 && len(variables(b)) != 0 &&
		len(variables(a)) == len(variables(b)) {
		if !slices.ContainsFunc(variables(a), func(v string) bool { return slices.Contains(variables(b), v) }) {
			return no("other variables")
		}
	}
	for _, at := range points(vars, a.has(isImaginary) || b.has(isImaginary)) {
		va, ok := c.evaluate(a, &at)
		vb, ok2 := c.evaluate(b, &at)
		if !ok || !ok2 || va.size() <= 4*va.r || vb.size() <= 4*vb.r {
			continue
		}
		positive := real(va.v/vb.v) > 0
		if g.rels[0] != "=" && g.rels[0] != "!=" && positive != sameSign {
			return no("the inequality points the other way")
		}
		ka, kb := substitute(a, &at), substitute(b, &at)
		r := c.scalars(product(a, kb), product(b, ka))
		if r.equal {
			r.why = "one is a multiple of the other"
		} else if r.sure {
			r = result{false, false, "not multiples of each other"}
			r.sure = g.rels[0] == "=" && polynomialDegreeOne(a, b)
		}
		return r
	}
	return unsure("no point to compare at")
}

// polynomialDegreeOne is a weak test: without products of variables and powers, relations that are not
// multiples have different solutions.
func polynomialDegreeOne(list ...*expr) bool {
	for _, x := range list {
		if x.has(func(n *expr) bool { return n.op == opPow && len(variables(n)) > 0 || n.op == opFunc }) {
			return false
		}
	}
	return true
}

func isImaginary(x *expr) bool { return x.op == opSym && x.name == symI }

// substitute replaces variables by their values at a point.
func substitute(x *expr, p *point) *expr {
	if x.op == opSym {
		if v, ok := p.values[x.name]; ok {
			return number(v)
		}
		return x
	}
	if len(x.args) == 0 {
		return x
	}
	y := *x
	y.args = make([]*expr, len(x.args))
	for i, a := range x.args {
		y.args[i] = substitute(a, p)
	}
	return &y
}

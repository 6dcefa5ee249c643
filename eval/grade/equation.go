package grade

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

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
		} else if g.Rels[0] == "=" && c.cleared(a, b) {
			return yes("the same equation without denominators")
		} else if g.Rels[0] == "=" && c.solveEachOther(g, p) {
			return yes("the same equation, solved for another variable")
		} else if r.sure {
			r = unsure("not multiples of each other")
			r.sure = g.Rels[0] == "=" && polynomialDegreeOne(a, b)
		}
		return r
	}
	if g.Rels[0] == "=" && c.solveEachOther(g, p) {
		return yes("the same equation, solved for another variable")
	}
	return unsure("no point to compare at")
}

// cleared reports whether a = 0 and b = 0 are the same polynomial equation after multiplying by their denominators,
// which are not zero where the equation holds: y = 6/x is xy = 6.
func (c *comparer) cleared(a, b *formula.Expr) bool {
	f, ok := c.Canonical(a)
	h, ok2 := c.Canonical(b)
	if !ok || !ok2 || len(f.Num) == 0 || len(f.Num) != len(h.Num) || !clearable(f) || !clearable(h) {
		return false
	}
	var ratio *big.Rat
	for key, m := range f.Num {
		n, ok := h.Num[key]
		if !ok {
			return false
		}
		q := new(big.Rat).Quo(n.Coef, m.Coef)
		if ratio == nil {
			ratio = q
		}
		if q.Cmp(ratio) != 0 {
			return false
		}
	}
	return true
}

// clearable reports whether the denominator has no common zero with the numerator. Both must be polynomials in the
// variables, and the denominator a product of variables or linear in one of them.
func clearable(f formula.Fraction) bool {
	roots := map[string]*big.Rat{}
	linear := new(big.Rat)
	for _, poly := range []formula.Poly{f.Num, f.Den} {
		for _, m := range poly {
			for _, p := range m.Powers {
				if (p.Den != 1 || p.Num < 0 || p.Num > 20) && !isConstant(p.Atom) ||
					strings.ContainsAny(p.Atom, "(^") {
					return false
				}
			}
		}
	}
	for _, m := range f.Den {
		for _, p := range m.Powers {
			if !isConstant(p.Atom) {
				roots[p.Atom] = new(big.Rat)
			}
			if len(m.Powers) == 1 && p.Num == 1 {
				linear.Set(m.Coef)
			}
		}
	}
	switch len(f.Den) {
	case 1:
	case 2:
		c, ok := f.Den[""]
		if !ok || len(roots) != 1 || linear.Sign() == 0 {
			return false
		}
		for v := range roots {
			roots[v] = new(big.Rat).Neg(new(big.Rat).Quo(c.Coef, linear))
		}
	default:
		return false
	}
	for v, root := range roots {
		if !constantAt(f.Num, v, root) {
			return false
		}
	}
	return true
}

// constantAt reports whether a polynomial is a number other than 0 where v has a value.
func constantAt(p formula.Poly, v string, value *big.Rat) bool {
	rest := map[string]*big.Rat{} // coefficients by the other powers
	open := map[string]bool{}     // powers of a variable
	for _, m := range p {
		coef, key, variable := new(big.Rat).Set(m.Coef), "", false
		for _, power := range m.Powers {
			if power.Atom != v {
				key += power.Atom + "^" + strconv.FormatInt(power.Num, 10) + " "
				variable = variable || !isConstant(power.Atom)
				continue
			}
			for range power.Num {
				coef.Mul(coef, value)
			}
		}
		if rest[key] == nil {
			rest[key] = new(big.Rat)
		}
		rest[key].Add(rest[key], coef)
		open[key] = variable
	}
	constants := 0
	for key, coef := range rest {
		switch {
		case coef.Sign() == 0:
		case open[key]:
			return false
		default:
			constants++
		}
	}
	return constants == 1
}

// isConstant reports whether an atom of a polynomial is π, e, i or a prime.
func isConstant(atom string) bool {
	return atom == formula.Pi || atom == formula.E || atom == formula.I || atom[0] == '#'
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

package grade

import (
	"slices"

	"exp/eval/grade/formula"
)

// Solutions with a parameter: x = 2kπ, k ∈ ℤ; (t, -t), t ∈ ℝ. The name of the parameter does not matter, nor does its
// sign or where it starts.

// integers is the name of ℤ.
const integers = "𝔹Z"

// parameter splits values, k ∈ ℤ into the values and the name.
func parameter(x *formula.Expr) (values *formula.Expr, name string) {
	n := len(x.Args) - 1
	if x.Op != formula.List || n < 1 {
		return x, ""
	}
	last := x.Args[n]
	if last.Op != formula.Relation || len(last.Args) != 2 || last.Rels[0] != "in" || last.Args[0].Op != formula.Sym ||
		last.Args[1].Op != formula.Sym || last.Args[1].Name != integers && last.Args[1].Name != formula.Reals {
		return x, ""
	}
	if n == 1 {
		return x.Args[0], last.Args[0].Name
	}
	y := *x
	y.Args = x.Args[:n]
	return &y, last.Args[0].Name
}

// withoutRealName drops x ∈ ℝ after an inequality in x, which says that already.
func withoutRealName(x *formula.Expr) *formula.Expr {
	values, name := parameter(x)
	isName := func(a *formula.Expr) bool { return a.Op == formula.Sym && a.Name == name }
	if name != "" && x.Args[len(x.Args)-1].Args[1].Name == formula.Reals && isInequality(values) &&
		slices.ContainsFunc(values.Args, isName) {
		return values
	}
	return x
}

// families compares two answers if at least one has an integer parameter; ok is false if none has.
func (c *comparer) families(g, p *formula.Expr) (r result, ok bool) {
	if a, b := withoutRealName(g), withoutRealName(p); a != g || b != p {
		return c.same(a, b), true
	}
	gv, gn := parameter(g)
	pv, pn := parameter(p)
	switch {
	case gn == "" && pn == "":
		return result{}, false
	case gn == "" && g.Has(hasModulus) && p.Args[len(p.Args)-1].Args[1].Name == integers: // x = 3k + 1, k ∈ ℤ
		return c.same(g, pv), true
	case gn == "":
		gn = pn
	case pn == "":
		pn = gn
	}
	if !slices.Contains(formula.Variables(gv), gn) || !slices.Contains(formula.Variables(pv), pn) {
		return unsure("a parameter that the values do not have"), true
	}
	k := formula.Symbol(gn)
	for _, sign := range []int64{1, -1} {
		for _, start := range []int64{0, 1, -1, 2, -2} {
			shifted := formula.Sum(formula.Product(formula.Integer(sign), k), formula.Integer(start))
			if sign == 1 && start == 0 {
				shifted = k
			}
			if q := c.same(gv, replaced(pv, pn, shifted)); q.equal {
				return q, true
			}
		}
	}
	return unsure("not the same values for each integer"), true
}

// replaced puts an expression for a variable.
func replaced(x *formula.Expr, name string, by *formula.Expr) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if y.Op == formula.Sym && y.Name == name {
			return by
		}
		return y
	})
}

// occurrences counts where a variable stands.
func occurrences(x *formula.Expr, name string) (n int) {
	formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if y.Op == formula.Sym && y.Name == name {
			n++
		}
		return y
	})
	return n
}

// upToConstant compares two integrals whose difference does not depend on the variable: the constant C takes it up.
func (c *comparer) upToConstant(g, p *formula.Expr) bool {
	vars := formula.Variables(g, p)
	if !hasTerm(g, "C") || !hasTerm(p, "C") || len(vars) != 2 || len(formula.Variables(p)) != 2 ||
		occurrences(g, "C") != 1 || occurrences(p, "C") != 1 { // not 2RC + C
		return false
	}
	x := vars[0]
	if x == "C" {
		x = vars[1]
	}
	zero := formula.Integer(0)
	d := formula.Difference(replaced(g, "C", zero), replaced(p, "C", zero))
	r := c.values(d, replaced(d, x, formula.Integer(1)))
	return r.equal && r.sure
}

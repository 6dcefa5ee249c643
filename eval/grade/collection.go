package grade

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade/formula"
)

// collections compares lists, tuples, sets and sets of real numbers.
func (c *comparer) collections(g, p *formula.Expr) result {
	if r, ok := c.regions(g, p); ok {
		return r
	}
	g, p = byName(g, p), byName(p, g)
	g, p = oneName(g, p), oneName(p, g)
	gi, gok := elements(g)
	pi, pok := elements(p)
	switch {
	case isMixedWithAnd(g) && p.IsScalar():
		return c.same(formula.Sum(g.Args...), p)
	case isMixedWithAnd(p) && g.IsScalar():
		return c.same(g, formula.Sum(p.Args...))
	case c.unsolved(g) || c.unsolved(p):
		return c.setOperations(g, p)
	case !gok || !pok:
		return no(fmt.Sprintf("%s against %s", describe(p), describe(g)))
	case g.Has(isSetOfOne) != p.Has(isSetOfOne) && (g.Op == formula.List || p.Op == formula.List):
		return no("sets against their elements")
	case len(gi) != len(pi) && g.Op != formula.Set && p.Op != formula.Set:
		return no(fmt.Sprintf("%d values against %d", len(pi), len(gi)))
	case len(gi) > maxList || len(pi) > maxList:
		return unsure("too many values")
	case !slices.ContainsFunc(gi, isPercent) && hasPercentAmong(pi):
		return no("only some values have a per cent sign")
	case g.Op == formula.Tuple && p.Op == formula.Tuple:
		if (g.Open != p.Open || g.Close != p.Close) && len(gi) == 2 {
			return no("the brackets differ")
		}
		if g.Open != p.Open || g.Close != p.Close {
			return c.inOrder(gi, pi).and(likely("the brackets differ"))
		}
		return c.tuples(gi, pi)
	case g.Op == formula.Tuple && p.Op == formula.Set || g.Op == formula.Set && p.Op == formula.Tuple:
		return no("a tuple is not a set")
	case alternatives(g) || alternatives(p):
		if g.Op == formula.Tuple || p.Op == formula.Tuple {
			return no("values of one name are not a pair")
		}
	case g.Op == formula.Tuple || p.Op == formula.Tuple:
		if isInterval(g) || g.Op == formula.Tuple && g.Open == '[' && len(gi) == 2 || isInterval(p) {
			return no("an interval is not a list")
		}
		return c.inOrder(gi, pi).by(Convention)
	}
	if p.Op == formula.List && namesDiffer(g) && !p.Has(isEquation) { // x = 1, y = 2 gives a list its order
		return c.inOrder(sortedByName(g).Args, pi)
	}
	if slices.ContainsFunc(append(gi[:len(gi):len(gi)], pi...), formula.IsSet) {
		outer := c.inSet
		c.inSet = true
		defer func() { c.inSet = outer }()
	}
	return c.anyOrder(gi, pi)
}

// parameters are letters for a number that a solution chooses: (k, k, 2k) for any k.
var parameters = []string{"k", "n", "m", "t"}

// tuples compares two tuples. If each has one variable, a parameter, its name does not matter.
func (c *comparer) tuples(g, p []*formula.Expr) result {
	r := c.inOrder(g, p)
	a, b := formula.Variables(g...), formula.Variables(p...)
	if r.equal || len(a) != 1 || len(b) != 1 || a[0] == b[0] || !slices.Contains(parameters, a[0]) ||
		!slices.Contains(parameters, b[0]) || len(g) != len(p) {
		return r
	}
	renamed := make([]*formula.Expr, len(p))
	for i, x := range p {
		renamed[i] = formula.Rename(x, b[0], a[0])
	}
	q := c.inOrder(g, renamed)
	q.why += "; the parameter has another name"
	return q.by(Convention)
}

// isInterval reports whether brackets of two kinds make x an interval.
func isInterval(x *formula.Expr) bool {
	return x.Op == formula.Tuple && x.Open != x.Close-1 && x.Open != '['
}

// isMixedWithAnd reports whether x is "1 and 1/4", a whole number and a proper fraction.
func isMixedWithAnd(x *formula.Expr) bool {
	if x.Op != formula.List || x.Name != "and" || len(x.Args) != 2 || !formula.IsNatural(x.Args[0]) {
		return false
	}
	f := x.Args[1]
	return f.Op == formula.Mul && len(f.Args) == 2 && formula.IsNatural(f.Args[0]) && f.Args[1].Op == formula.Pow &&
		formula.IsNatural(f.Args[1].Args[0]) && f.Args[0].Num.Cmp(f.Args[1].Args[0].Num) < 0
}

// byName sorts x = 1, y = 2 by the names on the left if the other side is a tuple without names.
func byName(x, other *formula.Expr) *formula.Expr {
	if x.Op != formula.List || other.Op != formula.Tuple || other.Has(isEquation) || !isNamed(x) {
		return x
	}
	names := ""
	for _, a := range x.Args {
		names += a.Args[0].Name
	}
	if names == "xyzw" { // the usual order of four
		return x
	}
	return sortedByName(x)
}

// oneName writes x_1 = 3, x_2 = 5 as x = 3, x = 5 if the other side is such a list.
func oneName(x, other *formula.Expr) *formula.Expr {
	if len(x.Args) < 2 || x.Op != formula.List || !isNamed(x) || namesDiffer(x) || other.Op != formula.List ||
		!other.Has(isEquation) || !alternatives(other) {
		return x
	}
	y := *x
	y.Args = slices.Clone(x.Args)
	for i, a := range x.Args {
		name, _, _ := strings.Cut(a.Args[0].Name, "_")
		b := *a
		b.Args = []*formula.Expr{formula.Symbol(name), a.Args[1]}
		y.Args[i] = &b
	}
	return &y
}

func isEquation(x *formula.Expr) bool { return x.Op == formula.Relation }

// isNamed reports whether every element of a list is an equation for another name.
func isNamed(x *formula.Expr) bool {
	for i, a := range x.Args {
		if a.Op != formula.Relation || len(a.Args) != 2 || a.Rels[0] != "=" || a.Args[0].Op != formula.Sym ||
			i > 0 && slices.ContainsFunc(x.Args[:i],
				func(b *formula.Expr) bool { return b.Args[0].Name == a.Args[0].Name }) {
			return false
		}
	}
	return true
}

// namesDiffer reports whether a list gives values to names that differ by more than a subscript: x_1 and x_2 are
// solutions in any order.
func namesDiffer(x *formula.Expr) bool {
	if x.Op != formula.List || len(x.Args) < 2 || !isNamed(x) {
		return false
	}
	first, _, _ := strings.Cut(x.Args[0].Args[0].Name, "_")
	return slices.ContainsFunc(x.Args, func(a *formula.Expr) bool {
		name, _, _ := strings.Cut(a.Args[0].Name, "_")
		return name != first
	})
}

func sortedByName(x *formula.Expr) *formula.Expr {
	y := *x
	y.Args = slices.Clone(x.Args)
	slices.SortStableFunc(y.Args, func(a, b *formula.Expr) int {
		return strings.Compare(a.Args[0].Name, b.Args[0].Name)
	})
	return &y
}

// alternatives reports whether x lists values that one name may have, as in x = 1 or x = 2.
func alternatives(x *formula.Expr) bool {
	if x.Op != formula.List {
		return false
	}
	if x.Name == "or" {
		return true
	}
	for i, a := range x.Args {
		if a.Op != formula.Relation || a.Rels[0] != "=" || i > 0 && a.Args[0].String() != x.Args[0].Args[0].String() {
			return false
		}
	}
	return true
}

// elements returns the elements of a list, tuple or set. A scalar is a list of one.
func elements(x *formula.Expr) ([]*formula.Expr, bool) {
	switch x.Op {
	case formula.List, formula.Set, formula.Tuple:
		return continuedTo(x.Args), true
	case formula.Union, formula.Intersection, formula.Without:
		return nil, false
	case formula.Sym:
		if x.Name == formula.Empty {
			return nil, true
		}
	}
	return []*formula.Expr{x}, x.IsScalar()
}

// continuedTo writes out the integers that 1, 2, …, 10 stands for.
func continuedTo(list []*formula.Expr) []*formula.Expr {
	n := len(list)
	if n < 3 || list[n-2].Op != formula.Sym || list[n-2].Name != "…" {
		return list
	}
	values := make([]int64, 0, n-1)
	for _, x := range append(list[:n-2:n-2], list[n-1]) {
		if x.Op != formula.Num || !x.Num.IsInt() || !x.Num.Num().IsInt64() {
			return list
		}
		values = append(values, x.Num.Num().Int64())
	}
	step, last := int64(1), values[n-2]
	if n > 3 {
		step = values[1] - values[0]
	}
	for i := range n - 3 {
		if values[i+1]-values[i] != step {
			return list
		}
	}
	first := values[n-3]
	if step == 0 || (last-first)%step != 0 || (last-first)/step < 1 || (last-first)/step > maxList {
		return list
	}
	out := slices.Clone(list[:n-2])
	for v := first + step; v != last; v += step {
		out = append(out, formula.Integer(v))
	}
	return append(out, list[n-1])
}

func (c *comparer) inOrder(g, p []*formula.Expr) result {
	if len(g) != len(p) {
		return no(fmt.Sprintf("%d values against %d", len(p), len(g)))
	}
	all := yes("equal one by one")
	for i := range g {
		r := c.same(g[i], p[i])
		if !r.equal {
			r.why = fmt.Sprintf("value %d: %s", i+1, r.why)
			return r
		}
		all = all.with(r)
	}
	return all
}

// anyOrder matches each value of one side with one of the other. Equality is transitive, so any free match
// will do.
func (c *comparer) anyOrder(g, p []*formula.Expr) result {
	if len(g) == len(p) {
		if r := c.inOrder(g, p); r.equal {
			return r
		}
	}
	d, e := c.distinct(g), c.distinct(p)
	if len(g) != len(p) || len(d) != len(e) { // with as many values, 1, 1, 2 is not 1, 2, 2
		g, p = d, e
	}
	if len(g) != len(p) {
		return no(fmt.Sprintf("%d different values against %d", len(p), len(g)))
	}
	used := make([]bool, len(p))
	all := yes("equal in another order")
	for _, a := range g {
		found, sure := false, true
		for i, b := range p {
			if used[i] {
				continue
			}
			r := c.same(a, b)
			if r.equal {
				used[i], found = true, true
				all = all.with(r)
				break
			}
			sure = sure && r.sure
		}
		if !found {
			return result{sure: sure, why: "no value equal to " + shorten(a.String())}
		}
	}
	return all
}

// distinct drops repetitions.
func (c *comparer) distinct(list []*formula.Expr) []*formula.Expr {
	var out []*formula.Expr
	for _, a := range list {
		if !slices.ContainsFunc(out, func(b *formula.Expr) bool { return c.same(a, b).equal }) {
			out = append(out, a)
		}
	}
	return out
}

// ratios compares a:b:c up to a factor, and a:b with a quotient.
func (c *comparer) ratios(g, p *formula.Expr) result {
	asRatio := func(x *formula.Expr) []*formula.Expr {
		if x.Op == formula.Ratio {
			return x.Args
		}
		return []*formula.Expr{x, formula.Integer(1)}
	}
	a, b := asRatio(g), asRatio(p)
	if len(a) != len(b) || !g.Has(isRatio) && !g.IsScalar() || !p.Has(isRatio) && !p.IsScalar() {
		return no("not the same ratio")
	}
	for _, x := range append(a[:len(a):len(a)], b...) {
		if v, ok := c.Rational(x); ok && v.Sign() == 0 { // 5:00 is a time of day
			return c.inOrder(a, b)
		}
	}
	all := yes("the same ratio")
	for i := 1; i < len(a); i++ {
		all = all.and(c.scalars(formula.Product(a[i], b[0]), formula.Product(b[i], a[0])))
	}
	return all
}

func isRatio(x *formula.Expr) bool { return x.Op == formula.Ratio }

func isPercent(x *formula.Expr) bool { return x.Op == formula.Percent }

// hasPercentAmong reports whether some values are in per cent and others not. One at the end may be meant for all: 20
// and 30%.
func hasPercentAmong(list []*formula.Expr) bool {
	return len(list) > 1 && slices.ContainsFunc(list[:len(list)-1], isPercent) &&
		slices.ContainsFunc(list, func(x *formula.Expr) bool { return !isPercent(x) })
}

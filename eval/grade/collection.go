package grade

import (
	"fmt"
	"slices"
	"strings"
)

// collections compares lists, tuples, sets and sets of real numbers.
func (c *comparer) collections(g, p *expr) result {
	if r, ok := c.regions(g, p); ok {
		return r
	}
	g, p = byName(g, p), byName(p, g)
	gi, gok := elements(g)
	pi, pok := elements(p)
	switch {
	case isMixedWithAnd(g) && p.isScalar():
		return c.same(sum(g.args...), p)
	case isMixedWithAnd(p) && g.isScalar():
		return c.same(g, sum(p.args...))
	case c.unsolved(g) || c.unsolved(p):
		return c.setOperations(g, p)
	case !gok || !pok:
		return no(fmt.Sprintf("%s against %s", describe(p), describe(g)))
	case g.has(isSetOfOne) != p.has(isSetOfOne) && (g.op == opList || p.op == opList):
		return no("sets against their elements")
	case len(gi) != len(pi) && g.op != opSet && p.op != opSet:
		return no(fmt.Sprintf("%d values against %d", len(pi), len(gi)))
	case len(gi) > maxList || len(pi) > maxList:
		return unsure("too many values")
	case g.op == opTuple && p.op == opTuple:
		if (g.open != p.open || g.close != p.close) && len(gi) == 2 {
			return no("the brackets differ")
		}
		if g.open != p.open || g.close != p.close {
			return c.inOrder(gi, pi).and(result{true, false, "the brackets differ"})
		}
		return c.inOrder(gi, pi)
	case g.op == opTuple && p.op == opSet || g.op == opSet && p.op == opTuple:
		return no("a tuple is not a set")
	case alternatives(g) || alternatives(p):
		if g.op == opTuple || p.op == opTuple {
			return no("values of one name are not a pair")
		}
	case g.op == opTuple || p.op == opTuple:
		if g.op == opTuple && g.open != g.close-1 && g.open != '[' || p.op == opTuple && p.open != p.close-1 &&
			p.open != '[' {
			return no("an interval is not a list")
		}
		return c.inOrder(gi, pi)
	}
	if slices.ContainsFunc(append(gi[:len(gi):len(gi)], pi...), isSet) {
		outer := c.inSet
		c.inSet = true
		defer func() { c.inSet = outer }()
	}
	return c.anyOrder(gi, pi)
}

// isMixedWithAnd reports whether x is "1 and 1/4", a whole number and a proper fraction.
func isMixedWithAnd(x *expr) bool {
	if x.op != opList || x.name != "and" || len(x.args) != 2 || !isNatural(x.args[0]) {
		return false
	}
	f := x.args[1]
	return f.op == opMul && len(f.args) == 2 && isNatural(f.args[0]) && f.args[1].op == opPow &&
		isNatural(f.args[1].args[0]) && f.args[0].num.Cmp(f.args[1].args[0].num) < 0
}

// byName sorts x = 1, y = 2 by the names on the left if the other side is a tuple without names.
func byName(x, other *expr) *expr {
	if x.op != opList || other.op != opTuple || other.has(func(n *expr) bool { return n.op == opRelation }) {
		return x
	}
	for i, a := range x.args {
		if a.op != opRelation || len(a.args) != 2 || a.rels[0] != "=" || a.args[0].op != opSym ||
			i > 0 && slices.ContainsFunc(x.args[:i], func(b *expr) bool { return b.args[0].name == a.args[0].name }) {
			return x
		}
	}
	y := *x
	y.args = slices.Clone(x.args)
	slices.SortStableFunc(y.args, func(a, b *expr) int { return strings.Compare(a.args[0].name, b.args[0].name) })
	return &y
}

// alternatives reports whether x lists values that one name may have, as in x = 1 or x = 2.
func alternatives(x *expr) bool {
	if x.op != opList {
		return false
	}
	if x.name == "or" {
		return true
	}
	for i, a := range x.args {
		if a.op != opRelation || a.rels[0] != "=" || i > 0 && a.args[0].String() != x.args[0].args[0].String() {
			return false
		}
	}
	return true
}

// elements returns the elements of a list, tuple or set. A scalar is a list of one.
func elements(x *expr) ([]*expr, bool) {
	switch x.op {
	case opList, opSet, opTuple:
		return x.args, true
	case opUnion, opCap, opWithout:
		return nil, false
	case opSym:
		if x.name == symNil {
			return nil, true
		}
	}
	return []*expr{x}, x.isScalar()
}

func (c *comparer) inOrder(g, p []*expr) result {
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
		all.sure = all.sure && r.sure
	}
	return all
}

// anyOrder matches each value of one side with one of the other. Equality is transitive, so any free match
// will do.
func (c *comparer) anyOrder(g, p []*expr) result {
	if len(g) == len(p) {
		if r := c.inOrder(g, p); r.equal {
			return r
		}
	}
	g, p = c.distinct(g), c.distinct(p)
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
				all.sure = all.sure && r.sure
				break
			}
			sure = sure && r.sure
		}
		if !found {
			return result{false, sure, "no value equal to " + shorten(a.String())}
		}
	}
	return all
}

// distinct drops repetitions.
func (c *comparer) distinct(list []*expr) []*expr {
	var out []*expr
	for _, a := range list {
		if !slices.ContainsFunc(out, func(b *expr) bool { return c.same(a, b).equal }) {
			out = append(out, a)
		}
	}
	return out
}

// ratios compares a:b:c up to a factor, and a:b with a quotient.
func (c *comparer) ratios(g, p *expr) result {
	asRatio := func(x *expr) []*expr {
		if x.op == opRatio {
			return x.args
		}
		return []*expr{x, integer(1)}
	}
	a, b := asRatio(g), asRatio(p)
	if len(a) != len(b) || !g.has(isRatio) && !g.isScalar() || !p.has(isRatio) && !p.isScalar() {
		return no("not the same ratio")
	}
	for _, x := range append(a[:len(a):len(a)], b...) {
		if v, ok := c.rational(x); ok && v.Sign() == 0 { // 5:00 is a time of day
			return c.inOrder(a, b)
		}
	}
	all := yes("the same ratio")
	for i := 1; i < len(a); i++ {
		all = all.and(c.scalars(product(a[i], b[0]), product(b[i], a[0])))
	}
	return all
}

func isRatio(x *expr) bool { return x.op == opRatio }

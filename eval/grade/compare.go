package grade

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// result is the outcome of a comparison. If sure is false, equal is only the better guess.
type result struct {
	equal, sure bool
	why         string
}

func yes(why string) result    { return result{true, true, why} }
func no(why string) result     { return result{false, true, why} }
func unsure(why string) result { return result{false, false, why} }
func (r result) and(s result) result {
	switch {
	case !r.equal:
		return r
	case !s.equal || !s.sure:
		return s
	}
	return r
}

// comparer compares one pair of answers within one budget.
type comparer struct {
	budget
	depth int
	inSet bool // comparing elements of sets, where {1} is not 1
}

// maxList bounds lists and sets, which take quadratic time to match.
const maxList = 60

// same compares two answers of any kind; g is the gold answer.
func (c *comparer) same(g, p *expr) result {
	if c.depth++; c.depth > 40 || !c.spend(1) {
		return unsure("too much work")
	}
	defer func() { c.depth-- }()
	g, p = c.plain(g), c.plain(p)
	if c.inSet && isSet(g) != isSet(p) {
		return no("a set against an element")
	}
	if g.op == opText || p.op == opText {
		return c.texts(g, p)
	}
	if g.op == opUnit || p.op == opUnit {
		return c.units(g, p)
	}
	if g.op == opRelation || p.op == opRelation {
		return c.relations(g, p)
	}
	if g.op == opCases || p.op == opCases {
		return c.piecewise(g, p)
	}
	g, p = asTuple(g, p), asTuple(p, g)
	if g.has(isPM) || p.has(isPM) {
		return c.same(expandPM(g), expandPM(p))
	}
	switch {
	case g.op == opMatrix || p.op == opMatrix || g.has(isMatrix) || p.has(isMatrix):
		return c.matrices(g, p)
	case g.op == opRatio || p.op == opRatio:
		return c.ratios(g, p)
	case isCollection(g) || isCollection(p):
		return c.collections(g, p)
	}
	return c.scalars(g, p)
}

// isSet reports whether an element of a set is a set.
func isSet(x *expr) bool {
	return x.op == opSet || x.op == opSym && (x.name == symNil || x.name == symR)
}

func isPM(x *expr) bool       { return x.op == opPM }
func isSetOfOne(x *expr) bool { return x.op == opSet && len(x.args) == 1 }
func isMatrix(x *expr) bool   { return x.op == opMatrix }

func isCollection(x *expr) bool {
	switch x.op {
	case opTuple, opSet, opList, opUnion, opCap, opWithout:
		return true
	}
	return x.op == opSym && (x.name == symR || x.name == symNil)
}

// plain strips what does not matter: x ∈ S becomes S, a list of one its element.
func (c *comparer) plain(x *expr) *expr {
	if x.op == opText {
		if s := setInWords(words(x.name)); s != nil {
			x = s
		}
	}
	for {
		switch {
		case x.op == opRelation && len(x.args) == 2 && x.rels[0] == "in" && isSimple(x.args[0]):
			x = x.args[1]
		case x.op == opList && len(x.args) == 1:
			x = x.args[0]
		case x.op == opSet && len(x.args) == 1 && !c.inSet && !isSet(x.args[0]):
			x = x.args[0]
		default:
			return x
		}
	}
}

// expandPM lists the values of an expression with ±. All signs in one expression switch together; ∓ is the
// opposite.
func expandPM(x *expr) *expr {
	if !x.has(isPM) {
		return x
	}
	switch x.op {
	case opList, opSet, opTuple:
		if x.op == opTuple {
			return &expr{op: opList, args: []*expr{choose(x, true), choose(x, false)}}
		}
		y := *x
		y.args = nil
		for _, a := range x.args {
			if e := expandPM(a); e.op == opList && a.has(isPM) {
				y.args = append(y.args, e.args...)
			} else {
				y.args = append(y.args, e)
			}
		}
		return &y
	}
	return &expr{op: opList, args: []*expr{choose(x, true), choose(x, false)}}
}

// choose picks one sign for every ±.
func choose(x *expr, plus bool) *expr {
	if len(x.args) == 0 {
		return x
	}
	y := *x
	y.args = make([]*expr, len(x.args))
	for i, a := range x.args {
		y.args[i] = choose(a, plus)
	}
	if x.op == opPM {
		if t := y.args[1]; t.op == opTuple && y.args[0].op == opNum && y.args[0].num.Sign() == 0 { // ±(1, 2)
			if plus == (x.name == "±") {
				return t
			}
			u := *t
			u.args = nil
			for _, a := range t.args {
				u.args = append(u.args, negative(a))
			}
			return &u
		}
		if plus == (x.name == "±") {
			return sum(y.args...)
		}
		return difference(y.args[0], y.args[1])
	}
	return &y
}

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

// describe names the kind of an answer.
func describe(x *expr) string {
	switch x.op {
	case opTuple:
		if len(x.args) == 2 {
			return "a pair or an interval"
		}
		return "a tuple"
	case opSet:
		return "a set"
	case opList:
		return "a list"
	case opMatrix:
		return "a matrix"
	case opRelation:
		return "a relation"
	case opUnion, opCap, opWithout:
		return "a region"
	case opText:
		return "words"
	case opCases:
		return "cases"
	case opRatio:
		return "a ratio"
	}
	return "an expression"
}

func shorten(s string) string {
	const most = 60
	r := []rune(s)
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// units compares values if at least one has a unit. A unit that only one side gives counts as implied by
// the question. Words that are no unit make the verdict unsure: they may change the value.
func (c *comparer) units(g, p *expr) result {
	if g.op != opUnit || p.op != opUnit {
		return c.oneUnit(g, p)
	}
	gq, pq := quantityOf(g.name), quantityOf(p.name)
	a, b := scaled(g, gq), scaled(p, pq)
	factor, same, known := gq.sameAs(pq)
	switch {
	case same && factor.Cmp(big.NewRat(1, 1)) == 0:
		return c.same(a, b)
	case same:
		r := c.same(a, product(b, number(factor)))
		r.why += "; units converted"
		return r
	case known:
		return no(fmt.Sprintf("%q is not a unit like %q", p.name, g.name))
	}
	r := c.same(a, b)
	if r.equal {
		return unsure(fmt.Sprintf("equal numbers, but of %q and %q", p.name, g.name))
	}
	return r
}

// oneUnit compares a value with words after it and one without.
func (c *comparer) oneUnit(g, p *expr) result {
	x := g
	if p.op == opUnit {
		x = p
	}
	q := quantityOf(x.name)
	if !q.known {
		return unsure(fmt.Sprintf("%q is not a unit", shorten(x.name)))
	}
	other := g
	if x == g {
		other = p
	}
	if other.op == opPercent || other.op == opDegree || other.op == opRatio || x.args[0].op == opPercent ||
		x.args[0].op == opDegree || x.args[0].op == opRatio {
		return no("a unit against another")
	}
	if x.parts > 0 {
		return unsure("a value in several units against one without a unit")
	}
	v := scaled(x, q)
	if x == g {
		g = v
	} else {
		p = v
	}
	r := c.same(g, p)
	r.why += "; only one side has a unit"
	return r
}

// scaled multiplies a value by the dozen or million before its unit.
func scaled(x *expr, q quantity) *expr {
	if q.scale.Cmp(big.NewRat(1, 1)) == 0 {
		return x.args[0]
	}
	return product(x.args[0], number(q.scale))
}

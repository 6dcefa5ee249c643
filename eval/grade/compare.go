package grade

import (
	"fmt"
	"math/big"
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

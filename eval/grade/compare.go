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
	if g.op == opText || p.op == opText {
		return c.texts(g, p)
	}
	if g.op == opUnit || p.op == opUnit {
		return c.units(g, p)
	}
	if g.op == opRelation || p.op == opRelation {
		return c.relations(g, p)
	}
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
		if s := wordSets[words(x.name)]; s != "" {
			x = symbol(s)
		}
	}
	for {
		switch {
		case x.op == opRelation && len(x.args) == 2 && x.rels[0] == "in" && isSimple(x.args[0]):
			x = x.args[1]
		case (x.op == opList || x.op == opSet) && len(x.args) == 1:
			x = x.args[0]
		default:
			return x
		}
	}
}

// wordSets maps wordings to sets.
var wordSets = map[string]string{"all real numbers": symR, "all reals": symR, "real numbers": symR, "all real": symR,
	"all real values": symR, "empty set": symNil, "no solution": symNil, "no solutions": symNil,
	"no real solutions": symNil, "no real solution": symNil}

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
	gi, gok := elements(g)
	pi, pok := elements(p)
	switch {
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
	return c.anyOrder(gi, pi)
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
// the question.
func (c *comparer) units(g, p *expr) result {
	if a, b := scaled(g), scaled(p); a != g || b != p {
		if r := c.same(a, b); r.equal {
			return r
		}
	}
	if g.op != opUnit || p.op != opUnit {
		if g.op == opUnit {
			g = g.args[0]
		} else if scaled(p) != p {
			return no("another multiple")
		} else {
			p = p.args[0]
		}
		if g.op == opPercent || p.op == opPercent || g.op == opDegree || p.op == opDegree || g.op == opRatio ||
			p.op == opRatio {
			return no("a unit against another")
		}
		r := c.same(g, p)
		r.why += "; only one side has a unit"
		return r
	}
	factor, same, known := conversion(p.name, g.name)
	switch {
	case same && factor.Cmp(big.NewRat(1, 1)) == 0:
		return c.same(g.args[0], p.args[0])
	case same:
		r := c.same(g.args[0], product(p.args[0], number(factor)))
		r.why += "; units converted"
		return r
	case known:
		return no(fmt.Sprintf("%q is not a unit like %q", p.name, g.name))
	}
	r := c.same(g.args[0], p.args[0])
	if r.equal {
		return unsure(fmt.Sprintf("equal numbers, but of %q and %q", p.name, g.name))
	}
	return r
}

// relations compares answers if at least one is an equation or inequality.
func (c *comparer) relations(g, p *expr) result {
	if g.op == opRelation && p.op == opRelation {
		return c.twoRelations(g, p)
	}
	if r, ok := c.regions(g, p); ok {
		return r
	}
	if g.op == opRelation {
		if v, ok := c.value(g); ok {
			return c.same(v, p)
		}
	} else if v, ok := c.value(p); ok {
		return c.same(g, v)
	}
	return no(fmt.Sprintf("%s against %s", describe(p), describe(g)))
}

// value returns the value an equation gives its left side: 5 for x = 5 and for 2+3 = 5.
func (c *comparer) value(x *expr) (*expr, bool) {
	for _, r := range x.rels {
		if r != "=" {
			return nil, false
		}
	}
	last := x.args[len(x.args)-1]
	vars := variables(last)
	for _, a := range x.args[:len(x.args)-1] {
		if isSimple(a) {
			if !slices.ContainsFunc(variables(a), func(v string) bool {
				return slices.Contains(vars, v) &&
					!isFunctionOf(a, v) && !isInverse(a)
			}) {
				continue
			}
			return nil, false
		}
		if !c.same(a, last).equal {
			return nil, false
		}
	}
	return last, true
}

// isSimple reports whether x is a name, f(x), or sums and products of names, as on the left of the answer
// to "find a+b".
func isSimple(x *expr) bool {
	switch x.op {
	case opSym:
		return true
	case opAdd, opMul, opTuple, opRatio, opList:
		return isInverse(x) || !slices.ContainsFunc(x.args, func(a *expr) bool { return !isSimple(a) })
	case opFunc:
		return len(variables(x)) > 0
	case opDegree:
		return isSimple(x.args[0])
	}
	return isFunctionOf(x, "")
}

// isInverse reports whether x is f^{-1}(v).
func isInverse(x *expr) bool {
	if x.op != opMul || len(x.args) != 2 || x.args[1].op != opSym {
		return false
	}
	f := x.args[0]
	return f.op == opPow && f.args[0].op == opSym && f.args[1].op == opNum &&
		f.args[1].num.Cmp(big.NewRat(-1, 1)) == 0
}

// isFunctionOf reports whether x is f(v), with any argument if v is empty.
func isFunctionOf(x *expr, v string) bool {
	return x.op == opMul && len(x.args) == 2 && x.args[0].op == opSym && (v == "" && x.args[1].op != opNum ||
		x.args[1].op == opSym && x.args[1].name == v)
}

// isValueOfFunction reports whether x is f(v), or the y that stands for it.
func isValueOfFunction(x *expr) bool {
	return x.op == opSym || x.op == opMul && isFunctionOf(x, "") && strings.Contains("fghpquvFGHPQ", x.args[0].name)
}

// twoRelations compares equations and inequalities by their right sides, as sets of real numbers, or as
// multiples of each other.
func (c *comparer) twoRelations(g, p *expr) result {
	if gv, ok := c.value(g); ok {
		if pv, ok := c.value(p); ok && isSimple(g.args[0]) && isSimple(p.args[0]) {
			left := c.same(g.args[0], p.args[0])
			r := c.same(gv, pv)
			if left.equal || !r.equal || len(variables(gv)) > 0 && g.args[0].op != p.args[0].op {
				return r
			}
			if g.args[0].op != p.args[0].op && isValueOfFunction(g.args[0]) && isValueOfFunction(p.args[0]) {
				// f(x) = y
				return r
			}
			return unsure("equal values of different names")
		}
	}
	if r, ok := c.regions(g, p); ok && (r.equal || r.sure) {
		return r
	}
	if len(g.args) != len(p.args) {
		return no("relations of different length")
	}
	if len(g.args) == 2 {
		return c.multiples(g, p)
	}
	straight := slices.Equal(g.rels, p.rels)
	if straight {
		if r := c.inOrder(g.args, p.args); r.equal {
			return r
		}
	}
	back, rels := slices.Clone(p.args), slices.Clone(p.rels)
	slices.Reverse(back)
	slices.Reverse(rels)
	for i, r := range rels {
		rels[i] = flip(r)
	}
	if slices.Equal(g.rels, rels) {
		return c.inOrder(g.args, back)
	}
	return no("the relations differ")
}

func flip(rel string) string {
	switch rel {
	case "<":
		return ">"
	case ">":
		return "<"
	case "<=":
		return ">="
	case ">=":
		return "<="
	}
	return rel
}

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

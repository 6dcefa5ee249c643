package grade

import (
	"cmp"
	"math"
	"slices"
)

// piece is an interval of real numbers, or one number if both ends are equal.
type piece struct {
	lo, hi             float64
	loExpr, hiExpr     *expr // nil for an infinite end
	loClosed, hiClosed bool
}

// near treats ends as equal if float64 cannot tell them apart; comparing two sets uses the expressions
// themselves.
func near(a, b float64) bool {
	return a == b || !math.IsInf(a, 0) && !math.IsInf(b, 0) && math.Abs(a-b) <= 1e-11*math.Max(math.Abs(a),
		math.Abs(b))
}

// regions compares two sets of real numbers if both sides can be sets and at least one must be.
func (c *comparer) regions(g, p *expr) (result, bool) {
	if !certainRegion(g) && !certainRegion(p) {
		return result{}, false
	}
	a, ok := c.region(g)
	if !ok {
		return result{}, false
	}
	b, ok := c.region(p)
	if !ok {
		return result{}, false
	}
	if u, v := variables(g), variables(p); len(u) > 0 && len(v) > 0 && !slices.Equal(u, v) && !isAnyName(u) &&
		!isAnyName(v) {
		return unsure("conditions on different names"), true
	}
	if s, t := subject(g), subject(p); s != nil && t != nil && (s.op != opSym || t.op != opSym && t.name != anyName) &&
		!c.same(s, t).equal {
		return unsure("conditions on different values"), true
	}
	return c.samePieces(a, b), true
}

func (c *comparer) samePieces(a, b []piece) result {
	if len(a) != len(b) {
		return no("another set of real numbers")
	}
	all := yes("the same set of real numbers")
	for i := range a {
		if a[i].loClosed != b[i].loClosed || a[i].hiClosed != b[i].hiClosed {
			return no("an end is open on one side and closed on the other")
		}
		all = all.and(c.ends(a[i].loExpr, b[i].loExpr, a[i].lo, b[i].lo)).and(c.ends(a[i].hiExpr, b[i].hiExpr,
			a[i].hi, b[i].hi))
	}
	return all
}

func isAnyName(vars []string) bool { return len(vars) == 1 && vars[0] == anyName }

// unsolved reports whether x is a set of real numbers that cannot be computed.
func (c *comparer) unsolved(x *expr) bool {
	if !certainRegion(x) {
		return false
	}
	_, ok := c.region(x)
	return !ok
}

// setOperations compares unions and intersections of sets that are only names.
func (c *comparer) setOperations(g, p *expr) result {
	if g.op == p.op && g.op != opList {
		r := no("")
		switch a, b := operands(g), operands(p); {
		case len(a) > maxList || len(b) > maxList:
		case g.op == opUnion || g.op == opCap:
			r = c.anyOrder(a, b)
		case g.op == opWithout:
			r = c.inOrder(a, b)
		}
		if r.equal {
			return r
		}
	}
	return unsure("sets that are not computed")
}

// operands returns the terms of A ∪ B ∪ …, which is nested to the left.
func operands(x *expr) []*expr {
	var list []*expr
	y := x
	for ; y.op == x.op && len(y.args) == 2; y = y.args[0] {
		list = append(list, y.args[1])
	}
	list = append(list, y)
	slices.Reverse(list)
	return list
}

// subject returns what an inequality bounds: its variable if it is solved for one, else its side; nil if x is no
// inequality.
func subject(x *expr) *expr {
	if x.op != opRelation {
		return nil
	}
	if v := variables(x); len(v) == 1 && !x.has(func(n *expr) bool { return n.op == opFunc && n.name != "abs" }) &&
		!slices.ContainsFunc(x.args, isApplication) {
		return symbol(v[0])
	}
	for _, a := range x.args {
		if len(variables(a)) > 0 {
			return a
		}
	}
	return nil
}

func (c *comparer) ends(x, y *expr, a, b float64) result {
	switch {
	case x == nil && y == nil && a == b:
		return yes("infinite")
	case x == nil || y == nil:
		return no("one end is infinite")
	}
	return c.scalars(x, y)
}

// certainRegion reports whether x is more than a pair or list of numbers.
func certainRegion(x *expr) bool {
	switch x.op {
	case opUnion, opCap, opWithout:
		return true
	case opSym:
		return x.name == symR
	case opTuple:
		return len(x.args) == 2 && (x.open == '(') != (x.close == ')')
	case opRelation:
		return slices.ContainsFunc(x.rels, func(r string) bool { return r != "=" && r != "->" })
	case opList:
		return slices.ContainsFunc(x.args, certainRegion)
	}
	return false
}

// region turns an expression into sorted pieces that do not touch.
func (c *comparer) region(x *expr) ([]piece, bool) {
	if c.depth++; c.depth > 40 || !c.spend(4) {
		return nil, false
	}
	defer func() { c.depth-- }()
	switch x.op {
	case opUnit:
		return c.region(x.args[0])
	case opSym:
		switch x.name {
		case symR:
			return []piece{everything()}, true
		case symNil:
			return nil, true
		}
	case opTuple:
		return c.interval(x)
	case opSet:
		var all []piece
		for _, a := range x.args {
			e, ok := c.end(a)
			if !ok || e.expr == nil || len(x.args) > maxList {
				return nil, false
			}
			all = append(all, piece{e.v, e.v, e.expr, e.expr, true, true})
		}
		return merge(all), true
	case opUnion:
		return c.regionOfUnion(x)
	case opCap, opWithout:
		a, ok := c.region(x.args[0])
		if !ok {
			return nil, false
		}
		b, ok := c.region(x.args[1])
		if !ok {
			return nil, false
		}
		if x.op == opWithout {
			b = complement(b)
		}
		return intersect(a, b), true
	case opRelation:
		return c.inequality(x)
	case opList:
		return c.regionOfList(x)
	}
	if e, ok := c.end(x); ok && e.expr != nil {
		return []piece{{e.v, e.v, x, x, true, true}}, true
	}
	return nil, false
}

// regionOfUnion unites the terms of A ∪ B ∪ ….
func (c *comparer) regionOfUnion(x *expr) ([]piece, bool) {
	var all []piece
	for _, term := range operands(x) {
		s, ok := c.region(term)
		if !ok {
			return nil, false
		}
		all = append(all, s...)
	}
	return merge(all), true
}

// regionOfList joins conditions: "and" intersects, "or" unites. Of conditions with commas, those with ≠ or ∈
// must all hold, and so must inequalities that can.
func (c *comparer) regionOfList(x *expr) ([]piece, bool) {
	if len(x.args) > maxList {
		return nil, false
	}
	var union, both []piece
	mustAll := x.name == "and"
	for i, a := range x.args {
		if a.op != opRelation && a.op != opTuple && a.op != opUnion {
			return nil, false
		}
		s, ok := c.region(a)
		if !ok {
			return nil, false
		}
		union = append(union, s...)
		if i == 0 {
			both = s
		} else {
			both = intersect(both, s)
		}
		mustAll = mustAll || x.name != "or" && a.op == opRelation && (a.rels[0] == "!=" || a.rels[0] == "in")
	}
	bounds := !slices.ContainsFunc(x.args, func(a *expr) bool { return a.op != opRelation || len(a.args) != 2 })
	if mustAll || x.name == "" && bounds && len(x.args) == 2 && len(both) > 0 && x.args[0].rels[0] != "=" &&
		x.args[1].rels[0] != "=" {
		return merge(both), true
	}
	return merge(union), true
}

func everything() piece { return piece{lo: math.Inf(-1), hi: math.Inf(1)} }

// endpoint is a real number, or an infinity without expression.
type endpoint struct {
	v    float64
	expr *expr
}

func (c *comparer) end(x *expr) (endpoint, bool) {
	if x.isInfinite() {
		switch c.signless(x) {
		case symInf:
			return endpoint{v: math.Inf(1)}, true
		case "-" + symInf:
			return endpoint{v: math.Inf(-1)}, true
		}
		return endpoint{}, false
	}
	if !x.isScalar() || len(variables(x)) > 0 {
		return endpoint{}, false
	}
	b, ok := c.evaluate(x, &point{})
	return endpoint{real(b.v), x}, ok
}

func (c *comparer) interval(x *expr) ([]piece, bool) {
	if len(x.args) != 2 {
		return nil, false
	}
	lo, ok := c.end(x.args[0])
	hi, ok2 := c.end(x.args[1])
	if !ok || !ok2 || lo.v > hi.v {
		return nil, false
	}
	return []piece{{lo.v, hi.v, lo.expr, hi.expr, x.open == '[' && lo.expr != nil, x.close == ']' && hi.expr != nil}},
		true
}

// inequality reads a < x <= b, x >= a and x != a with numbers a and b, and x ∈ S; others are solved.
func (c *comparer) inequality(x *expr) ([]piece, bool) {
	switch {
	case len(x.args) == 2 && x.rels[0] == "in":
		return c.region(x.args[1])
	case len(x.args) == 2:
		return c.bounded(x.args[0], x.rels[0], x.args[1])
	case len(x.args) == 3:
		a, ok := c.bounded(x.args[0], x.rels[0], x.args[1])
		b, ok2 := c.bounded(x.args[1], x.rels[1], x.args[2])
		return intersect(a, b), ok && ok2
	}
	return nil, false
}

// bounded returns where l rel r holds.
func (c *comparer) bounded(l *expr, rel string, r *expr) ([]piece, bool) {
	if len(variables(l)) == 0 {
		l, r, rel = r, l, flip(rel)
	}
	if len(variables(l)) == 0 {
		return nil, false
	}
	if l.op == opSym || isSimple(l) && !isAbs(l) {
		if e, ok := c.end(r); ok {
			return halfLine(rel, e)
		}
	}
	return c.solve(l, rel, r)
}

func halfLine(rel string, e endpoint) ([]piece, bool) {
	p := everything()
	switch rel {
	case "<", "<=":
		p.hi, p.hiExpr, p.hiClosed = e.v, e.expr, rel == "<=" && e.expr != nil
	case ">", ">=":
		p.lo, p.loExpr, p.loClosed = e.v, e.expr, rel == ">=" && e.expr != nil
	case "=":
		return []piece{{e.v, e.v, e.expr, e.expr, true, true}}, e.expr != nil
	case "!=":
		return complement([]piece{{e.v, e.v, e.expr, e.expr, true, true}}), e.expr != nil
	default:
		return nil, false
	}
	return []piece{p}, true
}

// merge sorts pieces and joins those that overlap or touch.
func merge(list []piece) []piece {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b piece) int {
		if !near(a.lo, b.lo) {
			return cmp.Compare(a.lo, b.lo)
		}
		switch {
		case a.loClosed == b.loClosed:
			return 0
		case a.loClosed:
			return -1
		}
		return 1
	})
	var out []piece
	for _, p := range list {
		if near(p.lo, p.hi) && !(p.loClosed && p.hiClosed) {
			continue // empty
		}
		if len(out) > 0 {
			q := &out[len(out)-1]
			if p.lo < q.hi && !near(p.lo, q.hi) || near(p.lo, q.hi) && (p.loClosed || q.hiClosed) {
				if near(p.hi, q.hi) {
					q.hiClosed = q.hiClosed || p.hiClosed
				} else if p.hi > q.hi {
					q.hi, q.hiExpr, q.hiClosed = p.hi, p.hiExpr, p.hiClosed
				}
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// complement returns the complement of pieces, merged or not.
func complement(list []piece) []piece {
	out := []piece{}
	rest := everything()
	for _, p := range merge(list) {
		before := piece{rest.lo, p.lo, rest.loExpr, p.loExpr, rest.loClosed, !p.loClosed && p.loExpr != nil}
		if !math.IsInf(p.lo, -1) && (before.lo < before.hi && !near(before.lo, before.hi) || before.loClosed &&
			before.hiClosed) {
			out = append(out, before)
		}
		rest.lo, rest.loExpr, rest.loClosed = p.hi, p.hiExpr, !p.hiClosed && p.hiExpr != nil
	}
	if !math.IsInf(rest.lo, 1) {
		out = append(out, rest)
	}
	return out
}

func intersect(a, b []piece) []piece {
	var out []piece
	for _, p := range a {
		for _, q := range b {
			r := p
			if near(q.lo, r.lo) {
				r.loClosed = r.loClosed && q.loClosed
			} else if q.lo > r.lo {
				r.lo, r.loExpr, r.loClosed = q.lo, q.loExpr, q.loClosed
			}
			if near(q.hi, r.hi) {
				r.hiClosed = r.hiClosed && q.hiClosed
			} else if q.hi < r.hi {
				r.hi, r.hiExpr, r.hiClosed = q.hi, q.hiExpr, q.hiClosed
			}
			if r.lo < r.hi && !near(r.lo, r.hi) || near(r.lo, r.hi) && r.loClosed && r.hiClosed {
				out = append(out, r)
			}
		}
	}
	return merge(out)
}

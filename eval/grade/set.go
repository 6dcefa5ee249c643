package grade

import (
	"math"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// regions compares two sets of real numbers if both sides can be sets and at least one must be.
func (c *comparer) regions(g, p *formula.Expr) (result, bool) {
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
	if u, v := formula.Variables(g), formula.Variables(p); len(u) > 0 && len(v) > 0 && !slices.Equal(u, v) &&
		!isAnyName(u) &&
		!isAnyName(v) {
		return unsure("conditions on different names"), true
	}
	if s, t := subject(g), subject(p); s != nil && t != nil && (s.Op != formula.Sym || t.Op != formula.Sym &&
		t.Name != latex.AnyName) &&
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

func isAnyName(vars []string) bool { return len(vars) == 1 && vars[0] == latex.AnyName }

// unsolved reports whether x is a set of real numbers that cannot be computed.
func (c *comparer) unsolved(x *formula.Expr) bool {
	if !certainRegion(x) {
		return false
	}
	_, ok := c.region(x)
	return !ok
}

// setOperations compares unions and intersections of sets that are only names.
func (c *comparer) setOperations(g, p *formula.Expr) result {
	if g.Op == p.Op {
		outer := c.inSet
		c.inSet = outer || g.Op == formula.Union || g.Op == formula.Intersection // 2 is not a set
		defer func() { c.inSet = outer }()
		r := no("")
		switch a, b := operands(g), operands(p); {
		case len(a) > maxList || len(b) > maxList:
		case g.Op == formula.List: // 2^k + 1, k ≥ 1
			r = c.inOrder(g.Args, p.Args)
		case g.Op == formula.Union || g.Op == formula.Intersection:
			r = c.anyOrder(a, b)
		case g.Op == formula.Without:
			r = c.inOrder(a, b)
		case g.Op == formula.Tuple && g.Open == p.Open && g.Close == p.Close: // ends that are not numbers
			r = c.inOrder(g.Args, p.Args)
		}
		if r.equal {
			return r
		}
	}
	if sameSets(g, p) {
		return yes("the same set by the laws of union and intersection")
	}
	return unsure("sets that are not computed")
}

// operands returns the terms of A ∪ B ∪ …, which is nested to the left.
func operands(x *formula.Expr) []*formula.Expr {
	var list []*formula.Expr
	y := x
	for ; y.Op == x.Op && len(y.Args) == 2; y = y.Args[0] {
		list = append(list, y.Args[1])
	}
	list = append(list, y)
	slices.Reverse(list)
	return list
}

// subject returns what an inequality bounds: its variable if it is solved for one, else its side; nil if x is no
// inequality.
func subject(x *formula.Expr) *formula.Expr {
	if x.Op != formula.Relation {
		return nil
	}
	if v := formula.Variables(x); len(v) == 1 && !x.Has(func(n *formula.Expr) bool {
		return n.Op == formula.Func && n.Name != "abs" && n.Name != "ln"
	}) &&
		!slices.ContainsFunc(x.Args, isApplication) {
		return formula.Symbol(v[0])
	}
	for _, a := range x.Args {
		if len(formula.Variables(a)) > 0 {
			return a
		}
	}
	return nil
}

func (c *comparer) ends(x, y *formula.Expr, a, b float64) result {
	switch {
	case x == nil && y == nil && a == b:
		return yes("infinite")
	case x == nil || y == nil:
		return no("one end is infinite")
	}
	return c.scalars(x, y)
}

// certainRegion reports whether x is more than a pair or list of numbers.
func certainRegion(x *formula.Expr) bool {
	switch x.Op {
	case formula.Union, formula.Intersection, formula.Without:
		return true
	case formula.Sym:
		return x.Name == formula.Reals
	case formula.Tuple:
		return len(x.Args) == 2 && (x.Open == '(') != (x.Close == ')')
	case formula.Relation:
		return slices.ContainsFunc(x.Rels, func(r string) bool { return r != "=" && r != "->" })
	case formula.List:
		return slices.ContainsFunc(x.Args, certainRegion)
	}
	return false
}

// region turns an expression into sorted pieces that do not touch.
func (c *comparer) region(x *formula.Expr) ([]piece, bool) {
	if c.depth++; c.depth > 40 || !c.Spend(4) {
		return nil, false
	}
	defer func() { c.depth-- }()
	switch x.Op {
	case formula.Unit:
		if !wording.QuantityOf(x.Name).Known { // 1 < x < 2 is not the answer
			return nil, false
		}
		return c.region(x.Args[0])
	case formula.Sym:
		switch x.Name {
		case formula.Reals:
			return []piece{everything()}, true
		case formula.Empty:
			return nil, true
		}
	case formula.Tuple:
		return c.interval(x)
	case formula.Set:
		var all []piece
		for _, a := range x.Args {
			e, ok := c.end(a)
			if !ok || e.expr == nil || len(x.Args) > maxList {
				return nil, false
			}
			all = append(all, piece{e.v, e.v, e.expr, e.expr, true, true})
		}
		return merge(all), true
	case formula.Union:
		return c.regionOfUnion(x)
	case formula.Intersection, formula.Without:
		a, ok := c.region(x.Args[0])
		if !ok {
			return nil, false
		}
		b, ok := c.region(x.Args[1])
		if !ok {
			return nil, false
		}
		if x.Op == formula.Without {
			b = complement(b)
		}
		return intersect(a, b), true
	case formula.Relation:
		return c.inequality(x)
	case formula.List:
		return c.regionOfList(x)
	}
	if e, ok := c.end(x); ok && e.expr != nil {
		return []piece{{e.v, e.v, x, x, true, true}}, true
	}
	return nil, false
}

// regionOfUnion unites the terms of A ∪ B ∪ ….
func (c *comparer) regionOfUnion(x *formula.Expr) ([]piece, bool) {
	var all []piece
	for _, term := range operands(x) {
		if term.IsScalar() && !formula.IsCollection(term) && term.Op != formula.Unit { // 2 is not a set
			return nil, false
		}
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
func (c *comparer) regionOfList(x *formula.Expr) ([]piece, bool) {
	if len(x.Args) > maxList {
		return nil, false
	}
	var union, both []piece
	mustAll := x.Name == "and"
	for i, a := range x.Args {
		if i > 0 && isExclusion(x.Args[0]) && a.IsScalar() { // x ≠ 1, 2
			a = &formula.Expr{Op: formula.Relation, Rels: x.Args[0].Rels, Args: []*formula.Expr{x.Args[0].Args[0], a}}
		}
		if a.Op != formula.Relation && a.Op != formula.Tuple && a.Op != formula.Union {
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
		mustAll = mustAll || x.Name != "or" && a.Op == formula.Relation && (a.Rels[0] == "!=" || a.Rels[0] == "in")
	}
	bounds := !slices.ContainsFunc(x.Args, func(a *formula.Expr) bool {
		return a.Op != formula.Relation ||
			len(a.Args) != 2
	})
	if x.Name == "and" && len(both) == 0 && !slices.ContainsFunc(x.Args, isEquation) { // the intervals A and B
		return merge(union), true
	}
	if mustAll || x.Name == "" && bounds && len(x.Args) == 2 && len(both) > 0 && x.Args[0].Rels[0] != "=" &&
		x.Args[1].Rels[0] != "=" {
		return merge(both), true
	}
	return merge(union), true
}

// isExclusion reports whether x is v ≠ a.
func isExclusion(x *formula.Expr) bool {
	return x.Op == formula.Relation && len(x.Args) == 2 && x.Rels[0] == "!="
}

func (c *comparer) end(x *formula.Expr) (endpoint, bool) {
	if x.IsInfinite() {
		switch c.signless(x) {
		case formula.Infinity:
			return endpoint{v: math.Inf(1)}, true
		case "-" + formula.Infinity:
			return endpoint{v: math.Inf(-1)}, true
		}
		return endpoint{}, false
	}
	if !x.IsScalar() || len(formula.Variables(x)) > 0 {
		return endpoint{}, false
	}
	b, ok := c.Evaluate(x, &formula.Point{})
	return endpoint{real(b.V), x}, ok
}

func (c *comparer) interval(x *formula.Expr) ([]piece, bool) {
	if len(x.Args) != 2 {
		return nil, false
	}
	lo, ok := c.end(x.Args[0])
	hi, ok2 := c.end(x.Args[1])
	if !ok || !ok2 || lo.v > hi.v {
		return nil, false
	}
	return []piece{{lo.v, hi.v, lo.expr, hi.expr, x.Open == '[' && lo.expr != nil, x.Close == ']' && hi.expr != nil}},
		true
}

// asInterval returns a ≤ x < b with ends that are not numbers as the interval [a, b).
func asInterval(x *formula.Expr) *formula.Expr {
	if x.Op != formula.Relation || len(x.Args) != 3 || x.Args[1].Op != formula.Sym {
		return x
	}
	lo, hi, rels := x.Args[0], x.Args[2], x.Rels
	if strings.HasPrefix(rels[0], ">") {
		lo, hi, rels = hi, lo, []string{flip(rels[1]), flip(rels[0])}
	}
	if !strings.HasPrefix(rels[0], "<") || !strings.HasPrefix(rels[1], "<") || !lo.IsScalar() || !hi.IsScalar() ||
		slices.Contains(formula.Variables(lo, hi), x.Args[1].Name) {
		return x
	}
	y := &formula.Expr{Op: formula.Tuple, Open: '(', Close: ')', Args: []*formula.Expr{lo, hi}}
	if rels[0] == "<=" {
		y.Open = '['
	}
	if rels[1] == "<=" {
		y.Close = ']'
	}
	return y
}

// inequality reads a < x <= b, x >= a and x != a with numbers a and b, and x ∈ S; others are solved.
func (c *comparer) inequality(x *formula.Expr) ([]piece, bool) {
	switch {
	case len(x.Args) == 2 && x.Rels[0] == "in":
		if !isSimple(x.Args[0]) { // 4x ∈ [0, 1]
			return nil, false
		}
		return c.region(x.Args[1])
	case len(x.Args) == 2:
		return c.bounded(x.Args[0], x.Rels[0], x.Args[1])
	case len(x.Args) == 3:
		a, ok := c.bounded(x.Args[0], x.Rels[0], x.Args[1])
		b, ok2 := c.bounded(x.Args[1], x.Rels[1], x.Args[2])
		return intersect(a, b), ok && ok2
	}
	return nil, false
}

// bounded returns where l rel r holds.
func (c *comparer) bounded(l *formula.Expr, rel string, r *formula.Expr) ([]piece, bool) {
	if len(formula.Variables(l)) == 0 {
		l, r, rel = r, l, flip(rel)
	}
	if len(formula.Variables(l)) == 0 {
		return nil, false
	}
	if r.Has(formula.IsPlusMinus) { // x ≠ ±3
		a, ok := c.bounded(l, rel, choose(r, true))
		b, ok2 := c.bounded(l, rel, choose(r, false))
		return intersect(a, b), ok && ok2 && rel == "!="
	}
	if l.Op == formula.Sym || isSimple(l) && !isAbs(l) && !isLogarithm(l) {
		if e, ok := c.end(r); ok {
			return halfLine(rel, e)
		}
	}
	return c.solve(l, rel, r)
}

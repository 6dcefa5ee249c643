package grade

import (
	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// result is the outcome of a comparison. If sure is false, equal is only the better guess.
type result struct {
	equal, sure bool
	why         string
	basis       Basis // of a result "equal" that is sure
}

func yes(why string) result { return result{equal: true, sure: true, why: why} }

func no(why string) result { return result{sure: true, why: why} }

func unsure(why string) result { return result{why: why} }

// likely is a result "equal" that is not sure.
func likely(why string) result { return result{equal: true, why: why} }

func (r result) and(s result) result {
	switch {
	case !r.equal:
		return r
	case !s.equal || !s.sure:
		return s
	}
	return r.by(s.basis)
}

// comparer compares one pair of answers within one budget.
type comparer struct {
	formula.Budget
	depth int
	inSet bool // comparing elements of sets, where {1} is not 1
}

// maxList bounds lists and sets, which take quadratic time to match.
const maxList = 60

// same compares two answers of any kind; g is the gold answer.
func (c *comparer) same(g, p *formula.Expr) result {
	if c.depth++; c.depth > 40 || !c.Spend(1) {
		return unsure("too much work")
	}
	defer func() { c.depth-- }()
	if r, ok := c.families(g, p); ok {
		return r
	}
	g, p = c.plain(g), c.plain(p)
	if c.inSet && formula.IsSet(g) != formula.IsSet(p) {
		return no("a set against an element")
	}
	if g.Op == formula.Text || p.Op == formula.Text {
		return c.texts(g, p)
	}
	if g.Op == formula.Relation || p.Op == formula.Relation { // before units: in x = 5 cm the value has one
		return c.relations(g, p)
	}
	if g.Op == formula.Unit || p.Op == formula.Unit {
		return c.units(g, p)
	}
	if g.Op == formula.Cases || p.Op == formula.Cases {
		return c.piecewise(g, p)
	}
	g, p = asTuple(g, p), asTuple(p, g)
	if g.Has(formula.IsPlusMinus) || p.Has(formula.IsPlusMinus) {
		return c.same(expandPM(g), expandPM(p))
	}
	switch {
	case g.Op == formula.Matrix || p.Op == formula.Matrix || g.Has(formula.IsMatrix) || p.Has(formula.IsMatrix):
		return c.matrices(g, p)
	case g.Op == formula.Ratio || p.Op == formula.Ratio:
		return c.ratios(g, p)
	case formula.IsCollection(g) || formula.IsCollection(p):
		return c.collections(g, p)
	}
	return c.scalars(g, p)
}

func isSetOfOne(x *formula.Expr) bool { return x.Op == formula.Set && len(x.Args) == 1 }

// plain strips what does not matter: x ∈ S becomes S, a list of one its element.
func (c *comparer) plain(x *formula.Expr) *formula.Expr {
	if x.Op == formula.Text {
		if s := latex.SetInWords(wording.Normal(x.Name)); s != nil {
			x = s
		}
	}
	for {
		switch {
		case x.Op == formula.Relation && len(x.Args) == 2 && x.Rels[0] == "in" && isSimple(x.Args[0]):
			x = x.Args[1]
		case x.Op == formula.List && len(x.Args) == 1:
			x = x.Args[0]
		case x.Op == formula.Set && len(x.Args) == 1 && !c.inSet && !formula.IsSet(x.Args[0]):
			x = x.Args[0]
		default:
			return x
		}
	}
}

// expandPM lists the values of an expression with ±. All signs in one expression switch together; ∓ is the
// opposite.
func expandPM(x *formula.Expr) *formula.Expr {
	if !x.Has(formula.IsPlusMinus) {
		return x
	}
	switch x.Op {
	case formula.List, formula.Set, formula.Tuple:
		if x.Op == formula.Tuple {
			return &formula.Expr{Op: formula.List, Args: []*formula.Expr{choose(x, true), choose(x, false)}}
		}
		y := *x
		y.Args = nil
		for _, a := range x.Args {
			if e := expandPM(a); e.Op == formula.List && a.Has(formula.IsPlusMinus) {
				y.Args = append(y.Args, e.Args...)
			} else {
				y.Args = append(y.Args, e)
			}
		}
		return &y
	}
	return &formula.Expr{Op: formula.List, Args: []*formula.Expr{choose(x, true), choose(x, false)}}
}

// choose picks one sign for every ±.
func choose(x *formula.Expr, plus bool) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if y.Op != formula.PlusMinus || len(y.Args) == 0 {
			return y
		}
		first := plus == (y.Name == "±")
		if t := y.Args[1]; t.Op == formula.Tuple && y.Args[0].Op == formula.Num &&
			y.Args[0].Num.Sign() == 0 { // ±(1, 2)
			if first {
				return t
			}
			u := *t
			u.Args = nil
			for _, a := range t.Args {
				u.Args = append(u.Args, formula.Negative(a))
			}
			return &u
		}
		if first {
			return formula.Sum(y.Args...)
		}
		return formula.Difference(y.Args[0], y.Args[1])
	})
}

// describe names the kind of an answer.
func describe(x *formula.Expr) string {
	switch x.Op {
	case formula.Tuple:
		if len(x.Args) == 2 {
			return "a pair or an interval"
		}
		return "a tuple"
	case formula.Set:
		return "a set"
	case formula.List:
		return "a list"
	case formula.Matrix:
		return "a matrix"
	case formula.Relation:
		return "a relation"
	case formula.Union, formula.Intersection, formula.Without:
		return "a region"
	case formula.Text:
		return "words"
	case formula.Cases:
		return "cases"
	case formula.Ratio:
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

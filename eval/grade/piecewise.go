package grade

import (
	"hash/fnv"
	"math"
	"math/big"
	"slices"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// piecewise compares functions by cases with each other, or with one expression.
func (c *comparer) piecewise(g, p *formula.Expr) result {
	if len(g.Args) > 2*maxList || len(p.Args) > 2*maxList {
		return unsure("too many cases")
	}
	if g.Op != formula.Cases || p.Op != formula.Cases {
		return c.casesAgainstOne(g, p)
	}
	if len(g.Args) != len(p.Args) {
		return unsure("another number of cases")
	}
	a, b := c.conditions(g), c.conditions(p)
	used := make([]bool, len(b))
	all := yes("the same cases")
	for i := range a {
		k := -1
		for j := range b {
			if !used[j] && c.sameCondition(a[i], b[j]) {
				k = j
				break
			}
		}
		if k < 0 {
			return unsure("a case with another condition")
		}
		used[k] = true
		r := c.same(g.Args[2*i], p.Args[2*k])
		if !r.equal {
			r.why = "a case: " + r.why
			return r
		}
		all = all.with(r)
	}
	return all
}

// condition is a condition as written, and as a set of real numbers if it is one of one variable.
type condition struct {
	x      *formula.Expr
	pieces []piece
	known  bool
}

// conditions reads the conditions of a function by cases; "otherwise" is the rest of the domain.
func (c *comparer) conditions(x *formula.Expr) []condition {
	var list []condition
	var others []piece
	rest, known := -1, true
	for i := 1; i < len(x.Args); i += 2 {
		d := condition{x: x.Args[i]}
		if isOtherwise(d.x) {
			rest = len(list)
		} else if len(formula.Variables(d.x)) == 1 && d.x.Op != formula.Text {
			d.pieces, d.known = c.region(d.x)
			known = known && d.known
			others = append(others, d.pieces...)
		} else {
			known = false
		}
		list = append(list, d)
	}
	if rest >= 0 && known {
		list[rest].pieces, list[rest].known = complement(merge(others)), true
	}
	return list
}

func isOtherwise(x *formula.Expr) bool {
	return x.Op == formula.Text && slices.Contains([]string{"otherwise", "else", "in other cases", "elsewhere"},
		x.Name)
}

func (c *comparer) sameCondition(a, b condition) bool {
	switch {
	case a.known && b.known:
		return c.samePieces(a.pieces, b.pieces).equal
	case a.x.Op == formula.Text && b.x.Op == formula.Text:
		return wording.Normal(a.x.Name) == wording.Normal(b.x.Name) || isOtherwise(a.x) && isOtherwise(b.x)
	}
	return c.same(a.x, b.x).equal
}

// casesAgainstOne compares at points inside each case; it proves a difference, not equality.
func (c *comparer) casesAgainstOne(g, p *formula.Expr) result {
	x, other := g, p
	if p.Op == formula.Cases {
		x, other = p, g
	}
	if r, ok := c.casesByParity(x, other); ok {
		return r
	}
	vars := formula.Variables(x.Args...)
	if !other.IsScalar() || len(vars) != 1 {
		return unsure("cases against one expression")
	}
	tried := 0
	var covered []piece
	for i, d := range c.conditions(x) {
		if !d.known {
			return unsure("cases against one expression")
		}
		covered = append(covered, d.pieces...)
		for _, s := range d.pieces {
			for k, v := range pointsOf(s, other.String()) {
				at := new(big.Rat)
				if at.SetFloat64(v) == nil {
					return unsure("cases without points")
				}
				place := &formula.Point{Values: map[string]*big.Rat{vars[0]: at}}
				if r := c.values(formula.Substitute(x.Args[2*i], place), formula.Substitute(other, place)); !r.equal {
					return r
				}
				tried++
				if k >= 2+len(nearEnds(s)) && c.SameForm(x.Args[2*i], c.withoutBars(other, place)) {
					break // the same function in the whole piece
				}
			}
		}
	}
	if tried < 3 {
		return unsure("cases without points")
	}
	if c.isDefinedIn(complement(merge(covered)), other, vars[0]) {
		return unsure("the expression has values that no case gives")
	}
	return likely("equal at points of every case")
}

// isDefinedIn reports whether an expression has values at points of the pieces.
func (c *comparer) isDefinedIn(list []piece, x *formula.Expr, name string) bool {
	for _, s := range list {
		for _, v := range pointsOf(s, x.String())[:3] {
			at := new(big.Rat)
			if at.SetFloat64(v) == nil {
				continue
			}
			if _, ok := c.Evaluate(x, &formula.Point{Values: map[string]*big.Rat{name: at}}); ok {
				return true
			}
		}
	}
	return false
}

// nearEnds returns points just inside the finite ends of a piece, where a function by cases that changes too late
// differs.
func nearEnds(s piece) []float64 {
	width := 1.0
	if !math.IsInf(s.lo, 0) && !math.IsInf(s.hi, 0) {
		width = s.hi - s.lo
	}
	var list []float64
	if !math.IsInf(s.lo, 0) {
		list = append(list, s.lo+width/(1<<20))
	}
	if !math.IsInf(s.hi, 0) {
		list = append(list, s.hi-width/(1<<20))
	}
	return list
}

// pointsOf returns points inside a piece: three that divide it, those near its ends, then others that depend on the
// text, so that no expression is made to fit them.
func pointsOf(s piece, text string) []float64 {
	middle := between(s.lo, s.hi)
	list := []float64{middle, between(s.lo, middle), between(middle, s.hi)}
	list = append(list, nearEnds(s)...)
	h := fnv.New64a()
	h.Write([]byte(text))
	for range 12 {
		h.Write([]byte{1})
		u := (float64(h.Sum64()>>44) + 0.5) / (1 << 20) // in (0, 1)
		switch {
		case !math.IsInf(s.lo, 0) && !math.IsInf(s.hi, 0):
			list = append(list, s.lo+u*(s.hi-s.lo))
		case !math.IsInf(s.lo, 0):
			list = append(list, s.lo+64*u*u)
		case !math.IsInf(s.hi, 0):
			list = append(list, s.hi-64*u*u)
		default:
			list = append(list, 128*(u-0.5))
		}
	}
	return list
}

// withoutBars writes |u| as u or -u, whichever it is at a point.
func (c *comparer) withoutBars(x *formula.Expr, at *formula.Point) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if y.Op != formula.Func || y.Name != "abs" || len(y.Args) == 0 {
			return y
		}
		v, ok := c.Evaluate(y.Args[0], at)
		switch {
		case !ok:
			return y
		case real(v.V) < 0:
			return formula.Negative(y.Args[0])
		}
		return y.Args[0]
	})
}

package grade

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// units compares values if at least one has a unit. A unit that only one side gives counts as implied by
// the question. Words that are not a unit make the verdict unsure: they may change the value.
func (c *comparer) units(g, p *formula.Expr) result {
	if g.Op != formula.Unit || p.Op != formula.Unit {
		return c.oneUnit(g, p)
	}
	gq, pq := wording.QuantityOf(g.Name), wording.QuantityOf(p.Name)
	a, b := scaled(g, gq), scaled(p, pq)
	factor, same, known := gq.SameAs(pq)
	switch {
	case same && factor.Cmp(big.NewRat(1, 1)) == 0:
		return c.same(a, b)
	case same:
		r := c.same(a, formula.Product(b, formula.Number(factor)))
		r.why += "; units converted"
		return r
	case known:
		return no(fmt.Sprintf("%q is not a unit like %q", p.Name, g.Name))
	}
	r := c.same(a, b)
	if r.equal {
		return unsure(fmt.Sprintf("equal numbers, but of %q and %q", p.Name, g.Name))
	}
	return r
}

// money is the dimension of dollars and cents; a number without a unit can mean it.
var money = wording.QuantityOf("dollars").Dim

// oneUnit compares a value with words after it and one without.
func (c *comparer) oneUnit(g, p *formula.Expr) result {
	x := g
	if p.Op == formula.Unit {
		x = p
	}
	q := wording.QuantityOf(x.Name)
	if !q.Known {
		return unsure(fmt.Sprintf("%q is not a unit", shorten(x.Name)))
	}
	if q.Notation && x == p {
		return no("only the answer says how the number is read")
	}
	other := g
	if x == g {
		other = p
	}
	if other.Op == formula.Degree && slices.Contains([]string{"rad", "radian", "radians"}, strings.TrimSpace(x.Name)) {
		return c.values(x.Args[0], other)
	}
	if other.Op == formula.Percent || other.Op == formula.Degree || other.Op == formula.Ratio ||
		x.Args[0].Op == formula.Percent ||
		x.Args[0].Op == formula.Degree || x.Args[0].Op == formula.Ratio {
		return no("a unit against another")
	}
	if x.Parts > 0 && q.Dim != money {
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
	return r.by(UnitRule)
}

// scaled multiplies a value by the dozen or million before its unit.
func scaled(x *formula.Expr, q wording.Quantity) *formula.Expr {
	if q.Scale.Cmp(big.NewRat(1, 1)) == 0 {
		return x.Args[0]
	}
	return formula.Product(x.Args[0], formula.Number(q.Scale))
}

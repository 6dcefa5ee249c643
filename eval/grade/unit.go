package grade

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// units compares values if at least one has a unit. A unit that only one side gives counts as implied by
// the question. Words that are not a unit make the verdict unsure: they may change the value.
func (c *comparer) units(g, p *formula.Expr) result {
	if g.Op != formula.Unit || p.Op != formula.Unit {
		return c.oneUnit(g, p)
	}
	if n, m := modulus(g.Name), modulus(p.Name); n != nil && m != nil {
		if n.Cmp(m) != 0 {
			return no("another modulus")
		}
		return c.residues(g.Args[0], p.Args[0], n)
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
		if n := modulus(x.Name); n != nil {
			if r, ok := c.progression(x.Args[0], p, n); ok {
				return r
			}
		}
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

// poundsInWords matches pounds, of money where the gold answer has that sign.
var poundsInWords = pattern.New(`([0-9]) ?(?:\\text\{ *)?pounds?\b *\}?`)

// unitsInText writes the letters behind a value as a unit if the gold answer has one: 8 m/s, 100 m.
func unitsInText(gold, prediction string) string {
	if !strings.Contains(gold, "m") {
		prediction = powerOfMetres.ReplaceAllString(prediction, `$1\text{ m}$2`)
		prediction = metresPerSecond.ReplaceAllString(prediction, `$1\text{ m/s}$2`)
	}
	if m := measured(gold); m != "" && measured(prediction) == "" {
		if n := letterUnit.FindStringSubmatch(prediction); n != nil {
			if q := wording.QuantityOf(n[2]); q.Known && q.Measured || n[2] == m {
				prediction = n[1] + `\text{ ` + n[2] + "}"
			}
		}
	}
	if strings.Contains(prediction, "'") && feetOrInches.MatchString(gold) {
		prediction = feetAndInches.ReplaceAllString(prediction, `$1\text{ feet }$2\text{ inches}`)
	}
	return prediction
}

// plainUnits writes the letters behind both values as units if these measure the same: 5 km, 5000 m. Letters behind
// one value alone may be variables.
func plainUnits(gold, prediction string) (string, string) {
	if !plainUnit.MatchString(gold) {
		return gold, prediction
	}
	g, p := plainUnit.FindStringSubmatch(gold), letterUnit.FindStringSubmatch(prediction)
	if p == nil || g[2] == p[2] {
		return gold, prediction
	}
	a, b := wording.QuantityOf(g[2]), wording.QuantityOf(p[2])
	if _, same, _ := a.SameAs(b); !same || !a.Measured || !b.Measured {
		return gold, prediction
	}
	return g[1] + `\text{ ` + g[2] + "}", p[1] + `\text{ ` + p[2] + "}"
}

// plainUnit matches a number and letters that may be a unit: 5 km.
var plainUnit = pattern.New(`^([-−]?[0-9][0-9.,/]*) ?([a-zA-Z][a-zA-Z0-9/^²³]*)$`)

// valueInText matches a value and its unit that are one text: \text{48 cm}.
var valueInText = pattern.New(`^\\(?:text|textbf|mathrm|mbox)\{\s*([-−]?[0-9][0-9.,/]* ?[a-zA-Z]+)\s*\}$`)

// measured returns the unit of measure that an answer ends in, if it is in a text of its own or a word.
func measured(s string) string {
	if !strings.Contains(s, "\\") {
		return ""
	}
	m := textUnit.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	if q := wording.QuantityOf(m[1]); !q.Known || !q.Measured {
		return ""
	}
	return m[1]
}

var (
	// letterUnit matches a value and letters that may be a unit or variables: 8 m/s, 1500 g.
	letterUnit = pattern.New(`^\$?(.*[0-9}²³])(?:[ ~$]|\\[,; ])*(?:\\(?:mathrm|rm|mbox|text) ?\{)?[ ~]*` +
		`([a-zA-Z][a-zA-Z0-9/^²³ ]*?)\}?\$?$`)
	// feetAndInches matches 5'6'' or 5'6", which is an angle elsewhere.
	feetAndInches = pattern.New(`^([0-9]+)' ?([0-9]+)(?:''|"|″|”)$`)
	feetOrInches  = pattern.New(`\b(?:feet|foot|ft|inch(?:es)?)\b`)
)

var (
	// powerOfMetres matches an area or a volume whose unit is a letter: 378 m^3.
	powerOfMetres = pattern.New(`^([0-9][0-9.,]*) m(\^\{?[23]\}?)$`)
	// metresPerSecond matches a speed or an acceleration whose units are letters: 5 m/s.
	metresPerSecond = pattern.New(`^([-−]?[0-9][0-9.,]*) m/s(\^\{?2\}?|²|)$`)
)

// textUnit matches words at the end of a gold answer.
var textUnit = pattern.New(`\\(?:text|mathrm|mbox|rm)\{[ ~]*([a-zA-Z][a-zA-Z/. ]*)\}(?:\^\{?[23]\}?)?\$?$`)

package grade

import (
	"math/big"
	"slices"

	"exp/eval/grade/formula"
)

// Formulas of natural numbers. Factorials, binomial coefficients and sums up to n have values there alone, and ⌈n/2⌉
// equals ⌊(n+1)/2⌋ there alone.

// countingNames are variables that are natural numbers in a formula that rounds them up or down.
var countingNames = []string{"n", "m", "k", "N", "M"}

// naturals compares two formulas of natural numbers at natural points; ok is false for other formulas.
func (c *comparer) naturals(g, p *formula.Expr) (r result, ok bool) {
	vars := formula.FreeVariables(g)
	if len(vars) == 0 || len(vars) > 3 || !slices.Equal(vars, formula.FreeVariables(p)) {
		return result{}, false
	}
	rounds := g.Has(isRounding) || p.Has(isRounding)
	if rounds && slices.ContainsFunc(vars, func(v string) bool { return !slices.Contains(countingNames, v) }) ||
		!rounds && !g.Has(isCombinatorial) && !p.Has(isCombinatorial) {
		return result{}, false
	}
	decided := 0
	for _, at := range naturalPoints(vars) {
		a, ok := c.Rational(formula.Substitute(g, &at))
		b, ok2 := c.Rational(formula.Substitute(p, &at))
		if !ok || !ok2 {
			continue
		}
		if a.Cmp(b) != 0 {
			return no("different values"), true
		}
		decided++
	}
	if decided < 10 {
		return result{}, false
	}
	r = yes("equal values at natural numbers")
	if rounds {
		r = r.by(Convention)
	}
	return r, true
}

// naturalPoints gives natural numbers to one, two or three variables.
func naturalPoints(vars []string) []formula.Point {
	most := []int64{24, 7, 4}[len(vars)-1]
	var list []formula.Point
	values := make([]int64, len(vars))
	for i := range values {
		values[i] = 1
	}
	for {
		at := formula.Point{Values: map[string]*big.Rat{}}
		for i, v := range vars {
			at.Values[v] = big.NewRat(values[i], 1)
		}
		list = append(list, at)
		i := 0
		for ; i < len(values) && values[i] == most; i++ {
			values[i] = 1
		}
		if i == len(values) {
			return list
		}
		values[i]++
	}
}

// isRounding reports whether x rounds a variable up or down.
func isRounding(x *formula.Expr) bool {
	return x.Op == formula.Func && (x.Name == "floor" || x.Name == "ceil") && len(formula.Variables(x)) > 0
}

// isCombinatorial reports whether x is a factorial or a binomial coefficient of a variable, or has as many terms or
// factors as a variable says.
func isCombinatorial(x *formula.Expr) bool {
	return formula.HasOpenSeries(x) || x.Op == formula.Func && len(formula.Variables(x)) > 0 &&
		slices.Contains([]string{"fact", "fact2", "binom"}, x.Name)
}

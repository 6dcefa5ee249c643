package grade

import (
	"math/big"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// casesByParity compares a function of a whole number, by cases for even and odd ones, with one expression at the
// first natural numbers; ok is false if it has other cases.
func (c *comparer) casesByParity(x, other *formula.Expr) (r result, ok bool) {
	name, even, odd := parities(x)
	if name == "" || !other.IsScalar() || !even.IsScalar() || !odd.IsScalar() ||
		slices.ContainsFunc(formula.Variables(even, odd, other), func(v string) bool { return v != name }) {
		return result{}, false
	}
	const most = 24
	for n := int64(1); n <= most; n++ {
		at := formula.Point{Values: map[string]*big.Rat{name: big.NewRat(n, 1)}}
		branch := even
		if n%2 == 1 {
			branch = odd
		}
		a, ok := c.Rational(formula.Substitute(branch, &at))
		b, ok2 := c.Rational(formula.Substitute(other, &at))
		if !ok || !ok2 {
			return result{}, false
		}
		if a.Cmp(b) != 0 {
			return no("different values"), true
		}
	}
	return yes("equal values at natural numbers"), true
}

// parities returns the variable of two cases and their expressions for even and odd values; the name is empty if x has
// other cases.
func parities(x *formula.Expr) (name string, even, odd *formula.Expr) {
	if x.Op != formula.Cases || len(x.Args) != 4 {
		return "", nil, nil
	}
	first, which := parityOf(x.Args[1])
	second, which2 := parityOf(x.Args[3])
	switch {
	case first == "" || which == which2 || second != first && !isOtherwise(x.Args[3]):
		return "", nil, nil
	case which == "even":
		return first, x.Args[0], x.Args[2]
	}
	return first, x.Args[2], x.Args[0]
}

// parityOf returns the name and the quality in "n is even"; both are empty if a condition is something else.
func parityOf(x *formula.Expr) (name, which string) {
	if x.Op != formula.Text {
		return "", ""
	}
	words := strings.Fields(wording.Normal(strings.ReplaceAll(x.Name, "$", "")))
	if len(words) != 2 || len(words[0]) != 1 || words[1] != "even" && words[1] != "odd" {
		return "", ""
	}
	return words[0], words[1]
}

package latex

import (
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// numeralOf reads a number in words and the counted nouns after it.
func numeralOf(text string) *formula.Expr {
	if v, ok := wording.HanNumeral(text); ok {
		return formula.Integer(v)
	}
	unsigned := strings.TrimLeft(strings.TrimSpace(text), "-−")
	list := strings.Fields(strings.ToLower(strings.NewReplacer("-", " ", ".", " ").Replace(unsigned)))
	if len(list) == 0 || len(list) > 30 {
		return nil
	}
	sign := list[0] == "negative" || list[0] == "minus"
	if sign {
		list = list[1:]
	}
	if unsigned != strings.TrimSpace(text) { // -seven
		sign = !sign
	}
	v, n := wording.Numeral(list)
	if n > 0 && sign {
		v.Neg(v)
	}
	switch {
	case n == 0:
		return nil
	case n == len(list):
		return formula.Number(v)
	}
	rest := strings.Join(list[n:], " ")
	if q := wording.QuantityOf(rest); !q.Known || wording.IsNumeral(list[n]) {
		return nil
	}
	return &formula.Expr{Op: formula.Unit, Name: rest, Args: []*formula.Expr{formula.Number(v)}}
}

// wordsOnly reads a number or a set in words.
func wordsOnly(s string) *formula.Expr {
	if len(s) > 200 || strings.ContainsAny(s, "0123456789=+^_") {
		return nil
	}
	t := strings.Trim(wording.Bare(s), " .")
	if t == "" || len(t) == 1 || strings.ContainsAny(t, "\\") {
		return nil
	}
	if x := SetInWords(wording.Normal(t)); x != nil {
		return x
	}
	return numeralOf(t)
}

// SetInWords returns the set that words name, or nil. The words are in lower case, without articles.
func SetInWords(w string) *formula.Expr {
	if len(w) > 60 || len(w) < 3 {
		return nil
	}
	switch w {
	case "empty set", "no solution", "no solutions", "no real solutions", "no real solution", "there are no solutions",
		"there is no solution", "has no solution", "has no solutions", "no solutions exist",
		"no solution exists", "none exist", "none", "no such number exists":
		return formula.Symbol(formula.Empty)
	case "infinity", "infinite", "infinitely many", "infinitely many solutions", "infinite solutions",
		"infinite number", "infinite number of solutions", "infinitely many values", "positive infinity":
		return formula.Symbol(formula.Infinity)
	case "negative infinity", "minus infinity":
		return formula.Negative(formula.Symbol(formula.Infinity))
	}
	t := strings.TrimSuffix(strings.TrimSuffix(w, " numbers"), " number")
	t = strings.TrimSuffix(strings.TrimSuffix(t, " values"), " value")
	t = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(t, "set of "), "all "), "any ")
	t = strings.TrimSuffix(strings.TrimPrefix(t, "every "), "s")
	side, real := strings.CutSuffix(t, "real")
	if !real || t == w && t == "real" {
		return nil
	}
	zero, infinite := formula.Integer(0), formula.Symbol(formula.Infinity)
	switch strings.TrimSpace(side) {
	case "":
		return formula.Symbol(formula.Reals)
	case "positive":
		return &formula.Expr{Op: formula.Tuple, Open: '(', Close: ')', Args: []*formula.Expr{zero, infinite}}
	case "negative":
		return &formula.Expr{Op: formula.Tuple, Open: '(', Close: ')',
			Args: []*formula.Expr{formula.Negative(infinite), zero}}
	case "nonnegative", "non negative":
		return &formula.Expr{Op: formula.Tuple, Open: '[', Close: ')', Args: []*formula.Expr{zero, infinite}}
	case "nonpositive", "non positive":
		return &formula.Expr{Op: formula.Tuple, Open: '(', Close: ']',
			Args: []*formula.Expr{formula.Negative(infinite), zero}}
	case "nonzero", "non zero":
		return &formula.Expr{Op: formula.Without, Args: []*formula.Expr{formula.Symbol(formula.Reals),
			{Op: formula.Set, Args: []*formula.Expr{zero}}}}
	}
	return nil
}

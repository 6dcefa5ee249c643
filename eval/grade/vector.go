package grade

import (
	"math/big"
	"slices"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
)

// unitVectors are the names of the axes.
var unitVectors = []string{formula.I, "j", "k"}

// components returns the coordinates of a sum of multiples of i, j and k.
func components(x *formula.Expr, n int) ([]*formula.Expr, bool) {
	terms := []*formula.Expr{x}
	if x.Op == formula.Add {
		terms = x.Args
	}
	coordinates := make([][]*formula.Expr, n)
	for _, t := range terms {
		factors := []*formula.Expr{t}
		for len(factors) > 0 && slices.ContainsFunc(factors,
			func(f *formula.Expr) bool { return f.Op == formula.Mul }) {
			var flat []*formula.Expr
			for _, f := range factors {
				if f.Op == formula.Mul {
					flat = append(flat, f.Args...)
				} else {
					flat = append(flat, f)
				}
			}
			factors = flat
		}
		axis := -1
		var rest []*formula.Expr
		for _, f := range factors {
			k := -1
			if f.Op == formula.Sym {
				k = slices.Index(unitVectors, f.Name)
			}
			if k < 0 {
				rest = append(rest, f)
				continue
			}
			if axis >= 0 || k >= n {
				return nil, false
			}
			axis = k
		}
		if axis < 0 {
			return nil, false
		}
		coordinates[axis] = append(coordinates[axis], formula.Product(append(rest, formula.Integer(1))...))
	}
	out := make([]*formula.Expr, n)
	for i, c := range coordinates {
		out[i] = formula.Sum(append(c, formula.Number(new(big.Rat)))...)
	}
	return out, true
}

// asTuple writes i + 2j + 3k as a tuple if the other side is a vector of that many numbers.
func asTuple(x, like *formula.Expr) *formula.Expr {
	if like.Op == formula.Tuple && isPoint(x) {
		return x.Args[1]
	}
	n := 0
	switch {
	case like.Op == formula.Tuple && like.Open == '(':
		n = len(like.Args)
	case like.Op == formula.Matrix && (like.Cols == 1 || len(like.Args) == like.Cols):
		n = len(like.Args)
	}
	if n < 2 || n > 3 || !x.IsScalar() || !x.Has(func(a *formula.Expr) bool {
		return a.Op == formula.Sym && (a.Name == "j" || a.Name == "k")
	}) {
		return x
	}
	if list, ok := components(x, n); ok {
		return &formula.Expr{Op: formula.Tuple, Open: '(', Close: ')', Args: list}
	}
	return x
}

// isPoint reports whether x is a point with its coordinates: M(-3, 5).
func isPoint(x *formula.Expr) bool {
	return x.Op == formula.Mul && len(x.Args) == 2 && x.Args[0].Op == formula.Sym && x.Args[1].Op == formula.Tuple &&
		len(x.Args[0].Name) == 1 && x.Args[0].Name < "a"
}

// inGoldNotation writes constants of the gold answer, i and e, as it does: from the j of engineers, and from the I and
// E of computer algebra if the answer is in such notation.
func inGoldNotation(g, p *formula.Expr, prediction string) *formula.Expr {
	letters := [][2]string{{"j", formula.I}}
	if algebraic.MatchString(prediction) {
		letters = append(letters, [2]string{"I", formula.I}, [2]string{"E", formula.E})
	}
	for _, l := range letters {
		constant := func(x *formula.Expr) bool { return x.Op == formula.Sym && x.Name == l[1] }
		if g.Has(constant) && (l[0] != "j" || !p.Has(constant)) && slices.Contains(formula.Variables(p), l[0]) &&
			!slices.Contains(formula.Variables(g), l[0]) {
			p = formula.Rename(p, l[0], l[1])
		}
	}
	return p
}

// algebraic matches the notation of computer algebra: 3*I, exp(2).
var algebraic = pattern.New(`^[^\\]*(?:\*|\b(?:sqrt|exp|log|sin|cos|tan|atan)\()[^\\]*$`)

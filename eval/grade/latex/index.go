package latex

import (
	"strconv"
	"strings"

	"exp/eval/grade/formula"
)

// Names with a subscript that depends on a bound variable: the a_k of a sum over k.

// indexed is the function that gives a name with a bound subscript. It has no values.
const indexed = "_"

// cutIndex splits a name with a subscript.
func cutIndex(name string) (base, index string, ok bool) {
	k := strings.IndexByte(name, '_')
	if k <= 0 {
		return name, "", false
	}
	return name[:k], name[k+1:], true
}

// bindIndex writes a_k as a function of k, where k is to be bound.
func bindIndex(x *formula.Expr, v string) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if y.Op != formula.Sym {
			return y
		}
		base, index, ok := cutIndex(y.Name)
		if !ok || !strings.Contains(index, v) {
			return y
		}
		after := strings.TrimPrefix(index, v)
		n, err := strconv.ParseInt(after, 10, 32)
		if after == "" || err == nil && (after[0] == '+' || after[0] == '-') {
			return formula.Call(indexed, formula.Symbol(base), formula.Sum(formula.Symbol(v), formula.Integer(n)))
		}
		return formula.Call(indexed, formula.Symbol(base), formula.Symbol(v),
			formula.Symbol(formula.BoundName+strings.ReplaceAll(index, v, formula.BoundName)))
	})
}

// atIndex puts a value in the place of a variable, in subscripts too: a_k is a_3 at 3.
func atIndex(x *formula.Expr, v string, value *formula.Expr) *formula.Expr {
	return formula.Rewrite(bindIndex(x, v), func(y *formula.Expr) *formula.Expr {
		switch {
		case y.Op == formula.Sym && y.Name == v:
			return value
		case y.Op == formula.Func && y.Name == indexed && len(y.Args) == 2:
			b := formula.NewBudget(100)
			if n, ok := b.Rational(y.Args[1]); ok && n.IsInt() {
				return formula.Symbol(y.Args[0].Name + "_" + n.RatString())
			}
		}
		return y
	})
}

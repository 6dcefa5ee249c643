package grade

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// Names on the left of an equation: functions of arguments, and elements of sequences.

// isApplication reports whether x is a function of anything: f'(3), P(X = 1).
func isApplication(x *formula.Expr) bool {
	if x.Op != formula.Mul || len(x.Args) != 2 {
		return false
	}
	if f := x.Args[0]; f.Op == formula.Pow && isReciprocal(f) && f.Args[0].Op == formula.Sym { // f^{-1}(2)
		return strings.Contains("fgh", f.Args[0].Name)
	}
	if x.Args[0].Op != formula.Sym {
		return false
	}
	name, _, _ := strings.Cut(x.Args[0].Name, "_")
	return strings.HasSuffix(name, "'") || len(name) == 1 && strings.Contains("fghFGHPQEVSTN", name) ||
		slices.Contains([]string{"Area", "Var", "Pr"}, name)
}

// sameNames compares the left sides of two equations.
func (c *comparer) sameNames(g, p *formula.Expr) result {
	if g.String() == p.String() || isApplication(g) && isApplication(p) && g.Args[0].Op == formula.Sym &&
		g.Args[0].Name == p.Args[0].Name &&
		len(arguments(g)) > 0 && len(arguments(g)) == len(arguments(p)) {
		return yes("the same name")
	}
	if a, i := indexed(g); a != "" {
		if b, j := indexed(p); a == b && i != j {
			return yes("the same sequence")
		}
	}
	return c.same(g, p)
}

// indexed returns the name and the index of an element of a sequence, such as a_n.
func indexed(x *formula.Expr) (name, index string) {
	name, index, ok := strings.Cut(x.Name, "_")
	if x.Op != formula.Sym || !ok || len(index) != 1 || !strings.Contains("ijkmn", index) {
		return "", ""
	}
	return name, index
}

// sameArguments renames the arguments of p's function to g's: f(t) = 2t is f(x) = 2x, and a_k = 2^k is a_n = 2^n.
func sameArguments(g, p, value *formula.Expr) *formula.Expr {
	if _, i := indexed(p); i != "" {
		if _, n := indexed(g); n != "" {
			return renamed(value, []string{i}, []string{n})
		}
	}
	if !isApplication(g) || !isApplication(p) || g.Args[0].Op != formula.Sym || g.Args[0].Name != p.Args[0].Name {
		return value
	}
	return renamed(value, arguments(p), arguments(g))
}

// renamed gives variables other names. A variable that has one of these already is another one: f(x) = z is not
// f(z) = z.
func renamed(x *formula.Expr, from, to []string) *formula.Expr {
	if len(from) != len(to) || slices.Equal(from, to) {
		return x
	}
	for i, v := range from {
		x = formula.Rename(x, v, latex.BoundName+"f"+strconv.Itoa(i))
	}
	for i, v := range to {
		x = formula.Rename(x, v, latex.BoundName+"g"+strconv.Itoa(i))
		x = formula.Rename(x, latex.BoundName+"f"+strconv.Itoa(i), v)
	}
	return x
}

// arguments returns the variables that f is applied to, nil if an argument is not a variable.
func arguments(x *formula.Expr) []string {
	list := []*formula.Expr{x.Args[1]}
	if list[0].Op == formula.Tuple {
		list = list[0].Args
	}
	var names []string
	for _, a := range list {
		if a.Op != formula.Sym || slices.Contains(names, a.Name) {
			return nil
		}
		names = append(names, a.Name)
	}
	return names
}

// isOneName reports whether x names one thing. The ny of ny = 2x names two, and f(4) is a value.
func isOneName(x *formula.Expr) bool {
	return (x.Op != formula.Mul || isApplication(x) || isInverse(x)) &&
		(x.Op != formula.Sym || !strings.Contains(x.Name, "("))
}

// dependsOn reports whether g is the name p with a variable of the value in brackets: y(t) of y(t) = 2t, for y.
func dependsOn(g, p, value *formula.Expr) bool {
	return g.Op == formula.Mul && len(g.Args) == 2 && p.Op == formula.Sym && g.Args[0].String() == p.String() &&
		g.Args[1].Op == formula.Sym && slices.Contains(formula.Variables(value), g.Args[1].Name)
}

// isInverse reports whether x is f^{-1}(v).
func isInverse(x *formula.Expr) bool {
	if x.Op != formula.Mul || len(x.Args) != 2 || x.Args[1].Op != formula.Sym {
		return false
	}
	f := x.Args[0]
	return f.Op == formula.Pow && f.Args[0].Op == formula.Sym && f.Args[1].Op == formula.Num &&
		f.Args[1].Num.Cmp(big.NewRat(-1, 1)) == 0
}

// isFunctionOf reports whether x is f(v) or f(…, v, …).
func isFunctionOf(x *formula.Expr, v string) bool {
	return x.Op == formula.Mul && len(x.Args) == 2 && x.Args[0].Op == formula.Sym &&
		(x.Args[1].Op == formula.Sym && x.Args[1].Name == v || x.Args[1].Op == formula.Tuple &&
			slices.Contains(arguments(x), v))
}

// isValueOfFunction reports whether x is f(v), or the y that stands for it.
func isValueOfFunction(x *formula.Expr) bool {
	return x.Op == formula.Sym && isOneName(x) || x.Op == formula.Mul && len(x.Args) == 2 &&
		x.Args[0].Op == formula.Sym && x.Args[1].Op != formula.Num &&
		strings.Contains("fghpquvFGHPQ", x.Args[0].Name)
}

package formula

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// BoundName begins the names of bound variables; no written variable has it.
const BoundName = "•"

// BoundBy returns the name of the variable that an operator on the body x binds. It tells how deeply operators are
// nested in x.
func BoundBy(x *Expr) string { return BoundName + strconv.Itoa(1+nesting(x)) }

// nesting is the largest number of operators with bound variables inside each other.
func nesting(x *Expr) int {
	most := 0
	for i, a := range x.Args {
		n := nesting(a)
		if i == 0 && binds(x) {
			n++
		}
		most = max(most, n)
	}
	return most
}

// binds reports whether x is an operator with a bound variable in its first argument.
func binds(x *Expr) bool {
	return x.Op == Func && (isSeries(x) || x.Name == "∫" && len(x.Args) == 3 || strings.HasPrefix(x.Name, "lim"))
}

// isSeries reports whether x is a sum or product of args[0] from args[1] to args[2].
func isSeries(x *Expr) bool {
	return x.Op == Func && (x.Name == "∑" || x.Name == "∏") && len(x.Args) == 3
}

// HasOpenSeries reports whether x has a sum or product whose bounds have variables.
func HasOpenSeries(x *Expr) bool {
	return x.Has(func(y *Expr) bool { return isSeries(y) && len(FreeVariables(y.Args[1], y.Args[2])) > 0 })
}

// FreeVariables returns the variables that no operator binds.
func FreeVariables(list ...*Expr) []string {
	return slices.DeleteFunc(Variables(list...), func(v string) bool { return strings.HasPrefix(v, BoundName) })
}

// mostSummands bounds the evaluation of a sum or product.
const mostSummands = 4000

// series evaluates a sum or product term by term. An empty one is 0 or 1.
func (b *Budget) series(x *Expr) (*big.Rat, bool) {
	lo, ok := b.Rational(x.Args[1])
	hi, ok2 := b.Rational(x.Args[2])
	if !ok || !ok2 || !lo.IsInt() || !hi.IsInt() {
		return nil, false
	}
	n, ok := SmallNatural(new(big.Rat).Sub(new(big.Rat).Add(hi, big.NewRat(1, 1)), lo), mostSummands)
	if !ok {
		return nil, false
	}
	acc, k := new(big.Rat), BoundBy(x.Args[0])
	if x.Name == "∏" {
		acc.SetInt64(1)
	}
	at := Point{Values: map[string]*big.Rat{}}
	for i := range n {
		at.Values[k] = new(big.Rat).Add(lo, big.NewRat(int64(i), 1))
		if !b.Spend(x.Args[0].Size(100)) {
			return nil, false
		}
		v, ok := b.Rational(Substitute(x.Args[0], &at))
		if !ok || !b.spendOn(acc, v) || !b.Spend(ratBits(acc)/16) { // fractions are reduced
			return nil, false
		}
		if x.Name == "∏" {
			acc.Mul(acc, v)
		} else {
			acc.Add(acc, v)
		}
	}
	return acc, true
}

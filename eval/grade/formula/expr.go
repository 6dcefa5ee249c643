// Package formula holds expressions of mathematics and computes with them: exact rational values (rational.go),
// canonical forms (polynomial.go, canonical.go), values at points with error bounds (evaluate.go) and at 256 bits
// (precise.go, elementary.go).
//
// A Budget bounds the work on any expression. It counts operations, not seconds, so a result is the same on every
// machine.
package formula

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Op is the kind of an expression.
type Op uint8

// The kinds. Lower-case names are fields of Expr.
const (
	Num          Op = iota // num; decimals if it was written with a point
	Sym                    // name: a variable, or pi, e, i, inf
	Add                    // sum of args
	Mul                    // product of args
	Pow                    // args[0] ^ args[1]
	Func                   // name(args...)
	PlusMinus              // args[0] ± args[1]; name is "+-" or "-+"
	Percent                // args[0] per cent
	Degree                 // args[0] degrees
	Base                   // the digits name in the base args[0]
	Unit                   // args[0] of the unit name; currency too
	Ratio                  // args[0] : args[1] : …
	Tuple                  // (a, b), [a, b), …; open and close are the brackets
	Set                    // {a, b, …}
	List                   // a, b, … without brackets; name is "or" or "and" if words join them
	Matrix                 // args row after row; cols columns
	Relation               // args[0] name[0] args[1] name[1] …; rels holds the signs
	Union                  // args[0] ∪ args[1]
	Intersection           // args[0] ∩ args[1]
	Without                // args[0] \ args[1]
	Text                   // name: words
	Cases                  // args[0] where args[1], args[2] where args[3], …
)

// Expr is a node of an expression tree. It is immutable.
type Expr struct {
	Op          Op
	Num         *big.Rat
	Decimals    int    // of a number written as a decimal: digits after the point
	Digits      int    // and significant digits
	Decimal     bool   // written with a point or an exponent
	Name        string // see Op
	Rels        []string
	Open, Close byte
	Cols        int
	Parts       int  // of a Unit: further units it was written in, 1 for feet and inches
	OpenBase    bool // of ln: written as log, which is to the base 10 for some
	Args        []*Expr
}

// Number returns an exact number.
func Number(r *big.Rat) *Expr { return &Expr{Op: Num, Num: r} }

// Integer returns n as a number.
func Integer(n int64) *Expr { return Number(big.NewRat(n, 1)) }

// Symbol returns a variable or constant.
func Symbol(name string) *Expr { return &Expr{Op: Sym, Name: name} }

// Sum returns the sum of its arguments.
func Sum(args ...*Expr) *Expr { return &Expr{Op: Add, Args: args} }

// Product returns the product of its arguments.
func Product(args ...*Expr) *Expr { return &Expr{Op: Mul, Args: args} }

// Power returns base^exp.
func Power(base, exp *Expr) *Expr { return &Expr{Op: Pow, Args: []*Expr{base, exp}} }

// Call returns f(a…).
func Call(f string, a ...*Expr) *Expr { return &Expr{Op: Func, Name: f, Args: a} }

// Quotient returns a/b.
func Quotient(a, b *Expr) *Expr { return Product(a, Power(b, Integer(-1))) }

// Root returns the square root of a.
func Root(a *Expr) *Expr { return Power(a, Number(big.NewRat(1, 2))) }

// Difference returns a - b.
func Difference(a, b *Expr) *Expr { return Sum(a, Negative(b)) }

// Negative keeps literals literal, so that -0.5 stays a decimal.
func Negative(a *Expr) *Expr {
	if a.Op == Num {
		n := *a
		n.Num = new(big.Rat).Neg(a.Num)
		return &n
	}
	return Product(Integer(-1), a)
}

// Size counts nodes, up to limit.
func (x *Expr) Size(limit int) int {
	n := 1
	for _, a := range x.Args {
		if n >= limit {
			return n
		}
		n += a.Size(limit - n)
	}
	return n
}

// Has reports whether some node of x satisfies test.
func (x *Expr) Has(test func(*Expr) bool) bool {
	return test(x) || slices.ContainsFunc(x.Args, func(a *Expr) bool { return a.Has(test) })
}

// IsScalar reports whether x stands for one number or function of variables.
func (x *Expr) IsScalar() bool {
	return !x.Has(func(n *Expr) bool {
		switch n.Op {
		case Tuple, Set, List, Matrix, Relation, Union, Intersection, Without, Text, PlusMinus, Ratio, Cases:
			return true
		}
		return false
	})
}

// IsInfinite reports whether ∞ occurs in x.
func (x *Expr) IsInfinite() bool {
	return x.Has(func(n *Expr) bool { return n.Op == Sym && n.Name == Infinity })
}

// Names of constants. Variables keep their written names.
const (
	Pi       = "π"
	E        = "e"
	I        = "i"
	Infinity = "∞"
	Reals    = "ℝ"
	Empty    = "∅"
)

// Variables lists the free variables of x in order.
func Variables(list ...*Expr) []string {
	var names []string
	var walk func(*Expr)
	walk = func(x *Expr) {
		if x.Op == Sym {
			switch x.Name {
			case Pi, E, I, Infinity, Reals, Empty:
			default:
				if !slices.Contains(names, x.Name) {
					names = append(names, x.Name)
				}
			}
		}
		for _, a := range x.Args {
			walk(a)
		}
	}
	for _, x := range list {
		walk(x)
	}
	slices.Sort(names)
	return names
}

// String writes the tree in plain notation, fully bracketed: equal trees give equal strings.
func (x *Expr) String() string {
	var b strings.Builder
	x.write(&b)
	return b.String()
}

func (x *Expr) write(b *strings.Builder) {
	list := func(open, sep, close string) {
		b.WriteString(open)
		for i, a := range x.Args {
			if i > 0 {
				b.WriteString(sep)
			}
			a.write(b)
		}
		b.WriteString(close)
	}
	switch x.Op {
	case Num:
		b.WriteString(x.Num.RatString())
	case Sym:
		b.WriteString(x.Name)
	case Text:
		b.WriteString(strconv.Quote(x.Name))
	case Add:
		list("(", " + ", ")")
	case Mul:
		list("(", "*", ")")
	case Pow:
		list("(", "^", ")")
	case Func:
		list(x.Name+"(", ", ", ")")
	case PlusMinus:
		list("(", " "+x.Name+" ", ")")
	case Percent:
		list("", "", "%")
	case Degree:
		list("", "", "°")
	case Base:
		list(x.Name+"_", "", "")
	case Unit:
		list("", "", " ["+x.Name+"]")
	case Ratio:
		list("(", ":", ")")
	case Tuple:
		list(string(x.Open), ", ", string(x.Close))
	case Set:
		list("{", ", ", "}")
	case List:
		list("", ", ", "")
	case Matrix:
		list("matrix"+strconv.Itoa(x.Cols)+"[", ", ", "]")
	case Relation:
		for i, a := range x.Args {
			if i > 0 {
				b.WriteString(" " + x.Rels[i-1] + " ")
			}
			a.write(b)
		}
	case Cases:
		list("cases[", "; ", "]")
	case Union:
		list("(", " ∪ ", ")")
	case Intersection:
		list("(", " ∩ ", ")")
	case Without:
		list("(", " \\ ", ")")
	}
}

// Rewrite applies f to a copy of each expression of x that has arguments, from the innermost out, and to x's numbers
// and symbols.
func Rewrite(x *Expr, f func(*Expr) *Expr) *Expr {
	if len(x.Args) == 0 {
		return f(x)
	}
	y := *x
	y.Args = make([]*Expr, len(x.Args))
	for i, a := range x.Args {
		y.Args[i] = Rewrite(a, f)
	}
	return f(&y)
}

// Rename replaces one variable by another.
func Rename(x *Expr, from, to string) *Expr {
	return Rewrite(x, func(y *Expr) *Expr {
		if y.Op == Sym && y.Name == from {
			return Symbol(to)
		}
		return y
	})
}

// IsSet reports whether an element of a set is a set.
func IsSet(x *Expr) bool {
	return x.Op == Set || x.Op == Sym && (x.Name == Empty || x.Name == Reals)
}

// IsPlusMinus reports whether x is a ± b.
func IsPlusMinus(x *Expr) bool { return x.Op == PlusMinus }

// IsMatrix reports whether x is a matrix.
func IsMatrix(x *Expr) bool { return x.Op == Matrix }

// IsCollection reports whether x is a tuple, list or set.
func IsCollection(x *Expr) bool {
	switch x.Op {
	case Tuple, Set, List, Union, Intersection, Without:
		return true
	}
	return x.Op == Sym && (x.Name == Reals || x.Name == Empty)
}

// IsImaginary reports whether x is the imaginary unit.
func IsImaginary(x *Expr) bool { return x.Op == Sym && x.Name == I }

// Substitute replaces variables by their values at a point.
func Substitute(x *Expr, p *Point) *Expr {
	return Rewrite(x, func(y *Expr) *Expr {
		if y.Op != Sym {
			return y
		}
		if v, ok := p.Values[y.Name]; ok {
			return Number(v)
		}
		return y
	})
}

// ProductOf returns the product of factors, the only one itself.
func ProductOf(factors []*Expr) *Expr {
	if len(factors) == 1 {
		return factors[0]
	}
	return Product(factors...)
}

// IsNatural reports whether x is a natural number written without a point.
func IsNatural(x *Expr) bool {
	return x.Op == Num && !x.Decimal && x.Num.IsInt() && x.Num.Sign() >= 0
}

// HasPrefix reports whether the base was written as in 0b1101, which programs print for the number itself.
func HasPrefix(x *Expr) bool { return len(x.Name) > 2 && x.Name[0] == '0' && x.Name[1] > '9' }

package grade

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// op is the kind of an expr.
type op uint8

const (
	opNum      op = iota // num; decimals if it was written with a point
	opSym                // name: a variable, or pi, e, i, inf
	opAdd                // sum of args
	opMul                // product of args
	opPow                // args[0] ^ args[1]
	opFunc               // name(args...)
	opPM                 // args[0] ± args[1]; name is "+-" or "-+"
	opPercent            // args[0] per cent
	opDegree             // args[0] degrees
	opBase               // the digits name in the base args[0]
	opUnit               // args[0] of the unit name; currency too
	opRatio              // args[0] : args[1] : …
	opTuple              // (a, b), [a, b), …; open and close are the brackets
	opSet                // {a, b, …}
	opList               // a, b, … without brackets; name is "or" or "and" if words join them
	opMatrix             // args row after row; cols columns
	opRelation           // args[0] name[0] args[1] name[1] …; rels holds the signs
	opUnion              // args[0] ∪ args[1]
	opCap                // args[0] ∩ args[1]
	opWithout            // args[0] \ args[1]
	opText               // name: words
	opCases              // args[0] where args[1], args[2] where args[3], …
)

// expr is a node of an expression tree. It is immutable.
type expr struct {
	op          op
	num         *big.Rat
	decimals    int    // of a number written as a decimal: digits after the point
	digits      int    // and significant digits
	decimal     bool   // written with a point or an exponent
	name        string // see op
	rels        []string
	open, close byte
	cols        int
	parts       int // of an opUnit: further units it was written in, 1 for feet and inches
	args        []*expr
}

func number(r *big.Rat) *expr         { return &expr{op: opNum, num: r} }
func integer(n int64) *expr           { return number(big.NewRat(n, 1)) }
func symbol(name string) *expr        { return &expr{op: opSym, name: name} }
func sum(args ...*expr) *expr         { return &expr{op: opAdd, args: args} }
func product(args ...*expr) *expr     { return &expr{op: opMul, args: args} }
func power(base, exp *expr) *expr     { return &expr{op: opPow, args: []*expr{base, exp}} }
func call(f string, a ...*expr) *expr { return &expr{op: opFunc, name: f, args: a} }
func quotient(a, b *expr) *expr       { return product(a, power(b, integer(-1))) }
func root(a *expr) *expr              { return power(a, number(big.NewRat(1, 2))) }
func difference(a, b *expr) *expr     { return sum(a, negative(b)) }

// negative keeps literals literal, so that -0.5 stays a decimal.
func negative(a *expr) *expr {
	if a.op == opNum {
		n := *a
		n.num = new(big.Rat).Neg(a.num)
		return &n
	}
	return product(integer(-1), a)
}

// size counts nodes, up to limit.
func (x *expr) size(limit int) int {
	n := 1
	for _, a := range x.args {
		if n >= limit {
			return n
		}
		n += a.size(limit - n)
	}
	return n
}

// has reports whether some node of x satisfies test.
func (x *expr) has(test func(*expr) bool) bool {
	return test(x) || slices.ContainsFunc(x.args, func(a *expr) bool { return a.has(test) })
}

// isScalar reports whether x stands for one number or function of variables.
func (x *expr) isScalar() bool {
	return !x.has(func(n *expr) bool {
		switch n.op {
		case opTuple, opSet, opList, opMatrix, opRelation, opUnion, opCap, opWithout, opText, opPM, opRatio, opCases:
			return true
		}
		return false
	})
}

func (x *expr) isInfinite() bool {
	return x.has(func(n *expr) bool { return n.op == opSym && n.name == symInf })
}

// Names of constants. Variables keep their written names.
const (
	symPi  = "π"
	symE   = "e"
	symI   = "i"
	symInf = "∞"
	symR   = "ℝ"
	symNil = "∅"
)

// variables lists the free variables of x in order.
func variables(list ...*expr) []string {
	var names []string
	var walk func(*expr)
	walk = func(x *expr) {
		if x.op == opSym {
			switch x.name {
			case symPi, symE, symI, symInf, symR, symNil:
			default:
				if !slices.Contains(names, x.name) {
					names = append(names, x.name)
				}
			}
		}
		for _, a := range x.args {
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
func (x *expr) String() string {
	var b strings.Builder
	x.write(&b)
	return b.String()
}

func (x *expr) write(b *strings.Builder) {
	list := func(open, sep, close string) {
		b.WriteString(open)
		for i, a := range x.args {
			if i > 0 {
				b.WriteString(sep)
			}
			a.write(b)
		}
		b.WriteString(close)
	}
	switch x.op {
	case opNum:
		b.WriteString(x.num.RatString())
	case opSym:
		b.WriteString(x.name)
	case opText:
		b.WriteString(strconv.Quote(x.name))
	case opAdd:
		list("(", " + ", ")")
	case opMul:
		list("(", "*", ")")
	case opPow:
		list("(", "^", ")")
	case opFunc:
		list(x.name+"(", ", ", ")")
	case opPM:
		list("(", " "+x.name+" ", ")")
	case opPercent:
		list("", "", "%")
	case opDegree:
		list("", "", "°")
	case opBase:
		list(x.name+"_", "", "")
	case opUnit:
		list("", "", " ["+x.name+"]")
	case opRatio:
		list("(", ":", ")")
	case opTuple:
		list(string(x.open), ", ", string(x.close))
	case opSet:
		list("{", ", ", "}")
	case opList:
		list("", ", ", "")
	case opMatrix:
		list("matrix"+strconv.Itoa(x.cols)+"[", ", ", "]")
	case opRelation:
		for i, a := range x.args {
			if i > 0 {
				b.WriteString(" " + x.rels[i-1] + " ")
			}
			a.write(b)
		}
	case opCases:
		list("cases[", "; ", "]")
	case opUnion:
		list("(", " ∪ ", ")")
	case opCap:
		list("(", " ∩ ", ")")
	case opWithout:
		list("(", " \\ ", ")")
	}
}

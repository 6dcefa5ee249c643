package grade

import (
	"math/big"
	"slices"
	"strings"
)

// Vectors: \vec{AB} has a direction, and \times between vectors depends on the order.

// arrow reads \vec{AB} and \overrightarrow{AB} as one name; \vec{BA} is its negative. The arrow over one letter
// changes nothing.
func (l *lexer) arrow() {
	start := l.i
	content, ok := l.group()
	points := strings.TrimSpace(content)
	l.vectors = true
	if !ok || len(points) != 2 || points[0] < 'A' || points[0] > 'Z' || points[1] < 'A' || points[1] > 'Z' {
		l.i = start
		l.spaced = true
		return
	}
	if points[0] <= points[1] {
		l.emit(tokSym, "→"+points)
		return
	}
	l.emit(tokOp, "{")
	l.emit(tokOp, "-")
	l.emit(tokSym, "→"+points[1:]+points[:1])
	l.emit(tokOp, "}")
}

// marksVector reports whether \mathbf or \hat stands over one letter.
func (l *lexer) marksVector() bool {
	rest := strings.TrimLeft(l.s[l.i:], " ")
	return len(rest) >= 3 && rest[0] == '{' && isLetter(rest[1]) && rest[2] == '}'
}

// cross returns the cross product of two names, with the smaller one first.
func cross(x, y *expr) *expr {
	if x.op != opSym || y.op != opSym {
		if x.op == opNum || y.op == opNum {
			return product(x, y)
		}
		return call("×", x, y)
	}
	switch {
	case x.name == y.name:
		return integer(0)
	case x.name > y.name:
		return negative(symbol(y.name + "×" + x.name))
	}
	return symbol(x.name + "×" + y.name)
}

// unitVectors are the names of the axes.
var unitVectors = []string{symI, "j", "k"}

// components returns the coordinates of a sum of multiples of i, j and k.
func components(x *expr, n int) ([]*expr, bool) {
	terms := []*expr{x}
	if x.op == opAdd {
		terms = x.args
	}
	coordinates := make([][]*expr, n)
	for _, t := range terms {
		factors := []*expr{t}
		for len(factors) > 0 && slices.ContainsFunc(factors, func(f *expr) bool { return f.op == opMul }) {
			var flat []*expr
			for _, f := range factors {
				if f.op == opMul {
					flat = append(flat, f.args...)
				} else {
					flat = append(flat, f)
				}
			}
			factors = flat
		}
		axis := -1
		var rest []*expr
		for _, f := range factors {
			k := -1
			if f.op == opSym {
				k = slices.Index(unitVectors, f.name)
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
		coordinates[axis] = append(coordinates[axis], product(append(rest, integer(1))...))
	}
	out := make([]*expr, n)
	for i, c := range coordinates {
		out[i] = sum(append(c, number(new(big.Rat)))...)
	}
	return out, true
}

// asTuple writes i + 2j + 3k as a tuple if the other side is a vector of that many numbers.
func asTuple(x, like *expr) *expr {
	n := 0
	switch {
	case like.op == opTuple && like.open == '(':
		n = len(like.args)
	case like.op == opMatrix && (like.cols == 1 || len(like.args) == like.cols):
		n = len(like.args)
	}
	if n < 2 || n > 3 || !x.isScalar() || !x.has(func(a *expr) bool {
		return a.op == opSym && (a.name == "j" || a.name == "k")
	}) {
		return x
	}
	if list, ok := components(x, n); ok {
		return &expr{op: opTuple, open: '(', close: ')', args: list}
	}
	return x
}

// engineers writes the imaginary unit j as i if only the gold answer says i.
func engineers(g, p *expr) *expr {
	if g.has(isImaginary) && !p.has(isImaginary) && slices.Contains(variables(p), "j") &&
		!slices.Contains(variables(g), "j") {
		return rename(p, "j", symI)
	}
	return p
}

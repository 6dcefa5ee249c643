package latex

import (
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
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
	return len(rest) >= 3 && rest[0] == '{' && wording.IsLetter(rest[1]) && rest[2] == '}'
}

// cross returns the cross product of two names, with the smaller one first.
func cross(x, y *formula.Expr) *formula.Expr {
	if x.Op != formula.Sym || y.Op != formula.Sym || strings.Contains(x.Name+y.Name, "×") {
		if x.Op == formula.Num || y.Op == formula.Num {
			return formula.Product(x, y)
		}
		return formula.Call("×", x, y)
	}
	switch {
	case x.Name == y.Name:
		return formula.Integer(0)
	case x.Name > y.Name:
		return formula.Negative(formula.Symbol(y.Name + "×" + x.Name))
	}
	return formula.Symbol(x.Name + "×" + y.Name)
}

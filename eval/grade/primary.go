package grade

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// primary reads operands: a number, a name, a function with its argument, or something in brackets.
func (p *parser) primary() (*expr, error) {
	if p.i == len(p.tokens) {
		return nil, errEnd
	}
	t := p.tokens[p.i]
	p.i++
	switch t.kind {
	case tokNum:
		return p.number(t.text)
	case tokSym:
		if next := p.tokens[p.i:]; len(next) > 2 && strings.Contains("fghFGHPQ", t.text) && next[0].text == "(" &&
			next[1].kind == tokNum && next[2].text == ")" {
			p.i += 3
			return symbol(t.text + "(" + next[1].text + ")"), nil // a function value, not a product
		}
		if next := p.tokens[p.i:]; len(next) > 3 && isFunctionName(t) && next[0].text == "(" &&
			isFunctionName(next[1]) && next[2].text == "(" {
			return p.composition(t.text)
		}
		return symbol(t.text), nil
	case tokFunc:
		return p.function(t.text)
	case tokBegin:
		return p.environment(t.text)
	case tokOp:
		return p.bracket(t.text)
	case tokText:
		return nil, fmt.Errorf("the words %q in mathematics", t.text)
	}
	return nil, fmt.Errorf("%q is unexpected", t.text)
}

func isFunctionName(t token) bool {
	return t.kind == tokSym && len(t.text) == 1 && strings.Contains("fgh", t.text)
}

// composition reads (g(x)) after f as the function f∘g of x.
func (p *parser) composition(f string) (*expr, error) {
	p.i++
	x, err := p.tuple('(')
	if err != nil {
		return nil, err
	}
	if x.op == opMul && len(x.args) == 2 && x.args[0].op == opSym {
		return product(symbol(f+"∘"+x.args[0].name), x.args[1]), nil
	}
	return product(symbol(f), x), nil
}

// number reads a literal and what extends it: a repeating decimal or a mixed number 3\frac{1}{2}.
func (p *parser) number(text string) (*expr, error) {
	if strings.ContainsRune(text, '.') && p.isOp("overline") {
		return p.repeating(text)
	}
	x, err := readNumber(strings.TrimSuffix(text, "."))
	if err != nil {
		return nil, err
	}
	if !isNatural(x) || !p.isOp("frac") || p.atUnitFraction() || x.num.Sign() == 0 {
		return x, nil
	}
	start := p.i
	f, err := p.primary()
	if err != nil {
		return nil, err
	}
	if f.op == opMul && len(f.args) == 2 && isNatural(f.args[0]) && f.args[1].op == opPow &&
		isNatural(f.args[1].args[0]) {
		return sum(x, f), nil
	}
	p.i = start
	return x, nil
}

// repeating reads 0.1\overline{6}.
func (p *parser) repeating(text string) (*expr, error) {
	p.i++
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	if p.i == len(p.tokens) {
		return nil, errEnd
	}
	cycle := p.peek()
	p.i++
	if cycle.kind != tokNum || strings.Trim(cycle.text, "0123456789") != "" || len(cycle.text) > 60 ||
		len(text) > 60 {
		return nil, errors.New("a bar over something that is no run of digits")
	}
	if err := p.expect("}"); err != nil {
		return nil, err
	}
	_, frac, _ := strings.Cut(text, ".")
	head, ok := new(big.Rat).SetString(text + "0")
	tail, ok2 := new(big.Int).SetString(cycle.text, 10)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%q is no number", text)
	}
	den := new(big.Int).Sub(tenTo(len(cycle.text)), big.NewInt(1))
	den.Mul(den, tenTo(len(frac)))
	return number(head.Add(head, new(big.Rat).SetFrac(tail, den))), nil
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// inverses are the functions that f^{-1} stands for.
var inverses = map[string]string{"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec",
	"csc": "arccsc", "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh", "coth": "arccoth", "sech": "arcsech",
	"csch": "arccsch"}

// areaOf are the inverse hyperbolic functions that are others of 1/x.
var areaOf = map[string]string{"arccoth": "arctanh", "arcsech": "arccosh", "arccsch": "arcsinh"}

// areaFunction writes arcsinh, arccosh and arctanh as logarithms.
func areaFunction(name string, x *expr) *expr {
	switch name {
	case "arcsinh":
		return call("ln", sum(x, root(sum(power(x, integer(2)), integer(1)))))
	case "arccosh":
		return call("ln", sum(x, product(root(sum(x, integer(-1))), root(sum(x, integer(1))))))
	}
	return product(number(big.NewRat(1, 2)), call("ln", quotient(sum(integer(1), x), difference(integer(1), x))))
}

// function reads the argument of a function, with an exponent or base before it.
func (p *parser) function(name string) (*expr, error) {
	var exp, base *expr
	for p.isOp("^") || p.isOp("_") {
		var err error
		if p.accept("^") {
			exp, err = p.exponent()
		} else {
			p.i++
			base, err = p.exponent()
		}
		if err != nil {
			return nil, err
		}
	}
	args, err := p.arguments(name)
	if err != nil {
		return nil, err
	}
	if name == "lg" && base == nil {
		base = integer(10)
	}
	if exp != nil && exp.op == opNum && exp.num.Cmp(big.NewRat(-1, 1)) == 0 && inverses[name] != "" {
		name, exp = inverses[name], nil
	}
	var x *expr
	switch {
	case name == "lg" || name == "ln" && base != nil:
		x = quotient(call("ln", args[0]), call("ln", base))
	case name == "ln" && len(args) == 2:
		x = quotient(call("ln", args[0]), call("ln", args[1]))
	case name == "exp":
		x = power(symbol(symE), args[0])
	case name == "nthroot" && len(args) == 1:
		x = root(args[0])
	case name == "nthroot":
		x = power(args[0], power(args[1], integer(-1)))
	case areaOf[name] != "":
		x = areaFunction(areaOf[name], power(args[0], integer(-1)))
	case name == "arcsinh" || name == "arccosh" || name == "arctanh":
		x = areaFunction(name, args[0])
	case name == "arcsec":
		x = call("arccos", power(args[0], integer(-1)))
	case name == "arccsc":
		x = call("arcsin", power(args[0], integer(-1)))
	case name == "det" && args[0].op == opMatrix:
		return determinantOf(args[0])
	case base != nil:
		return nil, fmt.Errorf("%s with a subscript", name)
	default:
		x = call(name, args...)
	}
	if exp != nil {
		x = power(x, exp)
	}
	return x, nil
}

// arguments reads (a, b) or {a}; without brackets, a product up to the next sign or function: \sin 2x \cos
// y is (\sin 2x)(\cos y).
func (p *parser) arguments(name string) ([]*expr, error) {
	if p.isOp("(") || p.isOp("{") || p.isOp("[") || p.isOp("\\{") {
		closing := map[string]string{"(": ")", "{": "}", "[": "]", "\\{": "\\}"}[p.peek().text]
		p.i++
		bars := p.bars
		p.bars = 0
		x, err := p.list()
		p.bars = bars
		if err != nil {
			return nil, err
		}
		if err := p.expect(closing); err != nil {
			return nil, err
		}
		if x.op == opList {
			return x.args, nil
		}
		return []*expr{x}, nil
	}
	negate := p.accept("-")
	var factors []*expr
	for p.startsFactor() && !p.atDifferential() && (len(factors) == 0 || p.peek().kind != tokFunc) {
		if len(factors) > 0 && p.isOp("(") {
			break
		}
		x, err := p.factor()
		if err != nil {
			return nil, err
		}
		factors = append(factors, x)
	}
	if len(factors) == 0 {
		return nil, fmt.Errorf("%s of nothing", name)
	}
	x := product1(factors)
	if negate {
		x = negative(x)
	}
	return []*expr{x}, nil
}

// bracket reads what starts with an operator.
func (p *parser) bracket(text string) (*expr, error) {
	switch text {
	case "(", "[":
		return p.tuple(text[0])
	case "⟨":
		return p.enclosed("⟩", func(x *expr) *expr { return tupleOf(x, '(', ')') })
	case "{":
		return p.enclosed("}", func(x *expr) *expr {
			if x.op == opList {
				return &expr{op: opSet, args: x.args}
			}
			return x
		})
	case "\\{":
		if p.accept("\\}") {
			return symbol(symNil), nil
		}
		if p.peek().kind == tokBegin && p.peek().text == "array" { // \left\{ … \right.
			return p.system()
		}
		p.setBuilder()
		return p.enclosed("\\}", func(x *expr) *expr {
			if x.op == opList {
				return &expr{op: opSet, args: x.args}
			}
			return &expr{op: opSet, args: []*expr{x}}
		})
	case "frac", "binom":
		return p.fraction(text)
	case "√":
		return p.root()
	case "∛":
		x, err := p.argument()
		if err != nil {
			return nil, err
		}
		return power(x, number(big.NewRat(1, 3))), nil
	case "|", "|(":
		return p.absolute(text)
	case "∑", "∏", "∫", "lim":
		return p.operator(text)
	case "⌊":
		return p.enclosed("⌋", func(x *expr) *expr { return call("floor", x) })
	case "⌈":
		return p.enclosed("⌉", func(x *expr) *expr { return call("ceil", x) })
	case "overline":
		x, err := p.argument()
		if err != nil {
			return nil, err
		}
		return call("bar", x), nil
	}
	return nil, fmt.Errorf("%q is unexpected", text)
}

// system reads an array behind a brace that need not be closed: cases or equations.
func (p *parser) system() (*expr, error) {
	p.tokens[p.i].text = "cases"
	x, err := p.primary()
	if err == nil {
		p.accept("\\}")
	}
	return x, err
}

// fraction reads the two arguments of \frac or \binom, or a derivative.
func (p *parser) fraction(text string) (*expr, error) {
	if x, ok, err := p.derivative(); ok || err != nil {
		return x, err
	}
	a, err := p.argument()
	if err != nil {
		return nil, err
	}
	b, err := p.argument()
	if err != nil {
		return nil, err
	}
	if text == "binom" {
		return call("binom", a, b), nil
	}
	return quotient(a, b), nil
}

// absolute reads an absolute value, or the determinant of a matrix, up to its closing bar.
func (p *parser) absolute(text string) (*expr, error) {
	closing := map[string]string{"|": "|", "|(": "|)"}[text]
	bars := p.bars
	p.bars = 0
	if text == "|" {
		p.bars = 1
	}
	x, err := p.sum()
	p.bars = bars
	if err != nil {
		return nil, err
	}
	if x.op == opMatrix {
		if x, err = determinantOf(x); err != nil {
			return nil, err
		}
		return x, p.expect(closing)
	}
	return call("abs", x), p.expect(closing)
}

// setBuilder skips the "x |" or "x ∈ ℝ |" of {x | conditions} and keeps the conditions.
func (p *parser) setBuilder() {
	t := p.tokens[p.i:]
	if len(t) < 3 || t[0].kind != tokSym {
		return
	}
	n := 1
	if len(t) > 3 && t[1].kind == tokOp && t[1].text == "in" && t[2].kind == tokSym && t[2].text == symR {
		n = 3
	}
	if t[n].kind == tokOp && (t[n].text == "mid" || t[n].text == "|" || t[n].text == ":") {
		p.i += n + 1
	}
}

// enclosed reads a list up to a closing bracket.
func (p *parser) enclosed(closing string, then func(*expr) *expr) (*expr, error) {
	bars := p.bars
	p.bars = 0
	x, err := p.list()
	p.bars = bars
	if err != nil {
		return nil, err
	}
	if err := p.expect(closing); err != nil {
		return nil, err
	}
	return then(x), nil
}

// tuple reads (…), […], (…] or […): a group, a tuple or an interval.
func (p *parser) tuple(open byte) (*expr, error) {
	bars := p.bars
	p.bars = 0
	x, err := p.list()
	p.bars = bars
	if err != nil {
		return nil, err
	}
	closing := byte(')')
	switch {
	case p.accept(")"):
	case p.accept("]"):
		closing = ']'
	default:
		return nil, p.expect(")")
	}
	if x.op != opList {
		if (open == '(') != (closing == ')') {
			return nil, errors.New("brackets of two kinds around one thing")
		}
		return x, nil
	}
	return tupleOf(x, open, closing), nil
}

func tupleOf(x *expr, open, closing byte) *expr {
	if x.op != opList {
		return &expr{op: opTuple, open: open, close: closing, args: []*expr{x}}
	}
	return &expr{op: opTuple, open: open, close: closing, args: x.args}
}

// argument reads {…}, or one digit or letter as in \frac12 and \sqrt2.
func (p *parser) argument() (*expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.peek()
	if t.kind == tokNum && len(t.text) > 1 && strings.Trim(t.text, "0123456789") == "" {
		p.tokens[p.i].text = t.text[1:] // \frac12: the tokens are this parser's own
		return readNumber(t.text[:1])
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return x, nil
}

// root reads the index and radicand of a root. √10 without braces covers all digits, \sqrt2x only the first
// character.
func (p *parser) root() (*expr, error) {
	index := big.NewRat(1, 2)
	if p.accept("[") {
		n, err := p.sum()
		if err != nil {
			return nil, err
		}
		if err := p.expect("]"); err != nil {
			return nil, err
		}
		if n.op != opNum || n.num.Sign() == 0 {
			x, err := p.primary()
			if err != nil {
				return nil, err
			}
			return power(x, power(n, integer(-1))), nil
		}
		index = new(big.Rat).Inv(n.num)
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return power(x, number(index)), nil
}

// environment reads a matrix or a system.
func (p *parser) environment(name string) (*expr, error) {
	if slices.Contains([]string{"aligned", "align", "split", "eqnarray", "alignat"}, name) {
		p.dropAlignment()
	}
	x := &expr{op: opMatrix}
	row := 0
	for {
		for p.accept("\\\\") {
		}
		if p.peek().kind == tokFinish {
			break
		}
		n := 0
		for {
			cell, err := p.list()
			if err != nil {
				return nil, err
			}
			x.args = append(x.args, cell)
			n++
			if !p.accept("&") {
				break
			}
			if len(x.args) == 1 && strings.HasSuffix(name, "cases") {
				if x, err = p.cases(cell); err != nil {
					return nil, err
				}
				p.i++
				return x, nil
			}
		}
		if row++; row == 1 {
			x.cols = n
		} else if n != x.cols {
			return nil, errors.New("rows of different lengths")
		}
		if !p.isOp("\\\\") {
			break
		}
	}
	if t := p.peek(); t.kind != tokFinish {
		return nil, errEnd
	}
	p.i++
	switch {
	case len(x.args) == 0:
		return nil, errors.New("an empty environment")
	case name == "vmatrix":
		return determinantOf(x)
	case x.cols == 1 && (name != "array" && !strings.Contains(name, "matrix") || x.args[0].op == opRelation):
		return &expr{op: opList, name: "and", args: x.args}, nil
	}
	return x, nil
}

// dropAlignment removes the & of an environment that has no cells.
func (p *parser) dropAlignment() {
	depth, end := 0, p.i
	for ; end < len(p.tokens); end++ {
		if k := p.tokens[end].kind; k == tokBegin {
			depth++
		} else if k == tokFinish {
			if depth--; depth < 0 {
				break
			}
		}
	}
	inside := slices.DeleteFunc(slices.Clone(p.tokens[p.i:end]), func(t token) bool {
		return t.kind == tokOp && t.text == "&"
	})
	p.tokens = slices.Concat(p.tokens[:p.i], inside, p.tokens[end:])
}

func determinantOf(x *expr) (*expr, error) {
	if d, ok := determinant(grid{len(x.args) / x.cols, x.cols, x.args}); ok && d.size(maxNodes) < maxNodes {
		return d, nil
	}
	return nil, errors.New("a determinant of that size")
}

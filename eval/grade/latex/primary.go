package latex

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"exp/eval/grade/formula"
)

// primary reads operands: a number, a name, a function with its argument, or something in brackets.
func (p *parser) primary() (*formula.Expr, error) {
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
			return formula.Symbol(t.text + "(" + next[1].text + ")"), nil // a function value, not a product
		}
		if next := p.tokens[p.i:]; len(next) > 3 && isFunctionName(t) && next[0].text == "(" &&
			isFunctionName(next[1]) && next[2].text == "(" {
			return p.composition(t.text)
		}
		if t.text == "Gamma" && p.isOp("(") {
			return p.gamma()
		}
		return formula.Symbol(t.text), nil
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
func (p *parser) composition(f string) (*formula.Expr, error) {
	p.i++
	x, err := p.tuple('(')
	if err != nil {
		return nil, err
	}
	if x.Op == formula.Mul && len(x.Args) == 2 && x.Args[0].Op == formula.Sym {
		return formula.Product(formula.Symbol(f+"∘"+x.Args[0].Name), x.Args[1]), nil
	}
	return formula.Product(formula.Symbol(f), x), nil
}

// number reads a literal and what extends it: a repeating decimal or a mixed number 3\frac{1}{2}.
func (p *parser) number(text string) (*formula.Expr, error) {
	if strings.ContainsRune(text, '.') && p.isOp("overline") {
		return p.repeating(text)
	}
	x, err := readNumber(strings.TrimSuffix(text, "."))
	if err != nil {
		return nil, err
	}
	if !formula.IsNatural(x) || !p.isOp("frac") || p.atUnitFraction() || x.Num.Sign() == 0 {
		return x, nil
	}
	start := p.i
	f, err := p.primary()
	if err != nil {
		return nil, err
	}
	if f.Op == formula.Mul && len(f.Args) == 2 && formula.IsNatural(f.Args[0]) && f.Args[1].Op == formula.Pow &&
		formula.IsNatural(f.Args[1].Args[0]) {
		return formula.Sum(x, f), nil
	}
	p.i = start
	return x, nil
}

// repeating reads 0.1\overline{6}.
func (p *parser) repeating(text string) (*formula.Expr, error) {
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
		return nil, errors.New("a bar over something other than digits")
	}
	if err := p.expect("}"); err != nil {
		return nil, err
	}
	_, frac, _ := strings.Cut(text, ".")
	head, ok := new(big.Rat).SetString(text + "0")
	tail, ok2 := new(big.Int).SetString(cycle.text, 10)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	den := new(big.Int).Sub(TenTo(len(cycle.text)), big.NewInt(1))
	den.Mul(den, TenTo(len(frac)))
	return formula.Number(head.Add(head, new(big.Rat).SetFrac(tail, den))), nil
}

// TenTo returns 10^n.
func TenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// bracket reads what starts with an operator.
func (p *parser) bracket(text string) (*formula.Expr, error) {
	switch text {
	case "(", "[":
		return p.tuple(text[0])
	case "⟨":
		return p.enclosed("⟩", func(x *formula.Expr) *formula.Expr { return tupleOf(x, '(', ')') })
	case "{":
		return p.enclosed("}", func(x *formula.Expr) *formula.Expr {
			if x.Op == formula.List {
				return &formula.Expr{Op: formula.Set, Args: x.Args}
			}
			return x
		})
	case "\\{":
		if p.accept("\\}") {
			return formula.Symbol(formula.Empty), nil
		}
		if p.peek().kind == tokBegin && p.peek().text == "array" { // \left\{ … \right.
			return p.system()
		}
		conditions := p.setBuilder()
		return p.enclosed("\\}", func(x *formula.Expr) *formula.Expr {
			if x.Op == formula.List && conditions {
				return x
			}
			if x.Op == formula.List {
				return &formula.Expr{Op: formula.Set, Args: x.Args}
			}
			return &formula.Expr{Op: formula.Set, Args: []*formula.Expr{x}}
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
		return formula.Power(x, formula.Number(big.NewRat(1, 3))), nil
	case "|", "|(":
		return p.absolute(text)
	case "∑", "∏", "∫", "lim":
		return p.operator(text)
	case "⌊":
		return p.enclosed("⌋", func(x *formula.Expr) *formula.Expr { return formula.Call("floor", x) })
	case "⌈":
		return p.enclosed("⌉", func(x *formula.Expr) *formula.Expr { return formula.Call("ceil", x) })
	case "overline":
		x, err := p.argument()
		if err != nil {
			return nil, err
		}
		return formula.Call("bar", x), nil
	}
	return nil, fmt.Errorf("%q is unexpected", text)
}

// fraction reads the two arguments of \frac or \binom, or a derivative.
func (p *parser) fraction(text string) (*formula.Expr, error) {
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
	if text == "binom" && b.Op == formula.Set {
		return multinomial(a, b.Args)
	}
	if text == "binom" {
		return formula.Call("binom", a, b), nil
	}
	return formula.Quotient(a, b), nil
}

// gamma reads (x) after Γ, which is (x-1)!.
func (p *parser) gamma() (*formula.Expr, error) {
	p.i++
	x, err := p.tuple('(')
	if err != nil {
		return nil, err
	}
	return formula.Call("fact", formula.Difference(x, formula.Integer(1))), nil
}

// multinomial returns n!/(a!b!…), where a+b+… must be n.
func multinomial(n *formula.Expr, list []*formula.Expr) (*formula.Expr, error) {
	b := formula.NewBudget(1000)
	if !b.SameForm(n, formula.Sum(list...)) {
		return nil, errors.New("a multinomial coefficient of numbers with another sum")
	}
	factors := []*formula.Expr{formula.Call("fact", n)}
	for _, x := range list {
		factors = append(factors, formula.Power(formula.Call("fact", x), formula.Integer(-1)))
	}
	return formula.Product(factors...), nil
}

// absolute reads an absolute value, or the determinant of a matrix, up to its closing bar.
func (p *parser) absolute(text string) (*formula.Expr, error) {
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
	if x.Op == formula.Matrix {
		if x, err = determinantOf(x); err != nil {
			return nil, err
		}
		return x, p.expect(closing)
	}
	return formula.Call("abs", x), p.expect(closing)
}

// setBuilder skips the "x |" or "x ∈ ℝ |" of {x | conditions} and keeps the conditions. It reports whether there are
// such.
func (p *parser) setBuilder() bool {
	t := p.tokens[p.i:]
	if len(t) < 3 || t[0].kind != tokSym {
		return false
	}
	n := 1
	if len(t) > 3 && t[1].kind == tokOp && t[1].text == "in" && t[2].kind == tokSym && t[2].text == formula.Reals {
		n = 3
	}
	if t[n].kind == tokOp && (t[n].text == "mid" || t[n].text == "|" || t[n].text == ":") {
		p.i += n + 1
		return true
	}
	return false
}

// inside reads a list after an opening bracket. The bars of an absolute value outside do not end it.
func (p *parser) inside() (*formula.Expr, error) {
	bars := p.bars
	p.bars = 0
	x, err := p.list()
	p.bars = bars
	return x, err
}

// enclosed reads a list up to a closing bracket.
func (p *parser) enclosed(closing string, then func(*formula.Expr) *formula.Expr) (*formula.Expr, error) {
	x, err := p.inside()
	if err == nil {
		err = p.expect(closing)
	}
	if err != nil {
		return nil, err
	}
	return then(x), nil
}

// tuple reads (…), […], (…] or […): a group, a tuple or an interval.
func (p *parser) tuple(open byte) (*formula.Expr, error) {
	x, err := p.inside()
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
	if x.Op != formula.List {
		if (open == '(') != (closing == ')') {
			return nil, errors.New("brackets of two kinds around one thing")
		}
		return x, nil
	}
	return tupleOf(x, open, closing), nil
}

func tupleOf(x *formula.Expr, open, closing byte) *formula.Expr {
	if x.Op != formula.List {
		return &formula.Expr{Op: formula.Tuple, Open: open, Close: closing, Args: []*formula.Expr{x}}
	}
	return &formula.Expr{Op: formula.Tuple, Open: open, Close: closing, Args: x.Args}
}

// argument reads {…}, or one digit or letter as in \frac12 and \sqrt2.
func (p *parser) argument() (*formula.Expr, error) {
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
func (p *parser) root() (*formula.Expr, error) {
	index := big.NewRat(1, 2)
	if p.accept("[") {
		n, err := p.sum()
		if err != nil {
			return nil, err
		}
		if err := p.expect("]"); err != nil {
			return nil, err
		}
		if n.Op != formula.Num || n.Num.Sign() == 0 {
			x, err := p.primary()
			if err != nil {
				return nil, err
			}
			return formula.Power(x, formula.Power(n, formula.Integer(-1))), nil
		}
		index = new(big.Rat).Inv(n.Num)
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return formula.Power(x, formula.Number(index)), nil
}

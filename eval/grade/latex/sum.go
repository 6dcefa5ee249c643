package latex

import (
	"errors"
	"fmt"

	"exp/eval/grade/formula"
)

func (p *parser) sum() (*formula.Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var x *formula.Expr
	sign := p.sign()
	t, err := p.term()
	if err != nil {
		return nil, err
	}
	switch sign {
	case "±", "∓":
		x = &formula.Expr{Op: formula.PlusMinus, Name: sign, Args: []*formula.Expr{formula.Integer(0), t}}
	case "-":
		x = formula.Negative(t)
	default:
		x = t
	}
	var terms []*formula.Expr
	for {
		sign := p.sign()
		if sign == "" {
			break
		}
		if p.accept("…") {
			return p.sumOverDots(append([]*formula.Expr{x}, terms...))
		}
		t, err := p.term()
		if err != nil {
			return nil, err
		}
		switch sign {
		case "±", "∓":
			if len(terms) > 0 {
				x, terms = formula.Sum(append([]*formula.Expr{x}, terms...)...), nil
			}
			x = &formula.Expr{Op: formula.PlusMinus, Name: sign, Args: []*formula.Expr{x, t}}
		case "-":
			if t.Op == formula.Set && len(terms) == 0 && formula.IsCollection(x) { // ℝ - {2}
				x = &formula.Expr{Op: formula.Without, Args: []*formula.Expr{x, t}}
				continue
			}
			terms = append(terms, formula.Negative(t))
		default:
			terms = append(terms, t)
		}
	}
	if len(terms) > 0 {
		x = formula.Sum(append([]*formula.Expr{x}, terms...)...)
	}
	return x, nil
}

// sign reads + - ± ∓ and combines several.
func (p *parser) sign() string {
	sign := ""
	for {
		t := p.peek()
		if t.kind != tokOp {
			return sign
		}
		switch t.text {
		case "+":
			if sign == "" {
				sign = "+"
			}
		case "-":
			if sign == "-" {
				sign = "+"
			} else {
				sign = "-"
			}
		case "±", "∓":
			sign = t.text
		default:
			return sign
		}
		p.i++
	}
}

// term reads a product. A ratio a:b:c is one term.
func (p *parser) term() (*formula.Expr, error) {
	x, err := p.factor()
	if err != nil {
		return nil, err
	}
	factors := []*formula.Expr{x}
	for {
		switch {
		case p.atDots():
			return p.productOverDots(factors)
		case p.accept("*"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors = append(factors, y)
		case p.accept("×"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors[len(factors)-1] = cross(factors[len(factors)-1], y)
		case p.accept("/"), p.accept("over"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			share := y.Op == formula.Percent // 2/3 %
			if share {
				y = y.Args[0]
			}
			factors = append(factors, formula.Power(y, formula.Integer(-1)))
			p.mixed(&factors)
			if share {
				factors = []*formula.Expr{{Op: formula.Percent, Args: []*formula.Expr{formula.ProductOf(factors)}}}
			}
		case p.isOp(":") && !p.inRatio:
			return p.ratio(formula.ProductOf(factors))
		case p.accept("choose"):
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			factors = []*formula.Expr{formula.Call("binom", formula.ProductOf(factors), y)}
		case p.startsFactor() && !p.atUnitFraction():
			before := factors[len(factors)-1]
			y, err := p.implicit(before)
			if err != nil {
				return nil, err
			}
			if before.Op == formula.Degree && y.Op == formula.Degree && y.Name == "'" { // 22° 30'
				factors[len(factors)-1] = &formula.Expr{Op: formula.Degree,
					Args: []*formula.Expr{formula.Sum(before.Args[0], y.Args[0])}}
				continue
			}
			factors = append(factors, y)
		default:
			return formula.ProductOf(factors), nil
		}
	}
}

func (p *parser) ratio(first *formula.Expr) (*formula.Expr, error) {
	x := &formula.Expr{Op: formula.Ratio, Args: []*formula.Expr{first}}
	p.inRatio = true
	defer func() { p.inRatio = false }()
	for p.accept(":") {
		y, err := p.term()
		if err != nil {
			return nil, err
		}
		x.Args = append(x.Args, y)
	}
	return x, nil
}

// mixed joins 3 1/2 into a number after the division was read: factors are 3, 1, 2^-1, where 3 and 1 are
// integer literals with a space between them.
func (p *parser) mixed(factors *[]*formula.Expr) {
	f := *factors
	n := len(f)
	if n < 3 || !formula.IsNatural(f[n-3]) || !formula.IsNatural(f[n-2]) || f[n-2].Name != "spaced" {
		return
	}
	den := f[n-1].Args[0]
	if !formula.IsNatural(den) {
		return
	}
	*factors = append(f[:n-3:n-3], formula.Sum(f[n-3], formula.Product(f[n-2], f[n-1])))
}

// implicit reads the next factor of a product without a sign. Two adjacent numbers are a mixed number or an
// error.
func (p *parser) implicit(before *formula.Expr) (*formula.Expr, error) {
	t := p.peek()
	y, err := p.factor()
	if err != nil {
		return nil, err
	}
	if t.kind == tokNum && before.Op == formula.Num {
		if before.Name == "spaced" || !formula.IsNatural(before) {
			return nil, errors.New("two numbers side by side")
		}
		switch {
		case y.Op == formula.Num && t.spaced && (p.isOp("/") || p.isOp("frac")) && formula.IsNatural(y):
			s := *y
			s.Name = "spaced"
			return &s, nil
		case y.Op == formula.Add: // 3 1\frac{1}{2}
			return y, nil
		}
		return nil, errors.New("two numbers side by side")
	}
	if t.kind == tokNum && before.Op == formula.Sym && !t.spaced && len(before.Name) == 1 &&
		y.Op != formula.Pow { // n2^k is a product
		return nil, fmt.Errorf("%s%s is neither a name nor a product", before.Name, t.text)
	}
	return y, nil
}

func (p *parser) startsFactor() bool {
	t := p.peek()
	switch t.kind {
	case tokNum, tokSym, tokFunc:
		return true
	case tokBegin:
		return true
	case tokOp:
		switch t.text {
		case "(", "{", "\\{", "frac", "√", "∛", "binom", "⌊", "⌈", "|(", "overline", "[", "∑", "∏", "∫", "lim":
			return true
		case "|":
			return p.bars == 0
		}
	}
	return false
}

// factor reads a primary with its postfixes and exponent. -x^2 is -(x^2).
func (p *parser) factor() (*formula.Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if p.accept("-") {
		x, err := p.factor()
		if err != nil {
			return nil, err
		}
		return formula.Negative(x), nil
	}
	if p.accept("+") {
		return p.factor()
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return p.postfix(x)
}

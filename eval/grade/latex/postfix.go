package latex

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/wording"
)

// What follows a factor: exponents, primes, factorials, degrees, subscripts, bases.

func (p *parser) postfix(x *formula.Expr) (*formula.Expr, error) {
	for {
		switch {
		case p.accept("!"):
			if p.isOp("!") && !p.peek().spaced {
				p.i++
				x = formula.Call("fact2", x)
				continue
			}
			x = formula.Call("fact", x)
		case p.accept("%"):
			x = &formula.Expr{Op: formula.Percent, Args: []*formula.Expr{x}}
		case p.accept("°"):
			x = &formula.Expr{Op: formula.Degree, Args: []*formula.Expr{x}}
		case p.accept("'"):
			if x.Op == formula.Num { // minutes and seconds of an arc
				parts := int64(60)
				if p.accept("'") {
					parts = 3600
				}
				x = &formula.Expr{Op: formula.Degree, Name: "'", Args: []*formula.Expr{formula.Quotient(x,
					formula.Integer(parts))}}
				continue
			}
			if x.Op != formula.Sym {
				return nil, errors.New("a prime after something other than a name")
			}
			x = formula.Symbol(x.Name + "'")
		case p.isOp("_"):
			p.i++
			y, err := p.subscript(x)
			if err != nil {
				return nil, err
			}
			x = y
		case p.isOp("^"):
			p.i++
			if p.degreeSign() {
				x = &formula.Expr{Op: formula.Degree, Args: []*formula.Expr{x}}
				continue
			}
			if p.isOp("'") {
				continue
			}
			y, err := p.exponent()
			if err != nil {
				return nil, err
			}
			if p.isOp("_") { // x^2_i is x_i^2
				p.i++
				if x, err = p.subscript(x); err != nil {
					return nil, err
				}
			}
			x = formula.Power(x, y)
		default:
			return x, nil
		}
	}
}

// degreeSign reads ° or {°} after ^.
func (p *parser) degreeSign() bool {
	if p.accept("°") {
		return true
	}
	if p.i+2 < len(p.tokens) && p.isOp("{") && p.tokens[p.i+1].text == "°" && p.tokens[p.i+2].text == "}" {
		p.i += 3
		return true
	}
	return false
}

// exponent reads what follows ^. In LaTeX x^10 is x^1 0, but people mean x^10.
func (p *parser) exponent() (*formula.Expr, error) {
	if p.accept("-") {
		x, err := p.exponent()
		if err != nil {
			return nil, err
		}
		return formula.Negative(x), nil
	}
	if p.accept("+") {
		return p.exponent()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	if p.accept("!") {
		x = formula.Call("fact", x)
	}
	if p.accept("^") { // right associative
		y, err := p.exponent()
		if err != nil {
			return nil, err
		}
		return formula.Power(x, y), nil
	}
	return x, nil
}

// subscript turns 25_6 into a number in base 6, and x_1 into a name.
func (p *parser) subscript(x *formula.Expr) (*formula.Expr, error) {
	var b strings.Builder
	if p.isOp("{") {
		depth := 0
		for ; ; p.i++ {
			if p.i == len(p.tokens) {
				return nil, errEnd
			}
			t := p.tokens[p.i]
			if t.kind == tokOp && t.text == "{" {
				depth++
			} else if t.kind == tokOp && t.text == "}" {
				if depth--; depth == 0 {
					p.i++
					break
				}
			} else {
				b.WriteString(t.text)
			}
		}
	} else {
		if p.i == len(p.tokens) {
			return nil, errEnd
		}
		b.WriteString(p.peek().text)
		p.i++
	}
	sub := b.String()
	switch {
	case x.Op == formula.Sym:
		return formula.Symbol(x.Name + "_" + sub), nil
	case x.Op == formula.Num, x.Op == formula.Mul && sub != "":
		base, ok := baseNamed(sub)
		if !ok {
			return nil, fmt.Errorf("%q is not a base", sub)
		}
		digits, ok := baseDigits(x)
		if !ok {
			return nil, errors.New("a subscript after a product")
		}
		if _, ok := new(big.Int).SetString(strings.Replace(digits, ".", "", 1), base); !ok {
			return nil, fmt.Errorf("%s has digits that base %d has not", digits, base)
		}
		return &formula.Expr{Op: formula.Base, Name: digits, Args: []*formula.Expr{formula.Integer(int64(base))}}, nil
	}
	return nil, errors.New("a subscript after something other than a name")
}

// baseDigits returns the digits that a number was written with.
func baseDigits(x *formula.Expr) (string, bool) {
	switch {
	case x.Op != formula.Num || !x.Decimal && !x.Num.IsInt():
		return "", false
	case x.Decimals > 0 && x.Decimals < 60:
		return x.Num.FloatString(x.Decimals), true
	case x.Decimal:
		return "", false
	}
	return x.Num.Num().String(), true
}

// readNumber turns the text of a number token into a node.
func readNumber(text string) (*formula.Expr, error) {
	if len(text) > 2 && text[0] == '0' && wording.IsLetter(text[1]) && text[1]|0x20 != 'e' {
		base := map[byte]int64{'b': 2, 'o': 8, 'x': 16}[text[1]|0x20]
		return &formula.Expr{Op: formula.Base, Name: strings.ToLower(text),
			Args: []*formula.Expr{formula.Integer(base)}}, nil
	}
	mantissa, exp := text, 0
	if k := strings.IndexAny(text, "eE"); k >= 0 {
		mantissa = text[:k]
		var err error
		if exp, err = strconv.Atoi(text[k+1:]); err != nil || exp > formula.MaxTenPower || exp < -formula.MaxTenPower {
			return nil, fmt.Errorf("%s is out of range", text)
		}
	}
	if len(text) > 18 || mantissa != text || strings.ContainsRune(mantissa, '.') {
		r, ok := new(big.Rat).SetString(text)
		if !ok {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		x := formula.Number(r)
		if whole, frac, ok := strings.Cut(mantissa, "."); ok || mantissa != text {
			x.Decimal = true
			x.Decimals = max(0, len(frac)-exp)
			x.Digits = len(strings.TrimLeft(whole+frac, "0"))
		}
		return x, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return formula.Integer(n), nil
}

package latex

import (
	"fmt"
	"math/big"

	"exp/eval/grade/formula"
)

// inverses are the functions that f^{-1} stands for.
var inverses = map[string]string{"sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec",
	"csc": "arccsc", "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh", "coth": "arccoth", "sech": "arcsech",
	"csch": "arccsch"}

// areaOf are the inverse hyperbolic functions that are others of 1/x.
var areaOf = map[string]string{"arccoth": "arctanh", "arcsech": "arccosh", "arccsch": "arcsinh"}

// areaFunction writes arcsinh, arccosh and arctanh as logarithms.
func areaFunction(name string, x *formula.Expr) *formula.Expr {
	switch name {
	case "arcsinh":
		return formula.Call("ln", formula.Sum(x, formula.Root(formula.Sum(formula.Power(x, formula.Integer(2)),
			formula.Integer(1)))))
	case "arccosh":
		return formula.Call("ln", formula.Sum(x, formula.Product(formula.Root(formula.Sum(x, formula.Integer(-1))),
			formula.Root(formula.Sum(x, formula.Integer(1))))))
	}
	return formula.Product(formula.Number(big.NewRat(1, 2)), formula.Call("ln",
		formula.Quotient(formula.Sum(formula.Integer(1), x), formula.Difference(formula.Integer(1), x))))
}

// function reads the argument of a function, with an exponent or base before it.
func (p *parser) function(name string) (*formula.Expr, error) {
	var exp, base *formula.Expr
	for p.isOp("^") || p.isOp("_") {
		var err error
		if p.accept("^") {
			exp, err = p.exponent()
		} else {
			p.i++
			base, err = p.base()
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
		base = formula.Integer(10)
	}
	open := name == "log" && base == nil && len(args) == 1
	if name == "log" {
		name = "ln"
	}
	if exp != nil && exp.Op == formula.Num && exp.Num.Cmp(big.NewRat(-1, 1)) == 0 && inverses[name] != "" {
		name, exp = inverses[name], nil
	}
	var x *formula.Expr
	switch {
	case name == "lg" || name == "ln" && base != nil:
		x = formula.Quotient(formula.Call("ln", args[0]), formula.Call("ln", base))
	case name == "ln" && len(args) == 2:
		x = formula.Quotient(formula.Call("ln", args[0]), formula.Call("ln", args[1]))
	case name == "exp":
		x = formula.Power(formula.Symbol(formula.E), args[0])
	case name == "nthroot" && len(args) == 1:
		x = formula.Root(args[0])
	case name == "nthroot":
		x = formula.Power(args[0], formula.Power(args[1], formula.Integer(-1)))
	case name == "cis":
		x = formula.Sum(formula.Call("cos", args...),
			formula.Product(formula.Symbol(formula.I), formula.Call("sin", args...)))
	case areaOf[name] != "":
		x = areaFunction(areaOf[name], formula.Power(args[0], formula.Integer(-1)))
	case name == "arcsinh" || name == "arccosh" || name == "arctanh":
		x = areaFunction(name, args[0])
	case name == "arcsec":
		x = formula.Call("arccos", formula.Power(args[0], formula.Integer(-1)))
	case name == "arccsc":
		x = formula.Call("arcsin", formula.Power(args[0], formula.Integer(-1)))
	case name == "det" && args[0].Op == formula.Matrix:
		return determinantOf(args[0])
	case base != nil:
		return nil, fmt.Errorf("%s with a subscript", name)
	default:
		x = formula.Call(name, args...)
		x.OpenBase = open
	}
	if exp != nil {
		x = formula.Power(x, exp)
	}
	return x, nil
}

// arguments reads (a, b) or {a}; without brackets, a product up to the next sign or function: \sin 2x \cos
// y is (\sin 2x)(\cos y).
func (p *parser) arguments(name string) ([]*formula.Expr, error) {
	if p.isOp("(") || p.isOp("{") || p.isOp("[") || p.isOp("\\{") {
		closing := map[string]string{"(": ")", "{": "}", "[": "]", "\\{": "\\}"}[p.peek().text]
		p.i++
		x, err := p.inside()
		if err == nil {
			err = p.expect(closing)
		}
		if err != nil {
			return nil, err
		}
		if x.Op == formula.List {
			return x.Args, nil
		}
		return []*formula.Expr{x}, nil
	}
	negate := p.accept("-")
	var factors []*formula.Expr
	for p.startsFactor() && !p.atDifferential() && (len(factors) == 0 || p.peek().kind != tokFunc) {
		if len(factors) > 0 && (p.isOp("(") || p.atExponential()) {
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
	x := formula.ProductOf(factors)
	if negate {
		x = formula.Negative(x)
	}
	return []*formula.Expr{x}, nil
}

// atExponential reports whether e^x comes next, which ends the argument in \sin x e^x.
func (p *parser) atExponential() bool {
	t := p.tokens[p.i:]
	return len(t) > 1 && t[0].kind == tokSym && t[0].text == formula.E && t[1].kind == tokOp && t[1].text == "^"
}

// base reads the base of a logarithm. A fraction after a number is the argument: \log_3\frac{1}{9}.
func (p *parser) base() (*formula.Expr, error) {
	if t := p.peek(); t.kind == tokNum {
		p.i++
		return readNumber(t.text)
	}
	return p.exponent()
}

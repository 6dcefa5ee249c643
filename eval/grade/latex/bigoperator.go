package latex

import (
	"errors"
	"math/big"
	"slices"

	"exp/eval/grade/formula"
)

// Sums, products, integrals, limits and derivatives. A sum or product between near integer bounds is
// expanded; others are evaluated at natural numbers (package formula). Integrals, limits and derivatives keep their
// operator and equal only the same operator on equal operands. Bound variables are renamed, so that their names do not
// matter.

// maxSummands bounds expansion.
const maxSummands = 100

func (p *parser) operator(sign string) (*formula.Expr, error) {
	switch sign {
	case "∫":
		return p.integral()
	case "lim":
		return p.limit()
	}
	return p.series(sign)
}

// series reads _{k=a}^{b} f after ∑ or ∏.
func (p *parser) series(sign string) (*formula.Expr, error) {
	var from, to *formula.Expr
	for p.isOp("_") || p.isOp("^") {
		var err error
		if p.accept("^") {
			to, err = p.primary()
		} else {
			p.i++
			from, err = p.underneath()
		}
		if err != nil {
			return nil, err
		}
	}
	if from == nil || to == nil || from.Op != formula.Relation || len(from.Args) != 2 || from.Rels[0] != "=" ||
		from.Args[0].Op != formula.Sym {
		return nil, errors.New("a sum or product without bounds that can be read")
	}
	f, err := p.term()
	if err != nil {
		return nil, err
	}
	k, lo, hi := from.Args[0].Name, from.Args[1], to
	if x, ok := p.writtenOut(sign, f, k, lo, hi); ok {
		return x, nil
	}
	return formula.Call(sign, bind(f, k), lo, hi), nil
}

// underneath reads {k=1} or {x \to 0}.
func (p *parser) underneath() (*formula.Expr, error) {
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	x, err := p.relation()
	if err != nil {
		return nil, err
	}
	return x, p.expect("}")
}

// writtenOut returns f(lo) + … + f(hi), or the product; not ok if the bounds are not integers or too far
// apart.
func (p *parser) writtenOut(sign string, f *formula.Expr, k string, lo, hi *formula.Expr) (*formula.Expr, bool) {
	b := formula.NewBudget(1000)
	first, ok := b.Rational(lo)
	last, ok2 := b.Rational(hi)
	if !ok || !ok2 || !first.IsInt() || !last.IsInt() {
		return nil, false
	}
	n, ok := formula.SmallNatural(new(big.Rat).Add(new(big.Rat).Sub(last, first), big.NewRat(1, 1)), maxSummands)
	if !ok || n == 0 {
		return nil, false
	}
	if p.nodes += n * f.Size(maxNodes); p.nodes > maxNodes {
		return nil, false
	}
	terms := make([]*formula.Expr, n)
	for i := range terms {
		v := new(big.Rat).Add(first, big.NewRat(int64(i), 1))
		terms[i] = atIndex(f, k, formula.Number(v))
	}
	if sign == "∏" {
		return formula.ProductOf(terms), true
	}
	if n == 1 {
		return terms[0], true
	}
	return formula.Sum(terms...), true
}

// integral reads _a^b f dx after ∫; the bounds may be absent.
func (p *parser) integral() (*formula.Expr, error) {
	var lo, hi *formula.Expr
	for p.isOp("_") || p.isOp("^") {
		at := &lo
		if p.isOp("^") {
			at = &hi
		}
		p.i++
		x, err := p.signedPrimary()
		if err != nil {
			return nil, err
		}
		*at = x
	}
	p.integrals++
	f, v, err := p.integrand()
	p.integrals--
	switch {
	case err != nil:
		return nil, err
	case lo != nil && hi != nil:
		return formula.Call("∫", bind(f, v), lo, hi), nil
	case lo != nil || hi != nil:
		return nil, errors.New("an integral with one bound")
	}
	return formula.Call("∫", f, formula.Symbol(v)), nil
}

func (p *parser) signedPrimary() (*formula.Expr, error) {
	if !p.accept("-") {
		return p.primary()
	}
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	return formula.Negative(x), nil
}

// integrand reads terms up to the one that ends in dx.
func (p *parser) integrand() (f *formula.Expr, v string, err error) {
	var terms []*formula.Expr
	for {
		sign := p.sign()
		if len(terms) > 0 && sign == "" || sign == "±" || sign == "∓" {
			return nil, "", errors.New("an integral without a dx")
		}
		t, err := p.term()
		if err != nil {
			return nil, "", err
		}
		t, v := undifferential(t)
		if sign == "-" {
			t = formula.Negative(t)
		}
		if terms = append(terms, t); v == "" {
			continue
		}
		if len(terms) == 1 {
			return t, v, nil
		}
		return formula.Sum(terms...), v, nil
	}
}

// undifferential removes the dx from a product; v is empty for a product without one.
func undifferential(t *formula.Expr) (f *formula.Expr, v string) {
	n := len(t.Args)
	if t.Op != formula.Mul || n < 2 || t.Args[n-2].Op != formula.Sym || t.Args[n-2].Name != "d" ||
		t.Args[n-1].Op != formula.Sym {
		return t, ""
	}
	if v = t.Args[n-1].Name; n == 2 {
		return formula.Integer(1), v
	}
	return formula.ProductOf(t.Args[: n-2 : n-2]), v
}

// atDifferential reports whether the dx of an integral comes next; it is not part of an argument.
func (p *parser) atDifferential() bool {
	t := p.tokens[p.i:]
	return p.integrals > 0 && len(t) > 1 && t[0].kind == tokSym && t[0].text == "d" && t[1].kind == tokSym
}

// limit reads _{x \to a} f after lim; a may be approached from one side.
func (p *parser) limit() (*formula.Expr, error) {
	if !p.accept("_") {
		return nil, errors.New("a limit of nothing")
	}
	side := p.cutSide()
	x, err := p.underneath()
	if err != nil {
		return nil, err
	}
	if x.Op != formula.Relation || len(x.Args) != 2 || x.Rels[0] != "->" || x.Args[0].Op != formula.Sym {
		return nil, errors.New("a limit of nothing")
	}
	f, err := p.term()
	if err != nil {
		return nil, err
	}
	return formula.Call("lim"+side, bind(f, x.Args[0].Name), x.Args[1]), nil
}

// cutSide removes the ^+ or ^{-} at the end of {x \to 0^+} from the tokens and returns the sign.
func (p *parser) cutSide() string {
	isOp := func(i int, text string) bool {
		return i >= p.i && i < len(p.tokens) && p.tokens[i].kind == tokOp && p.tokens[i].text == text
	}
	end := p.i
	for end < len(p.tokens) && !isOp(end, "}") {
		end++
	}
	sign := end - 1
	if !isOp(sign, "+") && !isOp(sign, "-") {
		return ""
	}
	from, to := sign-1, sign+1
	if isOp(from, "{") && isOp(to, "}") {
		from, to = from-1, to+1
	}
	if !isOp(from, "^") || !isOp(to, "}") {
		return ""
	}
	side := p.tokens[sign].text
	p.tokens = slices.Delete(p.tokens, from, to)
	return side
}

// derivative reads the operand of \frac{d}{dx}, and reads \frac{dy}{dx} as a name.
func (p *parser) derivative() (x *formula.Expr, ok bool, err error) {
	var above, below string
	t := p.tokens[p.i:]
	isD := func(i int) bool { return t[i].kind == tokSym && t[i].text == "d" }
	switch {
	case len(t) >= 7 && t[0].text == "{" && isD(1) && t[2].text == "}" && t[3].text == "{" && isD(4) &&
		t[5].kind == tokSym && t[6].text == "}":
		below = t[5].text
		p.i += 7
	case len(t) >= 8 && t[0].text == "{" && isD(1) && t[2].kind == tokSym && t[3].text == "}" && t[4].text == "{" &&
		isD(5) && t[6].kind == tokSym && t[7].text == "}":
		above, below = t[2].text, t[6].text
		p.i += 8
		return formula.Symbol("d" + above + "/d" + below), true, nil
	default:
		return nil, false, nil
	}
	f, err := p.term()
	if err != nil {
		return nil, true, err
	}
	return formula.Call("d/d", f, formula.Symbol(below)), true, nil
}

// BoundName begins the names of bound variables; no written variable has it.
const BoundName = formula.BoundName

// bind renames a variable to a name that encodes the depth of its operator, so the j of a double sum
// differs from its i. Subscripts change with it.
func bind(x *formula.Expr, name string) *formula.Expr {
	return formula.Rename(bindIndex(x, name), name, formula.BoundBy(x))
}

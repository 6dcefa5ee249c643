package latex

import (
	"errors"
	"math/big"
	"slices"

	"exp/eval/grade/formula"
)

// Sums and products with dots: 1+2+\dots+n, n(n-1)\cdots 1. The dots stand for the terms between those that are
// written, by the one rule that gives all of these: the last term with another number in the place of its variable,
// steps of one size, or one factor.

// ellipsisWork bounds the search for the rule.
const ellipsisWork = 6000

var errDots = errors.New("dots whose terms are not clear")

// progression is a sum or product with dots.
type progression struct {
	formula.Budget
	sign        string // ∑ or ∏
	first, last []*formula.Expr
}

// mostDots bounds the dots in one answer.
const mostDots = 6

// atDots reports whether dots come next, with or without a sign before them.
func (p *parser) atDots() bool {
	return p.isOp("…") || p.isOp("*") && p.i+1 < len(p.tokens) && p.tokens[p.i+1].kind == tokOp &&
		p.tokens[p.i+1].text == "…"
}

// sumOverDots reads the terms after the dots of a sum.
func (p *parser) sumOverDots(first []*formula.Expr) (*formula.Expr, error) {
	var last []*formula.Expr
	for {
		sign := p.sign()
		if sign == "" {
			return p.continued("∑", first, last)
		}
		t, err := p.term()
		switch {
		case err != nil:
			return nil, err
		case sign == "-":
			t = formula.Negative(t)
		case sign != "+":
			return nil, errDots
		}
		last = append(last, t)
	}
}

// productOverDots reads the factors after the dots of a product. Those without a sign between them are one, as in
// 2\cdot4\cdots 2n, or several.
func (p *parser) productOverDots(first []*formula.Expr) (*formula.Expr, error) {
	p.accept("*")
	p.accept("…")
	p.accept("*")
	var joined, single []*formula.Expr
	for {
		var group []*formula.Expr
		for p.startsFactor() {
			y, err := p.factor()
			if err != nil {
				return nil, err
			}
			group = append(group, y)
		}
		if len(group) == 0 {
			return nil, errDots
		}
		joined, single = append(joined, formula.ProductOf(group)), append(single, group...)
		if !p.accept("*") {
			break
		}
	}
	x, err := p.continued("∏", first, joined)
	if err != nil && len(single) > len(joined) {
		x, err = p.continued("∏", first, single)
	}
	return x, err
}

// continued returns the sum or product of the terms in first, those that dots stand for, and those in last.
func (p *parser) continued(sign string, first, last []*formula.Expr) (*formula.Expr, error) {
	if p.dots++; p.dots > mostDots || len(last) == 0 || len(first)+len(last) > 12 {
		return nil, errDots
	}
	s := progression{formula.NewBudget(ellipsisWork), sign, first, last}
	if x, ok := s.byLastTerm(); ok {
		return p.overIndex(sign, x), nil
	}
	if x, ok := s.arithmetic(); ok {
		return p.overIndex(sign, x), nil
	}
	if x, ok := s.geometric(); ok {
		return x, nil
	}
	return nil, errDots
}

// overIndex writes out a sum or product if that is possible.
func (p *parser) overIndex(sign string, x *formula.Expr) *formula.Expr {
	if x.Op != formula.Func || x.Name != sign {
		return x
	}
	if y, ok := p.writtenOut(sign, x.Args[0], formula.BoundBy(x.Args[0]), x.Args[1], x.Args[2]); ok {
		return y
	}
	return x
}

// difference returns y - x if it is a number.
func (s *progression) difference(x, y *formula.Expr) (*big.Rat, bool) {
	d := formula.Difference(y, x)
	if v, ok := s.Rational(d); ok {
		return v, true
	}
	f, ok := s.Canonical(d)
	if !ok || len(f.Den) != 1 || len(f.Num) > 1 {
		return nil, false
	}
	den, ok := f.Den[""]
	if !ok {
		return nil, false
	}
	if len(f.Num) == 0 {
		return new(big.Rat), true
	}
	num, ok := f.Num[""]
	if !ok {
		return nil, false
	}
	return new(big.Rat).Quo(num.Coef, den.Coef), true
}

// arithmetic reads terms with steps of one size. The last must be a number, or its distance from the first a whole
// number of steps for every value of its variables.
func (s *progression) arithmetic() (*formula.Expr, bool) {
	step, ok := s.step()
	if !ok || step.Sign() == 0 {
		return nil, false
	}
	a, z := s.first[0], s.last[len(s.last)-1]
	scale := formula.Number(new(big.Rat).Inv(step))
	steps := formula.Product(formula.Difference(z, a), scale)
	if n, ok := s.Rational(steps); ok {
		if !n.IsInt() || n.Cmp(big.NewRat(int64(len(s.first)+len(s.last)-1), 1)) < 0 || s.mayBeGeometric(step) {
			return nil, false
		}
		steps = formula.Number(n)
	} else if !s.isWhole(steps) {
		return nil, false
	}
	if s.sign == "∑" {
		half := formula.Number(big.NewRat(1, 2))
		return formula.Product(half, formula.Sum(a, z), formula.Sum(steps, formula.Integer(1))), true
	}
	k := formula.Symbol(formula.BoundBy(a))
	return formula.Call("∏", formula.Sum(a, formula.Product(formula.Number(step), k)), formula.Integer(0), steps), true
}

// step returns the common difference of the terms that are written next to each other. Between two terms without
// neighbours it is 1 or -1, if one of them is a whole number and the other a variable or a whole number.
func (s *progression) step() (*big.Rat, bool) {
	var step *big.Rat
	for _, list := range [][]*formula.Expr{s.first, s.last} {
		for i := range list[1:] {
			d, ok := s.difference(list[i], list[i+1])
			if !ok || step != nil && step.Cmp(d) != 0 {
				return nil, false
			}
			step = d
		}
	}
	if step != nil {
		return step, true
	}
	a, z := s.first[0], s.last[0]
	switch {
	case formula.IsNatural(a) && (z.Op == formula.Sym || formula.IsNatural(z) && z.Num.Cmp(a.Num) > 0):
		return big.NewRat(1, 1), true
	case formula.IsNatural(z) && a.Op == formula.Sym:
		return big.NewRat(-1, 1), true
	}
	return nil, false
}

// mayBeGeometric reports whether two numbers and the last are also powers of one factor: 3+6+\dots+96.
func (s *progression) mayBeGeometric(step *big.Rat) bool {
	if len(s.first) != 2 || len(s.last) != 1 || step.Cmp(big.NewRat(1, 1)) == 0 {
		return false
	}
	_, ok := s.geometricSum(s.first)
	return ok
}

// isWhole reports whether x is a polynomial of degree one with whole coefficients.
func (s *progression) isWhole(x *formula.Expr) bool {
	f, ok := s.Canonical(x)
	if !ok || len(f.Den) != 1 {
		return false
	}
	den, ok := f.Den[""]
	if !ok {
		return false
	}
	for _, m := range f.Num {
		if len(m.Powers) > 1 || len(m.Powers) == 1 && (m.Powers[0].Num != 1 || m.Powers[0].Den != 1 ||
			!slices.Contains(formula.Variables(x), m.Powers[0].Atom)) || !new(big.Rat).Quo(m.Coef, den.Coef).IsInt() {
			return false
		}
	}
	return true
}

// geometric reads at least three numbers that grow by one factor up to the last.
func (s *progression) geometric() (*formula.Expr, bool) {
	if s.sign != "∑" || len(s.first) < 3 || len(s.last) != 1 {
		return nil, false
	}
	v, ok := s.geometricSum(s.first)
	if !ok {
		return nil, false
	}
	return formula.Number(v), true
}

// geometricSum adds numbers that grow by one factor from the first terms to the last; not ok if they are not such.
func (s *progression) geometricSum(first []*formula.Expr) (*big.Rat, bool) {
	values := make([]*big.Rat, 0, len(first)+1)
	for _, x := range append(slices.Clone(first), s.last[0]) {
		v, ok := s.Rational(x)
		if !ok || v.Sign() == 0 {
			return nil, false
		}
		values = append(values, v)
	}
	factor := new(big.Rat).Quo(values[1], values[0])
	if new(big.Rat).Abs(factor).Cmp(big.NewRat(1, 1)) == 0 {
		return nil, false
	}
	sum, v := new(big.Rat), values[0]
	for i := range maxSummands {
		sum.Add(sum, v)
		if i >= len(first) && v.Cmp(values[len(first)]) == 0 {
			return sum, true
		}
		if v = new(big.Rat).Mul(v, factor); i+1 < len(first) && v.Cmp(values[i+1]) != 0 || !s.Spend(4) {
			break
		}
	}
	return nil, false
}

// firstIndices are the numbers at which a rule may begin.
var firstIndices = []int64{1, 0, 2, 3, -1}

// byLastTerm reads terms that the last term gives with whole numbers in the place of one variable, of a variable in
// its subscript, or of a number: 1+x+\dots+x^n, x_1+\dots+x_n, 1^2+2^2+\dots+10^2.
func (s *progression) byLastTerm() (*formula.Expr, bool) {
	z := s.last[len(s.last)-1]
	if len(s.first)+len(s.last) < 3 && z.Op != formula.Sym || !clearRule(s.first, z) {
		return nil, false
	}
	for _, v := range indexNames(z) {
		for _, from := range firstIndices {
			if s.fits(z, v, from) {
				return formula.Call(s.sign, bind(z, v), formula.Integer(from), formula.Symbol(v)), true
			}
		}
	}
	const place = "index"
	for _, n := range naturals(z) {
		open := withPlace(z, n, place)
		for _, from := range firstIndices {
			if from < n && s.fits(open, place, from) && s.isLast(open, place, n) {
				return formula.Call(s.sign, bind(open, place), formula.Integer(from), formula.Integer(n)), true
			}
		}
	}
	return nil, false
}

// clearRule is false for 1+2+\dots+2^n, which may have all whole numbers or only the powers.
func clearRule(first []*formula.Expr, last *formula.Expr) bool {
	return len(first) != 2 || !formula.IsNatural(first[0]) || !formula.IsNatural(first[1]) ||
		new(big.Rat).Sub(first[1].Num, first[0].Num).Cmp(big.NewRat(1, 1)) != 0 || last.Op == formula.Sym
}

// fits reports whether a rule gives the terms that are written at the start and, counting down from its variable, at
// the end.
func (s *progression) fits(rule *formula.Expr, v string, from int64) bool {
	for i, x := range s.first {
		if !s.SameForm(x, atIndex(rule, v, formula.Integer(from+int64(i)))) {
			return false
		}
	}
	if len(s.last) == 1 {
		return true
	}
	n := len(s.last) - 1
	for i, x := range s.last[:n] {
		if !s.SameForm(x, atIndex(rule, v, formula.Sum(formula.Symbol(v), formula.Integer(int64(i-n))))) {
			return false
		}
	}
	return true
}

// isLast reports whether a rule gives the last term at n.
func (s *progression) isLast(rule *formula.Expr, v string, n int64) bool {
	return s.SameForm(s.last[len(s.last)-1], atIndex(rule, v, formula.Integer(n)))
}

// indexNames lists the variables of x and those that its subscripts are.
func indexNames(x *formula.Expr) []string {
	names := formula.Variables(x)
	for _, v := range names {
		if _, index, ok := cutIndex(v); ok && isLetterName(index) && !slices.Contains(names, index) {
			names = append(names, index)
		}
	}
	return names
}

func isLetterName(s string) bool { return len(s) == 1 && 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z' }

// naturals lists the natural numbers of x above 2.
func naturals(x *formula.Expr) []int64 {
	var list []int64
	formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if formula.IsNatural(y) && y.Num.Num().IsInt64() && y.Num.Num().Int64() > 2 && len(list) < 4 &&
			!slices.Contains(list, y.Num.Num().Int64()) {
			list = append(list, y.Num.Num().Int64())
		}
		return y
	})
	return list
}

// withPlace puts a name in the place of n, and name + 1 or name - 1 in the place of its neighbours.
func withPlace(x *formula.Expr, n int64, name string) *formula.Expr {
	return formula.Rewrite(x, func(y *formula.Expr) *formula.Expr {
		if !formula.IsNatural(y) || !y.Num.Num().IsInt64() {
			return y
		}
		switch d := y.Num.Num().Int64() - n; d {
		case 0:
			return formula.Symbol(name)
		case 1, -1:
			return formula.Sum(formula.Symbol(name), formula.Integer(d))
		}
		return y
	})
}

package task

import (
	"cmp"
	"slices"
	"strings"
)

// A normal form stands for all expressions that differ only by commutativity and associativity of + and *,
// where a - b is a + (-b), a / b is a · b⁻¹, and a sign moves through sums and products:
//
//	-(a + b) = (-a) + (-b)      -(a·b) = (-a)·b      (a/b)⁻¹ = b/a
//
// Nothing is distributed, cancelled or computed: 2*(3+4) is not 2*3+2*4, and 6*1, 6/1 and 6 are three
// forms. If the numbers are all different, expressions share a form exactly if they are equal for all
// values of the numbers. With n numbers, all used, there are 1, 6, 68, 1170, 27142 forms (OEIS A140606).
//
// A sum is a set of signed terms: numbers and products. A product is a set of factors to the power 1 or -1:
// numbers and sums. A sum inside a product is turned so that its value is positive; its sign moves to the
// product, whose sign moves to the enclosing sum. Terms and factors are sorted, plus before minus, · before
// /.

// formKind orders forms that start with the same number.
type formKind uint8

const (
	formNumber formKind = iota
	formProduct
	formSum
)

// form is a normal form without its sign.
type form struct {
	kind formKind
	text string // infix, with as few parentheses as possible
	lead int64  // the first number of text
	// free: the negated expression has the same form, as with 3-3, so the sign means nothing.
	free bool
}

// part is a term of a sum or a factor of a product.
type part struct {
	form
	down bool // subtracted, or divided by
}

// canonical returns the normal form, as text, of an evaluated expression with a defined value. Two
// expressions have the same text exactly if they are equal up to commutativity and associativity. If the
// value is positive the text is itself such an expression, without signs.
func (e *expr) canonical() string {
	f, negative := e.normal()
	switch {
	case !negative:
		return f.text
	case f.kind == formSum:
		return "-(" + f.text + ")"
	}
	return "-" + f.text
}

// normal returns the form of e and whether e is its negative.
func (e *expr) normal() (f form, negative bool) {
	switch e.op {
	case opNumber:
		return numberForm(e.number), false
	case opMinus:
		f, negative = e.left.normal()
		return f, !negative && !f.free
	case '+', '-':
		return sumForm(e.terms(nil, false), e.value.sign())
	}
	factors, negative := e.factors(nil, false)
	return productForm(factors, negative)
}

// terms appends the terms of e, or of -e, to dst.
func (e *expr) terms(dst []part, negative bool) []part {
	switch e.op {
	case '+':
		return e.right.terms(e.left.terms(dst, negative), negative)
	case '-':
		return e.right.terms(e.left.terms(dst, negative), !negative)
	case opMinus:
		return e.left.terms(dst, !negative)
	}
	f, minus := e.normal()
	return append(dst, part{f, minus != negative && !f.free})
}

// factors appends the factors of e, or of 1/e, to dst without their signs; negative is the sign of the
// product.
func (e *expr) factors(dst []part, inverse bool) (factors []part, negative bool) {
	var minus bool
	switch e.op {
	case '*', '/':
		dst, negative = e.left.factors(dst, inverse)
		dst, minus = e.right.factors(dst, inverse != (e.op == '/'))
		return dst, negative != minus
	case opMinus:
		dst, negative = e.left.factors(dst, inverse)
		return dst, !negative
	}
	f, negative := e.normal()
	return append(dst, part{f, inverse}), negative
}

// sumForm returns the form of a sum of terms whose value has the given sign.
func sumForm(terms []part, sign int) (f form, negative bool) {
	turned := slices.Clone(terms)
	for i := range turned {
		turned[i].down = !turned[i].down && !turned[i].free
	}
	f, g := assemble(formSum, terms), assemble(formSum, turned)
	f.free = f.text == g.text
	switch {
	case f.free || sign > 0:
		return f, false
	case sign < 0:
		return g, true
	}
	// Zero has no sign to go by: take the form that starts with a plus, else the first alphabetically.
	fMinus, gMinus := strings.HasPrefix(f.text, "-"), strings.HasPrefix(g.text, "-")
	if fMinus != gMinus && gMinus || fMinus == gMinus && f.text < g.text {
		return f, false
	}
	return g, true
}

func productForm(factors []part, negative bool) (form, bool) {
	f := assemble(formProduct, factors)
	for _, p := range factors {
		f.free = f.free || p.free
	}
	return f, negative && !f.free
}

// assemble sorts parts and writes them in order. If all terms of a sum are subtracted, the text starts with
// a minus and only serves to compare.
func assemble(kind formKind, parts []part) form {
	slices.SortFunc(parts, func(a, b part) int {
		switch {
		case a.down != b.down && a.down:
			return 1
		case a.down != b.down:
			return -1
		}
		return compareForms(a.form, b.form)
	})
	up, down := byte('+'), byte('-')
	if kind == formProduct {
		up, down = '*', '/'
	}
	var b strings.Builder
	for i, p := range parts {
		switch {
		case p.down:
			b.WriteByte(down)
		case i > 0:
			b.WriteByte(up)
		}
		if kind == formProduct && p.kind == formSum {
			b.WriteString("(" + p.text + ")")
		} else {
			b.WriteString(p.text)
		}
	}
	return form{kind: kind, text: b.String(), lead: parts[0].lead}
}

// compareForms puts the form with the larger first number first.
func compareForms(a, b form) int {
	return cmp.Or(cmp.Compare(b.lead, a.lead), cmp.Compare(a.kind, b.kind), cmp.Compare(a.text, b.text))
}

func numberForm(n int64) form {
	return form{kind: formNumber, text: itoa(n), lead: n}
}

package task

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxExpression is the length limit of an expression in bytes. It bounds the recursion; no solution of a
// few numbers comes close.
const maxExpression = 1024

// Operators of expr in addition to + - * /.
const (
	opNumber = 'n' // number
	opMinus  = 'm' // -left
)

// expr is a node of an arithmetic expression.
type expr struct {
	op          byte  // + - * / opNumber opMinus
	number      int64 // for opNumber
	left, right *expr
	value       fraction // set by evaluate
}

// errNoExpression is returned if there is nothing to parse.
var errNoExpression = errors.New("no expression")

// parse reads an infix expression:
//
//	sum     = product { ("+" | "-") product }
//	product = factor { ("*" | "/") factor }
//	factor  = ["-"] ( number | "(" sum ")" )
//
// A number is a string of digits without leading zeros. × ∗ · stand for *, ÷ and ∕ for /, − and – for -.
// Spaces and tabs are skipped. Not accepted: a plus sign, two signs in a row, a product without operator,
// "**", "//", decimals and "=". Errors are reasons to show to the user.
func parse(text string) (*expr, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("expression longer than %d bytes", maxExpression)
	}
	p := parser{text: text}
	p.skip()
	if p.at == len(text) {
		return nil, errNoExpression
	}
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.at < len(text) {
		return nil, p.unexpected()
	}
	return e, nil
}

// parser is positioned before the next token; it skips spaces after each token.
type parser struct {
	text string
	at   int
}

func (p *parser) sum() (*expr, error) { return p.chain("+-", p.product) }

func (p *parser) product() (*expr, error) { return p.chain("*/", p.factor) }

// chain reads operands joined by ops, which associate to the left.
func (p *parser) chain(ops string, operand func() (*expr, error)) (*expr, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		op, size := p.operator()
		if size == 0 || strings.IndexByte(ops, op) < 0 {
			return left, nil
		}
		p.advance(size)
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = &expr{op: op, left: left, right: right}
	}
}

func (p *parser) factor() (*expr, error) {
	if op, size := p.operator(); op == '-' {
		p.advance(size)
		if op, _ := p.operator(); op == '-' {
			return nil, p.unexpected()
		}
		e, err := p.factor()
		if err != nil {
			return nil, err
		}
		return &expr{op: opMinus, left: e}, nil
	}
	if p.at == len(p.text) {
		return nil, errors.New("ends in the middle of an expression")
	}
	switch c := p.text[p.at]; {
	case c == '(':
		p.advance(1)
		e, err := p.sum()
		if err != nil {
			return nil, err
		}
		if p.at == len(p.text) {
			return nil, errors.New("a parenthesis is not closed")
		}
		if p.text[p.at] != ')' {
			return nil, p.unexpected()
		}
		p.advance(1)
		return e, nil
	case '0' <= c && c <= '9':
		return p.number()
	}
	return nil, p.unexpected()
}

func (p *parser) number() (*expr, error) {
	end := p.at
	for end < len(p.text) && '0' <= p.text[end] && p.text[end] <= '9' {
		end++
	}
	digits := p.text[p.at:end]
	if len(digits) > 1 && digits[0] == '0' {
		return nil, fmt.Errorf("%s is not a number", clip(digits))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is too large", clip(digits))
	}
	p.advance(len(digits))
	return &expr{op: opNumber, number: n}, nil
}

// operator returns the operator at p and its length in bytes; 0, 0 if none.
func (p *parser) operator() (op byte, size int) {
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	switch r {
	case '+', '-', '*', '/':
		return byte(r), size
	case '×', '∗', '·':
		return '*', size
	case '÷', '∕':
		return '/', size
	case '−', '–':
		return '-', size
	}
	return 0, 0
}

func (p *parser) advance(n int) {
	p.at += n
	p.skip()
}

func (p *parser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

func (p *parser) unexpected() error {
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Errorf("unexpected %q", r)
}

// clip shortens s for a message.
func clip(s string) string {
	const most = 24
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// numbers appends the numbers of e in order of appearance.
func (e *expr) numbers(dst []int64) []int64 {
	if e.op == opNumber {
		return append(dst, e.number)
	}
	dst = e.left.numbers(dst)
	if e.right != nil {
		dst = e.right.numbers(dst)
	}
	return dst
}

// operators returns the operators in e as a subset of "+-*/" in that order; a sign counts as -.
func (e *expr) operators() string {
	var seen [256]bool
	e.visit(func(e *expr) { seen[e.op] = true })
	seen['-'] = seen['-'] || seen[opMinus]
	var b strings.Builder
	for _, op := range []byte("+-*/") {
		if seen[op] {
			b.WriteByte(op)
		}
	}
	return b.String()
}

func (e *expr) visit(f func(*expr)) {
	f(e)
	for _, child := range []*expr{e.left, e.right} {
		if child != nil {
			child.visit(f)
		}
	}
}

// evaluate sets and returns the value of e, and sets the values of its subexpressions. The numbers of e must
// satisfy fractionsFit.
func (e *expr) evaluate() fraction {
	switch e.op {
	case opNumber:
		e.value = fraction{e.number, 1}
	case opMinus:
		v := e.left.evaluate()
		e.value = fraction{-v.num, v.den}
	default:
		e.value = e.left.evaluate().apply(e.op, e.right.evaluate())
	}
	return e.value
}

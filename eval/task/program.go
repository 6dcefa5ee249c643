package task

import (
	"fmt"
	"slices"
	"strings"
)

// node is an expression in a straight-line Python program: a name, a number or an operation.
type node struct {
	op          byte // + - * / (Python's //) %, or opMinus of left; 0 for a leaf
	leaf        string
	left, right *node
}

func (n *node) isSum() bool      { return n.op == '+' || n.op == '-' }
func (n *node) isQuotient() bool { return n.op == '/' || n.op == '%' }

// symbol returns the operator in Python.
func symbol(op byte) string {
	if op == '/' {
		return "//"
	}
	return string(op)
}

// programForm returns the normal form of a straight-line program: lines NAME=EXPRESSION, then return
// EXPRESSION. Two programs have the same form exactly if, with intermediate values substituted, their
// expressions are equal up to the order of the operands of + and *, where a-b is a+(-b) and signs move out
// of products. Nothing is computed: b+b is not 2*b. Any other text is its own form, apart from white space.
func programForm(text string) string {
	if n, err := parseProgram(text); err == nil {
		return n.form()
	}
	return strings.Join(strings.Fields(text), " ")
}

// form returns the sum with its terms sorted, added ones first.
func (n *node) form() string {
	terms := n.signed(nil, false)
	slices.Sort(terms)
	return strings.TrimPrefix(strings.Join(terms, ""), "+")
}

// signed appends the terms of n, or of -n, each with its sign.
func (n *node) signed(dst []string, negative bool) []string {
	switch n.op {
	case '+':
		return n.right.signed(n.left.signed(dst, negative), negative)
	case '-':
		return n.right.signed(n.left.signed(dst, negative), !negative)
	case opMinus:
		return n.left.signed(dst, !negative)
	}
	factors, minus := n.multiplied(nil)
	slices.Sort(factors)
	sign := "+"
	if minus != negative {
		sign = "-"
	}
	return append(dst, sign+strings.Join(factors, "*"))
}

// multiplied appends the factors of n without their signs; negative is the sign of the product.
func (n *node) multiplied(dst []string) (factors []string, negative bool) {
	switch {
	case n.op == '*':
		dst, left := n.left.multiplied(dst)
		dst, right := n.right.multiplied(dst)
		return dst, left != right
	case n.op == opMinus:
		dst, negative = n.left.multiplied(dst)
		return dst, !negative
	case n.isSum():
		return append(dst, "("+n.form()+")"), false
	case n.isQuotient():
		return append(dst, "("+bracketed(n.left)+symbol(n.op)+bracketed(n.right)+")"), false
	}
	return append(dst, n.leaf), false
}

// bracketed returns the form of an operand of a quotient.
func bracketed(n *node) string {
	if n.op == 0 {
		return n.leaf
	}
	return "(" + n.form() + ")"
}

// maxProgram limits, in bytes, the programs that get a normal form. maxProgramNodes limits their size with
// intermediate values substituted, which can double with each line.
const (
	maxProgram      = 1024
	maxProgramNodes = 256
)

// parseProgram reads a straight-line program; a factor is
//
//	["-"] ( number | name | "(" sum ")" )
func parseProgram(text string) (*node, error) {
	if len(text) > maxProgram {
		return nil, fmt.Errorf("longer than %d bytes", maxProgram)
	}
	values := map[string]*node{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "return"); ok && strings.TrimLeft(rest, " (-") != rest {
			return parseExpression(rest, values)
		}
		name, rest, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.Trim(name, letters) != "" {
			return nil, fmt.Errorf("no assignment: %s", line)
		}
		n, err := parseExpression(rest, values)
		if err != nil {
			return nil, err
		}
		values[name] = n
	}
	return nil, fmt.Errorf("no return")
}

const letters = "abcdefghijklmnopqrstuvwxyz"

func parseExpression(text string, values map[string]*node) (*node, error) {
	p := &programParser{rest: strings.TrimLeft(text, " "), values: values}
	n, err := p.chain("+-", func() (*node, error) { return p.chain("*/%", p.factor) })
	switch {
	case err != nil:
		return nil, err
	case p.rest != "":
		return nil, fmt.Errorf("unexpected %q", p.rest)
	case n.size(maxProgramNodes) > maxProgramNodes:
		return nil, fmt.Errorf("more than %d operations", maxProgramNodes)
	}
	return n, nil
}

// size counts nodes and stops shortly after most.
func (n *node) size(most int) int {
	size := 1
	for _, x := range []*node{n.left, n.right} {
		if x != nil && size <= most {
			size += x.size(most - size)
		}
	}
	return size
}

// programParser is positioned before the next token; it skips spaces after each token.
type programParser struct {
	rest   string
	values map[string]*node
}

func (p *programParser) take(n int) string {
	s := p.rest[:n]
	p.rest = strings.TrimLeft(p.rest[n:], " ")
	return s
}

// operator reads the next token if it is one of ops; / stands for //.
func (p *programParser) operator(ops string) (op byte, ok bool) {
	if p.rest == "" || strings.IndexByte(ops, p.rest[0]) < 0 || strings.HasPrefix(p.rest, "**") {
		return 0, false
	}
	if op = p.rest[0]; op != '/' {
		p.take(1)
		return op, true
	}
	if !strings.HasPrefix(p.rest, "//") {
		return 0, false
	}
	p.take(2)
	return op, true
}

func (p *programParser) chain(ops string, operand func() (*node, error)) (*node, error) {
	n, err := operand()
	for err == nil {
		op, ok := p.operator(ops)
		if !ok {
			return n, nil
		}
		var right *node
		right, err = operand()
		n = &node{op: op, left: n, right: right}
	}
	return nil, err
}

func (p *programParser) factor() (*node, error) {
	run := func(set string) int { return len(p.rest) - len(strings.TrimLeft(p.rest, set)) }
	switch {
	case strings.HasPrefix(p.rest, "-"):
		p.take(1)
		n, err := p.factor()
		return &node{op: opMinus, left: n}, err
	case strings.HasPrefix(p.rest, "("):
		p.take(1)
		n, err := p.chain("+-", func() (*node, error) { return p.chain("*/%", p.factor) })
		if err == nil && !strings.HasPrefix(p.rest, ")") {
			err = fmt.Errorf("unclosed parenthesis")
		}
		if err != nil {
			return nil, err
		}
		p.take(1)
		return n, nil
	case run("0123456789") > 0:
		number := p.take(run("0123456789"))
		if strings.TrimLeft(number, "0") != number && number != "0" {
			return nil, fmt.Errorf("leading zero: %s", number)
		}
		return &node{leaf: number}, nil
	case run(letters) > 0:
		name := p.take(run(letters))
		if n := p.values[name]; n != nil {
			return n, nil
		}
		return &node{leaf: name}, nil
	}
	return nil, fmt.Errorf("unexpected %q", p.rest)
}

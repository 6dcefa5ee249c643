package query

import (
	"fmt"
	"slices"

	"exp/experiments/store"
)

// maxDepth bounds how deep parentheses and "not" nest: the parser calls itself.
const maxDepth = 100

// parser reads the tokens of a filter by recursive descent.
type parser struct {
	tokens []token // those not read yet; the last one is end
	fields []store.Field
	depth  int
}

func (p *parser) peek() token { return p.tokens[0] }

// take returns the next token; it stays at the end.
func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is this symbol or keyword.
func (p *parser) accept(text string) bool {
	t := p.peek()
	if t.text != text || t.kind != word && t.kind != symbol {
		return false
	}
	p.take()
	return true
}

// unexpected is the error that the next token is not what was expected.
func (p *parser) unexpected(msg string) *SyntaxError {
	t := p.peek()
	if t.kind == end {
		return &SyntaxError{Col: t.col, Msg: msg}
	}
	return &SyntaxError{Col: t.col, Msg: fmt.Sprintf("%s, found %q", msg, t.text)}
}

func (p *parser) or() (node, error) {
	return p.chain("or", p.and, func(list []node) node { return anyOf(list) })
}

func (p *parser) and() (node, error) {
	return p.chain("and", p.not, func(list []node) node { return allOf(list) })
}

// chain reads parts with a keyword between them.
func (p *parser) chain(keyword string, part func() (node, error), join func([]node) node) (node, error) {
	var list []node
	for {
		n, err := part()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if !p.accept(keyword) {
			break
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return join(list), nil
}

func (p *parser) not() (node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, p.unexpected(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	switch {
	case p.accept("not"):
		n, err := p.not()
		return notNode{n}, err
	case p.accept("("):
		n, err := p.or()
		if err == nil && !p.accept(")") {
			err = p.unexpected(`expected ")"`)
		}
		return n, err
	}
	return p.test()
}

// test reads a field, an operator and what it is compared with.
func (p *parser) test() (node, error) {
	field, err := p.field()
	if err != nil {
		return nil, err
	}
	op := p.peek()
	switch {
	case p.accept("in"):
		list, err := p.list()
		return test{field, "in", list}, err
	case p.accept("is"):
		if !p.accept("set") {
			return nil, p.unexpected(`expected "set" after "is"`)
		}
		return test{field, "set", nil}, nil
	case op.kind == symbol && slices.Contains([]string{"=", "!=", "<", "<=", ">", ">=", "~"}, op.text):
		p.take()
		l, err := p.literal(fmt.Sprintf("expected a value after %q", op.text))
		if err != nil {
			return nil, err
		}
		if op.text == "!=" {
			return notNode{test{field, "=", []literal{l}}}, nil
		}
		return test{field, op.text, []literal{l}}, nil
	}
	return nil, p.unexpected("expected one of = != < <= > >= ~ in is")
}

// field reads the name of a value and returns its index in p.fields.
func (p *parser) field() (int, error) {
	t := p.peek()
	if t.kind != word || keyword(t.text) {
		return 0, p.unexpected("expected a field, such as status or metric.loss")
	}
	p.take()
	f, at, err := fieldOf(t.text)
	if err != nil {
		return 0, &SyntaxError{Col: t.col, Msg: err.Error(), Help: fieldHelp()}
	}
	if at {
		if f.Step, err = p.step(t); err != nil {
			return 0, err
		}
	}
	if i := slices.Index(p.fields, f); i >= 0 {
		return i, nil
	}
	p.fields = append(p.fields, f)
	return len(p.fields) - 1, nil
}

// step reads the "(100)" after a field that ends in ".at".
func (p *parser) step(field token) (int64, error) {
	if !p.accept("(") {
		return 0, p.unexpected(fmt.Sprintf("expected a step, as in %s(100)", field.text))
	}
	t := p.take()
	f, err := ParseField(field.text + "(" + t.text + ")")
	if err != nil || t.kind != word {
		return 0, &SyntaxError{Col: t.col, Msg: fmt.Sprintf("expected a step, as in %s(100)", field.text)}
	}
	if !p.accept(")") {
		return 0, p.unexpected(`expected ")"`)
	}
	return f.Step, nil
}

// list reads "[a, b]".
func (p *parser) list() ([]literal, error) {
	if !p.accept("[") {
		return nil, p.unexpected(`expected "[" after "in"`)
	}
	var list []literal
	for !p.accept("]") {
		if len(list) > 0 && !p.accept(",") {
			return nil, p.unexpected(`expected "," or "]"`)
		}
		l, err := p.literal("expected a value")
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

func (p *parser) literal(msg string) (literal, error) {
	t := p.peek()
	if t.kind != quoted && (t.kind != word || keyword(t.text)) {
		return literal{}, p.unexpected(msg)
	}
	p.take()
	return literalOf(t), nil
}

// keyword reports whether a word must be quoted to be a value.
func keyword(text string) bool {
	return slices.Contains([]string{"and", "or", "not", "in", "is"}, text)
}

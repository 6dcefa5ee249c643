package query

import (
	"fmt"
	"slices"
	"strings"
)

// Reader lets a language read the words of an operand.
type Reader struct {
	tokens []token // unread tokens; the last one is end
}

// Word is a word of a text, or one in quotes.
type Word struct {
	Text string
	Col  int // where, in runes from 0
}

// Word takes the next word, which must not be a keyword. Otherwise its error names
// expected.
func (r *Reader) Word(expected string) (Word, error) {
	t := r.peek()
	if t.kind != word || keyword(t.text) {
		return Word{}, r.Unexpected(expected)
	}
	r.skip()
	return Word{t.text, t.col}, nil
}

// Accept takes the next word or symbol if it equals text.
func (r *Reader) Accept(text string) bool {
	t := r.peek()
	if t.text != text || t.kind != word && t.kind != symbol {
		return false
	}
	r.skip()
	return true
}

// Unexpected returns an error about the next word or symbol that names what was expected.
func (r *Reader) Unexpected(expected string) *SyntaxError {
	t := r.peek()
	if t.kind == end {
		return &SyntaxError{Col: t.col, Msg: expected}
	}
	return &SyntaxError{Col: t.col, Msg: fmt.Sprintf("%s, found %q", expected, t.text)}
}

func (r *Reader) peek() token { return r.tokens[0] }

// skip goes to the next token; it stays at the end.
func (r *Reader) skip() {
	if r.tokens[0].kind != end {
		r.tokens = r.tokens[1:]
	}
}

// maxDepth bounds the nesting of parentheses and "not", since the parser is recursive.
const maxDepth = 100

// parser reads a condition by recursive descent.
type parser[F comparable] struct {
	Reader
	language Language[F]
	fields   []F
	depth    int
}

func (p *parser[F]) or() (node, error) {
	return p.chain("or", p.and, func(list []node) node { return anyOf(list) })
}

func (p *parser[F]) and() (node, error) {
	return p.chain("and", p.not, func(list []node) node { return allOf(list) })
}

// chain reads parts separated by a keyword.
func (p *parser[F]) chain(keyword string, part func() (node, error), join func([]node) node) (node, error) {
	var list []node
	for {
		n, err := part()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if !p.Accept(keyword) {
			break
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return join(list), nil
}

func (p *parser[F]) not() (node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, p.Unexpected(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	switch {
	case p.Accept("not"):
		n, err := p.not()
		return notNode{n}, err
	case p.Accept("("):
		n, err := p.or()
		if err == nil && !p.Accept(")") {
			err = p.Unexpected(`expected ")"`)
		}
		return n, err
	}
	return p.test()
}

// test reads an operand, an operator and literals.
func (p *parser[F]) test() (node, error) {
	start := p.tokens
	field, err := p.operand()
	if err != nil {
		return nil, err
	}
	operand := "" // as written
	for _, t := range start[:len(start)-len(p.tokens)] {
		operand += t.text
	}
	op, list, err := p.comparison(operand)
	if err != nil {
		return nil, err
	}
	if p.language.values != nil {
		values := p.language.values(p.fields[field])
		for i, l := range list {
			if e := values.check(operand, op, l); e != nil {
				return nil, e
			}
			list[i].begins = values.ID
		}
	}
	if op == "!=" {
		return notNode{test{field, "=", list}}, nil
	}
	return test{field, op, list}, nil
}

// comparison reads what follows an operand: "!=" or an operator of test, and its literals.
func (p *parser[F]) comparison(operand string) (op string, list []literal, err error) {
	symbols, words := []string{"=", "!=", "<", "<=", ">", ">=", "~"}, " in is"
	if p.language.Numbers {
		symbols, words = symbols[:len(symbols)-1], ""
	}
	t := p.peek()
	switch {
	case p.language.Numbers && p.Accept("in"):
		return "", nil, p.noSets(operand, t.col)
	case p.Accept("in"):
		list, err = p.list()
		return "in", list, err
	case !p.language.Numbers && p.Accept("is"):
		if !p.Accept("set") {
			return "", nil, p.Unexpected(`expected "set" after "is"`)
		}
		return "set", nil, nil
	case t.kind == symbol && slices.Contains(symbols, t.text):
		p.skip()
		l, err := p.literal(fmt.Sprintf(" after %q", t.text))
		return t.text, []literal{l}, err
	}
	return "", nil, p.Unexpected("expected one of " + strings.Join(symbols, " ") + words)
}

// operand reads an operand and returns its index in p.fields.
func (p *parser[F]) operand() (int, error) {
	f, err := p.language.Operand(&p.Reader)
	if err != nil {
		return 0, err
	}
	if i := slices.Index(p.fields, f); i >= 0 {
		return i, nil
	}
	p.fields = append(p.fields, f)
	return len(p.fields) - 1, nil
}

// noSets returns the error about a test "in [a, b]" of a number: most who write it mean an interval, and
// a measured number is almost never equal to a or b.
func (p *parser[F]) noSets(operand string, col int) error {
	low, high := "LOW", "HIGH"
	if list, err := p.list(); err == nil && len(list) == 2 {
		low, high = list[0].text, list[1].text
	}
	return &SyntaxError{Col: col, Msg: `"in" is not for numbers here: it means "one of the list", not an interval`,
		Help: fmt.Sprintf("write an interval as %s >= %s and %s <= %s", operand, low, operand, high)}
}

// list reads "[a, b]".
func (p *parser[F]) list() ([]literal, error) {
	if !p.Accept("[") {
		return nil, p.Unexpected(`expected "[" after "in"`)
	}
	var list []literal
	for !p.Accept("]") {
		if len(list) > 0 && !p.Accept(",") {
			return nil, p.Unexpected(`expected "," or "]"`)
		}
		l, err := p.literal("")
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// literal reads a literal; errors include place.
func (p *parser[F]) literal(place string) (literal, error) {
	t, expected := p.peek(), "expected a value"
	if p.language.Numbers {
		expected = "expected a number"
	}
	if t.kind != quoted && (t.kind != word || keyword(t.text)) {
		return literal{}, p.Unexpected(expected + place)
	}
	l := literalOf(t)
	if p.language.Numbers && !l.isNumber {
		return literal{}, p.Unexpected(expected + place)
	}
	p.skip()
	return l, nil
}

// keyword reports whether a word is reserved; as a value it must be quoted.
func keyword(text string) bool {
	return slices.Contains([]string{"and", "or", "not", "in", "is"}, text)
}

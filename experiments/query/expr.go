package query

import (
	"slices"
	"time"
)

// Language is a language of conditions. All have one grammar, with "not" before "and"
// before "or":
//
//	condition = and { "or" and }
//	and       = not { "and" not }
//	not       = "not" not | "(" condition ")" | test
//	test      = operand ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" ) literal
//	          | operand "in" "[" [ literal { "," literal } ] "]"     one of them, not an interval
//	          | operand "is" "set"
//
// Literals are numbers, words, strings in single or double quotes, durations (90s 3h 2d
// 1h30m), days (2026-01-02) and instants (2026-01-02T15:04:05Z). Each language defines
// its operands.
type Language[F comparable] struct {
	Name    string                     // of a text, in errors: "filter"
	Operand func(r *Reader) (F, error) // reads one
	// Numbers is true if all operands are numbers: literals are then numbers, without "~",
	// "in" and "is set".
	Numbers bool
	// values describes the values of an operand; nil: any.
	values func(F) Values
}

// Expr is a condition on operands of type F. It is immutable; make one with Parse.
type Expr[F comparable] struct {
	text   string
	fields []F
	root   node
}

// Parse reads a condition. The error is a *SyntaxError.
func (l Language[F]) Parse(text string) (*Expr[F], error) {
	located := func(err error) error {
		e := err.(*SyntaxError)
		e.Language, e.Text = l.Name, text
		return e
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, located(err)
	}
	p := &parser[F]{Reader: Reader{tokens: tokens}, language: l}
	root, err := p.or()
	if err == nil && p.peek().kind != end {
		err = p.Unexpected("expected and, or, or the end")
	}
	if err != nil {
		return nil, located(err)
	}
	return &Expr[F]{text: text, fields: p.fields, root: root}, nil
}

// String returns the condition as written.
func (e *Expr[F]) String() string { return e.text }

// Fields returns the operands whose values Match needs, each once.
func (e *Expr[F]) Fields() []F { return slices.Clone(e.fields) }

// Match reports whether the condition holds for values, which follow the order of Fields.
// Ages are relative to now.
func (e *Expr[F]) Match(values []any, now time.Time) bool { return e.root.match(values, now) }

// node is a part of a condition.
type node interface {
	match(values []any, now time.Time) bool
}

type anyOf []node

func (n anyOf) match(values []any, now time.Time) bool {
	return slices.ContainsFunc(n, func(c node) bool { return c.match(values, now) })
}

type allOf []node

func (n allOf) match(values []any, now time.Time) bool {
	return !slices.ContainsFunc(n, func(c node) bool { return !c.match(values, now) })
}

type notNode struct{ node }

func (n notNode) match(values []any, now time.Time) bool { return !n.node.match(values, now) }

// test compares one operand with literals. Op is one of = < <= > >= ~ in set.
type test struct {
	field    int // in Expr.fields
	op       string
	literals []literal
}

func (n test) match(values []any, now time.Time) bool {
	v := values[n.field]
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, func(e any) bool { return n.matchOne(e, now) })
	}
	return n.matchOne(v, now)
}

func (n test) matchOne(v any, now time.Time) bool {
	if n.op == "set" || v == nil {
		return v != nil
	}
	return slices.ContainsFunc(n.literals, func(l literal) bool { return compare(v, n.op, l, now) })
}

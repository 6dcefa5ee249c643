package query

import (
	"slices"
	"time"

	"exp/experiments/store"
)

// Filter is a condition on runs:
//
//	filter  = and { "or" and }
//	and     = not { "and" not }
//	not     = "not" not | "(" filter ")" | test
//	test    = field ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" ) literal
//	        | field "in" "[" [ literal { "," literal } ] "]"
//	        | field "is" "set"
//
// Fields are those of ParseField. Literals are numbers, words, strings in single
// or double quotes, durations (90s 3h 2d 1h30m), days (2026-01-02) and instants
// (2026-01-02T15:04:05Z).
//
// A test is true or false, nothing third: a value that is not there, or of
// another type than the literal, fails every test but "!=", and "a != b" is
// "not a = b". A value that is a list (tag, a list in the config) passes if one
// of its elements does. Compared with a duration, a time stands for its age
// (created < 2d: in the last two days), and seconds for themselves (wall > 3h).
// "~" matches text: * is any characters, ? is one.
//
// A Filter is immutable. The zero value is not usable.
type Filter struct {
	fields []store.Field
	root   node
}

// Parse reads a filter. The error is a *SyntaxError.
func Parse(text string) (*Filter, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, located(err, text)
	}
	p := &parser{tokens: tokens}
	root, err := p.or()
	if err == nil && p.peek().kind != end {
		err = p.unexpected("expected and, or, or the end")
	}
	if err != nil {
		return nil, located(err, text)
	}
	return &Filter{fields: p.fields, root: root}, nil
}

func located(err error, text string) error {
	err.(*SyntaxError).Text = text
	return err
}

// Fields are the values that Match needs, each once.
func (f *Filter) Fields() []store.Field { return slices.Clone(f.fields) }

// Match reports whether a run passes. values are those of Fields, in that order,
// as store.RunFields returns them; ages are counted up to now.
func (f *Filter) Match(values []any, now time.Time) bool { return f.root.match(values, now) }

// node is a part of a filter.
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

// test compares one field with literals. Op is one of = < <= > >= ~ in set.
type test struct {
	field    int // in Filter.fields
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

package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"unicode/utf8"
)

// follows reports whether a value follows all parts, by the words of draft 2020-12, except that oneOf is anyOf. deep
// counts the calls around this one.
func (x *schemaReader) follows(v any, deep int, parts ...part) (bool, error) {
	const deepest = 1000
	if deep > deepest {
		return false, errors.New("the schema refers to itself without anything between")
	}
	for _, p := range parts {
		ok, err := x.keeps(v, deep+1, p)
		if err != nil {
			return false, err
		}
		if ok == p.not {
			return false, nil
		}
	}
	return true, nil
}

// keeps reports whether a value follows a part without its "not".
func (x *schemaReader) keeps(v any, deep int, p part) (bool, error) {
	p.not = false
	if p.word == "" || p.word == anyWord {
		switch s := p.schema.(type) {
		case bool:
			return s, nil
		case object:
			words, err := keywords(s, p.at)
			if err != nil {
				return false, err
			}
			var list []part
			for _, word := range words {
				list = append(list, p.of(word))
			}
			return x.follows(v, deep, list...)
		}
		return false, fmt.Errorf("%s must be an object, or true or false", p.at)
	}
	if k := kindOfWord(p.word); k != 0 {
		return x.keepsTyped(v, deep, p, k)
	}
	switch p.word {
	case "$ref":
		to, err := x.target(p)
		if err != nil {
			return false, err
		}
		return x.follows(v, deep, to)
	case "not":
		sub := p.sub(p.word)
		return x.follows(v, deep, sub.opposite())
	case "allOf":
		list, err := p.schemas()
		if err != nil {
			return false, err
		}
		return x.follows(v, deep, list...)
	case "anyOf", "oneOf", "if":
		options, _, err := p.options()
		if err != nil {
			return false, err
		}
		return x.any(options, func(option []part) (bool, error) { return x.follows(v, deep, option...) })
	case "type":
		k, err := p.types()
		return k&kindOf(v) != 0, err
	}
	list, err := p.listed()
	return slices.ContainsFunc(list, func(o any) bool { return equal(o, v) }), err
}

// any reports whether something holds for one of some options.
func (x *schemaReader) any(options [][]part, holds func(option []part) (bool, error)) (bool, error) {
	for _, option := range options {
		if ok, err := holds(option); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// keepsTyped is keeps for keywords of values of one type, which all others follow.
func (x *schemaReader) keepsTyped(v any, deep int, p part, k kinds) (bool, error) {
	switch v := v.(type) {
	case object:
		if k == anObject {
			return x.keepsMembers(v, deep, p)
		}
	case []any:
		if k == anArray {
			return x.keepsItems(v, deep, p)
		}
	case string:
		if k != aText {
			break
		}
		if p.word == "pattern" || p.word == "format" {
			pattern, err := p.pattern()
			if err != nil {
				return false, err
			}
			re, err := regexp.Compile(pattern)
			return err == nil && re.MatchString(v), err
		}
		return p.bounds(utf8.RuneCountInString(v))
	case json.Number:
		if k == aNumber {
			return p.keepsNumber(v)
		}
	}
	return true, nil
}

// bounds reports whether a number of things is within a keyword's bound.
func (p part) bounds(n int) (bool, error) {
	limit, err := p.count()
	if p.word[:3] == "min" {
		return int64(n) >= limit, err
	}
	return int64(n) <= limit, err
}

// keepsNumber is keeps for numbers.
func (p part) keepsNumber(v json.Number) (bool, error) {
	raw, _ := p.value().(json.Number)
	limit, ok := rat(raw)
	n, fits := rat(v)
	if !ok || !fits {
		return false, fmt.Errorf("%s must be a number", p.where())
	}
	switch c := n.Cmp(limit); p.word {
	case "minimum":
		return c >= 0, nil
	case "maximum":
		return c <= 0, nil
	case "exclusiveMinimum":
		return c > 0, nil
	case "exclusiveMaximum":
		return c < 0, nil
	}
	if limit.Sign() <= 0 {
		return false, fmt.Errorf("%s must be above 0", p.where())
	}
	return new(big.Rat).Quo(n, limit).IsInt(), nil
}

// keepsItems is keeps for arrays.
func (x *schemaReader) keepsItems(v []any, deep int, p part) (bool, error) {
	switch p.word {
	case "items", "prefixItems":
		for i, item := range v {
			if ok, err := x.follows(item, deep, itemParts([]part{p}, i)...); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case "uniqueItems":
		for i := range v {
			if p.value() == true && slices.ContainsFunc(v[:i], func(o any) bool { return equal(o, v[i]) }) {
				return false, nil
			}
		}
		return true, nil
	}
	return p.bounds(len(v))
}

// keepsMembers is keeps for objects.
func (x *schemaReader) keepsMembers(v object, deep int, p part) (bool, error) {
	has := func(name string) bool { _, ok := v.get(name); return ok }
	switch p.word {
	case "required", mustHave:
		list, err := p.texts()
		return !slices.ContainsFunc(list, func(name string) bool { return !has(name) }), err
	case mustLack:
		list, err := p.texts()
		return !slices.ContainsFunc(list, has), err
	case "dependentRequired", "dependentSchemas":
		o, err := p.object()
		if err != nil {
			return false, err
		}
		for _, m := range o {
			options, err := p.made(m.name, p.word, object{m}).dependents()
			if err != nil {
				return false, err
			}
			ok, err := x.any(options, func(option []part) (bool, error) { return x.follows(v, deep, option...) })
			if !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case "propertyNames":
		for _, m := range v {
			if ok, err := x.follows(m.name, deep, p.sub(p.word)); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	case mustDiffer:
		if o := p.value().(object); !has(o[0].name) {
			return false, nil
		}
	case "minProperties", "maxProperties":
		return p.bounds(len(v))
	}
	m := members{x: x, words: []part{p}}
	for _, o := range v {
		if ok, err := x.follows(o.value, deep, m.partsOf(o.name)...); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// equal reports whether two values are the same.
func equal(a, b any) bool {
	switch a := a.(type) {
	case object:
		o, ok := b.(object)
		return ok && len(a) == len(o) && !slices.ContainsFunc(a, func(m member) bool {
			v, ok := o.get(m.name)
			return !ok || !equal(m.value, v)
		})
	case []any:
		list, ok := b.([]any)
		return ok && slices.EqualFunc(a, list, equal)
	case json.Number:
		n, ok := b.(json.Number)
		x, fits := rat(a)
		y, other := rat(n)
		return ok && (a == n || fits && other && x.Cmp(y) == 0)
	}
	switch b.(type) {
	case object, []any:
		return false
	}
	return a == b
}

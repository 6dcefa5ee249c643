package form

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// conjunction are keywords that hold together, without those that only name schemas whose keywords hold.
type conjunction struct {
	x     *schemaReader
	words []part          // each once
	has   map[string]bool // by id
	open  map[string]bool // schemas that are being read
	never bool            // no value follows them
}

// conjunction returns the keywords of parts.
func (x *schemaReader) conjunction(parts []part) (*conjunction, error) {
	c := &conjunction{x: x, has: map[string]bool{}, open: map[string]bool{}}
	for _, p := range parts {
		if err := c.add(p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// all returns the values that follow all parts. Each conjunction becomes a rule, so that schemas may refer to
// themselves, and to another one many times.
func (x *schemaReader) all(parts ...part) (expr, error) {
	c, err := x.conjunction(parts)
	switch {
	case err != nil:
		return nil, err
	case c.never:
		return never, nil
	case len(c.words) == 0:
		return x.json.value, nil
	case x.g.large:
		return nil, errLarge
	}
	key := c.key()
	if r, ok := x.rules[key]; ok {
		return use(r), nil
	}
	r := x.g.define(c.words[0].at)
	x.rules[key] = r
	e, err := x.either(c, x.all, x.values)
	if err != nil {
		return nil, err
	}
	e(x.g, x.g.rules[r].in, x.g.rules[r].out)
	return use(r), nil
}

// key tells conjunctions apart.
func (c *conjunction) key() string {
	var ids []string
	for _, p := range c.words {
		ids = append(ids, p.id())
	}
	slices.Sort(ids)
	return strings.Join(ids, "\n")
}

// either returns the texts of a conjunction: of what read makes of each option of its first choice, or what last makes
// of one without choices.
func (x *schemaReader) either(c *conjunction, read func(parts ...part) (expr, error),
	last func(c *conjunction) (expr, error)) (expr, error) {
	for i, p := range c.words {
		options, choice, err := p.options()
		if err != nil {
			return nil, err
		}
		if !choice {
			continue
		}
		var list []expr
		for _, option := range options {
			rest := slices.Delete(slices.Clone(c.words), i, i+1)
			e, err := read(append(rest, option...)...)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		return alt(list...), nil
	}
	return last(c)
}

// mostOptions bounds the conjunctions of choices that become no rules.
const mostOptions = 256

// options returns the conjunctions without choices that together have the values of parts.
func (x *schemaReader) options(parts ...part) (list []*conjunction, err error) {
	c, err := x.conjunction(parts)
	if err != nil || c.never {
		return nil, err
	}
	add := func(c *conjunction) (expr, error) {
		if list = append(list, c); len(list) > mostOptions {
			return nil, fmt.Errorf("%s has too many choices: more than %d", c.words[0].at, mostOptions)
		}
		return never, nil
	}
	var read func(parts ...part) (expr, error)
	read = func(parts ...part) (expr, error) {
		c, err := x.conjunction(parts)
		if err != nil || c.never {
			return never, err
		}
		return x.either(c, read, add)
	}
	_, err = x.either(c, read, add)
	return list, err
}

// add adds a part.
func (c *conjunction) add(p part) error {
	if p.word != "" {
		return c.keyword(p)
	}
	switch s := p.schema.(type) {
	case bool:
		c.never = c.never || s == p.not
		return nil
	case object:
		id := p.id()
		if c.open[id] {
			return fmt.Errorf("%s refers to itself without anything between", p.at)
		}
		if c.has[id] {
			return nil
		}
		c.has[id], c.open[id] = true, true
		defer delete(c.open, id)
		words, err := keywords(s, p.at)
		switch {
		case err != nil:
			return err
		case p.not && len(words) == 0:
			c.never = true
		case p.not && len(words) > 1:
			c.note(p.of(anyWord))
			return nil
		}
		for _, word := range words {
			if err := c.keyword(p.of(word)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s must be an object, or true or false", p.at)
}

// addAll adds parts.
func (c *conjunction) addAll(list []part) error {
	for _, p := range list {
		if err := c.add(p); err != nil {
			return err
		}
	}
	return nil
}

// note adds a keyword as it is.
func (c *conjunction) note(p part) {
	if id := p.id(); !c.has[id] {
		c.has[id], c.words = true, append(c.words, p)
	}
}

// keyword adds a keyword.
func (c *conjunction) keyword(p part) error {
	switch p.word {
	case "$ref":
		to, err := c.x.target(p)
		if err != nil {
			return err
		}
		to.not = p.not
		return c.add(to)
	case "not":
		sub := p.sub("not")
		sub.not = !p.not
		return c.add(sub)
	case "allOf", "anyOf", "oneOf":
		list, err := p.schemas()
		if err != nil {
			return err
		}
		if p.not != (p.word == "allOf") {
			return c.addAll(list)
		}
	case "dependentRequired", "dependentSchemas":
		if o, err := p.object(); err == nil && !p.not && len(o) != 1 {
			for _, m := range o {
				c.note(p.made(m.name, p.word, object{m}))
			}
			return nil
		}
	}
	if p.not {
		if list, ok, err := p.instead(); ok || err != nil {
			for _, other := range list {
				if other.word == "" {
					c.never = true
				} else {
					c.note(other)
				}
			}
			return err
		}
	}
	c.note(p)
	return nil
}

// schemas returns the schemas of a keyword's list, or their opposites.
func (p part) schemas() (list []part, err error) {
	v, ok := p.value().([]any)
	if !ok || len(v) == 0 {
		return nil, fmt.Errorf("%s must be a list with something in it", p.where())
	}
	for i, v := range v {
		sub := p.item(v, i)
		sub.not = p.not
		list = append(list, sub)
	}
	return list, nil
}

// made returns a keyword that follows from p. name tells it from others that do.
func (p part) made(name, word string, value any) part {
	return part{schema: object{{word, value}}, at: p.at, word: word,
		key: fmt.Sprintf("%s/%s (%s)", p.key, p.word, escapedPointer(name))}
}

// typed returns a keyword that says the type of values.
func (p part) typed(name string) part { return p.made("", "type", name) }

// counters are keywords that count, and their opposites, which begin at another number.
var counters = map[string]struct {
	opposite, of string
	step         int64
}{
	"minLength": {"maxLength", "string", -1}, "maxLength": {"minLength", "string", 1},
	"minItems": {"maxItems", "array", -1}, "maxItems": {"minItems", "array", 1},
	"minProperties": {"maxProperties", "object", -1}, "maxProperties": {"minProperties", "object", 1},
}

// beyond are bounds, and their opposites.
var beyond = map[string]string{"minimum": "exclusiveMaximum", "maximum": "exclusiveMinimum",
	"exclusiveMinimum": "maximum", "exclusiveMaximum": "minimum"}

// instead returns the keywords of the values that p, an opposite, has; ok is false if it stays as it is.
func (p part) instead() (list []part, ok bool, err error) {
	if other, ok := beyond[p.word]; ok {
		return []part{p.typed("number"), p.made("", other, p.value())}, true, nil
	}
	if other, ok := counters[p.word]; ok {
		n, err := p.count()
		if err != nil {
			return nil, false, err
		}
		if n += other.step; n < 0 {
			return []part{{schema: false}}, true, nil
		}
		return []part{p.typed(other.of), p.made("", other.opposite, json.Number(strconv.FormatInt(n, 10)))}, true, nil
	}
	switch p.word {
	case "pattern", "format":
		return []part{p.typed("string"), p}, true, nil
	case "multipleOf":
		return []part{p.typed("number"), p}, true, nil
	case "uniqueItems":
		if p.value() == false {
			return []part{{schema: false}}, true, nil
		}
	case "type", "enum", "const", "allOf", "if", "properties", "required", "dependentRequired", anyWord:
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("%s is not supported under \"not\" or in an \"if\"", p.where())
}

// options returns conjunctions for a keyword: a value follows it if it follows one of them. choice is false for other
// keywords.
func (p part) options() (list [][]part, choice bool, err error) {
	switch {
	case p.word == "anyOf", p.word == "oneOf", p.word == "allOf":
		all, err := p.schemas()
		for _, sub := range all {
			list = append(list, []part{sub})
		}
		return list, true, err
	case p.word == anyWord:
		words, err := keywords(p.schema.(object), p.at)
		for _, word := range words {
			list = append(list, []part{p.of(word)})
		}
		return list, true, err
	case p.word == "if":
		return p.conditions(), true, nil
	case p.word == "dependentRequired", p.word == "dependentSchemas":
		list, err = p.dependents()
		return list, true, err
	case p.word == "required" && p.not:
		names, err := p.texts()
		for _, name := range names {
			list = append(list, []part{p.typed("object"), p.made(name, mustLack, []any{name})})
		}
		return list, true, err
	case p.word == "properties" && p.not:
		o, err := p.object()
		for _, m := range o {
			list = append(list, []part{p.typed("object"), p.made(m.name, mustDiffer, object{m})})
		}
		return list, true, err
	}
	return nil, false, nil
}

// conditions returns the options of an "if".
func (p part) conditions() (list [][]part) {
	for _, holds := range []bool{true, false} {
		condition, word := p.sub("if"), "then"
		if condition.not = !holds; !holds {
			word = "else"
		}
		option := []part{condition}
		if _, ok := p.get(word); ok {
			sub := p.sub(word)
			sub.not = p.not
			option = append(option, sub)
		} else if p.not {
			continue
		}
		list = append(list, option)
	}
	return list
}

// dependents returns the options of what depends on members.
func (p part) dependents() (list [][]part, err error) {
	o, err := p.object()
	if err != nil {
		return nil, err
	}
	for _, m := range o {
		have := p.made(m.name, mustHave, []any{m.name})
		if p.word == "dependentSchemas" {
			return [][]part{{p.made(m.name, mustLack, []any{m.name})}, {have, p.member(m)}}, nil
		}
		inner := part{schema: o, at: p.where(), word: m.name}
		names, err := inner.texts()
		if err != nil {
			return nil, err
		}
		if !p.not {
			all := []any{m.name}
			for _, name := range names {
				all = append(all, name)
			}
			return [][]part{{p.made(m.name, mustLack, []any{m.name})}, {p.made(m.name, mustHave, all)}}, nil
		}
		for _, name := range names {
			list = append(list, []part{p.typed("object"), have, p.made(m.name+"/"+name, mustLack, []any{name})})
		}
	}
	return list, nil
}

// count returns a keyword's value, a number of things from 0.
func (p part) count() (int64, error) {
	raw, _ := p.value().(json.Number)
	n, ok := rat(raw)
	if !ok || !n.IsInt() || n.Sign() < 0 || n.Cmp(big.NewRat(mostNodes, 1)) > 0 {
		return 0, fmt.Errorf("%s must be an integer from 0 to %d", p.where(), mostNodes)
	}
	return n.Num().Int64(), nil
}

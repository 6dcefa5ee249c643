package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// kinds are types of JSON values, where whole numbers and others are apart.
type kinds uint8

// The kinds.
const (
	anObject kinds = 1 << iota
	anArray
	aText
	anInteger
	aFraction
	aBoolean
	aNull

	aNumber = anInteger | aFraction
	anyKind = 1<<iota - 1
)

// kindsByName are the types of JSON schema.
var kindsByName = map[string]kinds{"object": anObject, "array": anArray, "string": aText, "integer": anInteger,
	"number": aNumber, "boolean": aBoolean, "null": aNull}

// kindOf returns the kind of a value.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case object:
		return anObject
	case []any:
		return anArray
	case string:
		return aText
	case bool:
		return aBoolean
	case json.Number:
		if x, ok := rat(v); ok && x.IsInt() {
			return anInteger
		}
		return aFraction
	}
	return aNull
}

// types returns the kinds that "type" names.
func (p part) types() (all kinds, err error) {
	v := p.value()
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		t, _ := v.(string)
		k, known := kindsByName[t]
		if !known {
			return 0, fmt.Errorf("%s is %v, must be one of %s, or a list of them", p.where(), v,
				strings.Join(sortedKeys(kindsByName), ", "))
		}
		all |= k
	}
	if all == 0 {
		return 0, fmt.Errorf("%s is an empty list", p.where())
	}
	return all, nil
}

// listed returns the values of "enum" or "const".
func (p part) listed() ([]any, error) {
	if p.word == "const" {
		return []any{p.value()}, nil
	}
	list, ok := p.value().([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("%s must be a list with something in it", p.where())
	}
	return list, nil
}

// facts are what a conjunction without choices says of values of all types.
type facts struct {
	kinds  kinds
	differ []any // values follow none of these
	listed []any // if list is set: they are some of these
	list   bool
	words  []part // that restrict values of one type
}

// facts reads a conjunction.
func (x *schemaReader) facts(c *conjunction) (f facts, err error) {
	f.kinds = anyKind
	implied, said := kinds(0), false
	for _, p := range c.words {
		switch p.word {
		case "type":
			k, err := p.types()
			if err != nil {
				return f, err
			}
			if p.not {
				k = anyKind &^ k
			}
			f.kinds, said = f.kinds&k, said || !p.not
		case "enum", "const":
			list, err := p.listed()
			switch {
			case err != nil:
				return f, err
			case p.not:
				f.differ = append(f.differ, list...)
			case !f.list:
				f.listed, f.list = list, true
			}
		default:
			if f.words = append(f.words, p); !p.not {
				implied |= kindOfWord(p.word)
			}
		}
	}
	if said || f.list || implied == 0 {
		return f, nil
	}
	if implied != aNumber && implied&(implied-1) != 0 {
		return f, fmt.Errorf("%s has keywords of several types and no \"type\"", c.words[0].at)
	}
	f.kinds &= implied
	return f, nil
}

// values returns the values of a conjunction without choices.
func (x *schemaReader) values(c *conjunction) (expr, error) {
	f, err := x.facts(c)
	if err != nil {
		return nil, err
	}
	if f.list {
		list, err := x.among(c, f.listed)
		if err != nil {
			return nil, err
		}
		var all []expr
		for _, v := range list {
			all = append(all, x.json.valueOf(v))
		}
		return alt(all...), nil
	}
	var list []expr
	for _, k := range []kinds{anObject, anArray, aText, aNumber, aBoolean, aNull} {
		if f.kinds&k == 0 {
			continue
		}
		e, err := x.kind(f.kinds&k, c, &f)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return alt(list...), nil
}

// among returns the values of a list that follow a conjunction.
func (x *schemaReader) among(c *conjunction, list []any) (fit []any, err error) {
	for _, v := range list {
		ok, err := x.follows(v, 0, c.words...)
		if err != nil {
			return nil, err
		}
		if ok {
			fit = append(fit, v)
		}
	}
	return fit, nil
}

// kind returns the values of some kinds, of one type, that follow a conjunction.
func (x *schemaReader) kind(k kinds, c *conjunction, f *facts) (expr, error) {
	switch k {
	case aText:
		return x.text(f.words, f.differ)
	case aBoolean:
		return alt(f.unless(x.json.yes, true), f.unless(x.json.no, false)), nil
	case aNull:
		return f.unless(x.json.null, nil), nil
	case anObject, anArray:
		if err := x.differs(k, c, f); err != nil {
			return nil, err
		}
		if k == anArray {
			return x.array(f.words)
		}
		return x.object(f.words)
	}
	return x.number(k, f)
}

// unless returns an expression, or none if it stands for a value that is excluded.
func (f *facts) unless(e expr, v any) expr {
	if slices.Contains(f.differ, v) {
		return never
	}
	return e
}

// differs returns an error for objects and lists that are excluded, and would be allowed else.
func (x *schemaReader) differs(k kinds, c *conjunction, f *facts) error {
	for _, p := range c.words {
		if !p.not || p.word != "enum" && p.word != "const" {
			continue
		}
		list, err := p.listed()
		if err != nil {
			return err
		}
		others := slices.DeleteFunc(slices.Clone(c.words), func(o part) bool { return o.id() == p.id() })
		for _, v := range list {
			if kindOf(v) != k {
				continue
			}
			if ok, err := x.follows(v, 0, others...); ok || err != nil {
				return fmt.Errorf("%s with an object or a list is not supported under \"not\" or in an \"if\"",
					p.where())
			}
		}
	}
	return nil
}

package form

import (
	"encoding/json"
	"regexp"
	"slices"
)

// Types tells which types the arguments of a tool may have by the JSON schema of its parameters, also where the schema
// says so by references, values or the types of others. It returns nil for an argument whose type the schema leaves
// open. It may name more types than values that follow the schema have.
func Types(parameters json.RawMessage) func(name string) []string {
	root, err := readValue(parameters)
	if err != nil {
		return func(string) []string { return nil }
	}
	return func(name string) []string { return (&typeReader{root: root}).of(name).names() }
}

// names returns the names of kinds; nil for none.
func (k kinds) names() (list []string) {
	for _, name := range sortedKeys(kindsByName) {
		switch of := kindsByName[name]; {
		case name == "integer" && k&aNumber != anInteger, name == "number" && k&aFraction == 0, k&of == 0:
		default:
			list = append(list, name)
		}
	}
	return list
}

// typeReader finds types in a schema.
type typeReader struct{ root any }

// of returns the kinds of the argument with a name; 0: the schema does not say.
func (t *typeReader) of(name string) kinds {
	return t.argument(func(o object) (any, bool) { return o.get(name) }, func(pattern string) bool {
		re, err := regexp.Compile(pattern)
		return err == nil && re.MatchString(name)
	})
}

// argument returns the kinds of an argument that own finds among properties, and patterns find or not.
func (t *typeReader) argument(own func(o object) (any, bool), found func(pattern string) bool) kinds {
	inner := typeWalk{root: t.root, own: ownKinds, refs: map[string]kinds{}}
	walk := typeWalk{root: t.root, refs: map[string]kinds{}, own: func(o object) kinds {
		all, known := anyKind, false
		if v, ok := among(o, "properties", own); ok {
			all, known = all&inner.kinds(v), true
		}
		patterns, _ := o.get("patternProperties")
		list, _ := patterns.(object)
		for _, m := range list {
			if found(m.name) {
				all, known = all&inner.kinds(m.value), true
			}
		}
		if v, ok := o.get("additionalProperties"); ok && !known {
			all &= inner.kinds(v)
		}
		return all
	}}
	if all := walk.kinds(t.root); all != anyKind {
		return all
	}
	return 0
}

// among returns what own finds among a keyword's members.
func among(o object, word string, own func(o object) (any, bool)) (any, bool) {
	v, _ := o.get(word)
	list, _ := v.(object)
	return own(list)
}

// typeWalk finds the kinds of values that a schema allows, by what own says of each schema without those that it
// refers to.
type typeWalk struct {
	root any
	own  func(o object) kinds
	refs map[string]kinds // by pointer, also of schemas that are being read
}

func (w *typeWalk) kinds(v any) kinds {
	o, ok := v.(object)
	switch {
	case v == false:
		return 0
	case !ok:
		return anyKind
	}
	all := w.own(o)
	if name, ok := o.get("$ref"); ok {
		all &= w.ref(name)
	}
	list := func(word string) []any {
		v, _ := o.get(word)
		list, _ := v.([]any)
		return list
	}
	for _, v := range list("allOf") {
		all &= w.kinds(v)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		some, any := kinds(0), list(word)
		for _, v := range any {
			some |= w.kinds(v)
		}
		if len(any) > 0 {
			all &= some
		}
	}
	then, ok1 := o.get("then")
	other, ok2 := o.get("else")
	if _, ok := o.get("if"); ok && ok1 && ok2 {
		all &= w.kinds(then) | w.kinds(other)
	}
	return all
}

// ref returns the kinds of a schema that is referred to.
func (w *typeWalk) ref(name any) kinds {
	pointer, _ := name.(string)
	v, key, ok := find(w.root, pointer)
	if all, known := w.refs[key]; known {
		return all
	}
	if !ok {
		return anyKind
	}
	w.refs[key] = anyKind
	w.refs[key] = w.kinds(v)
	return w.refs[key]
}

// ownKinds returns the kinds that a schema's own keywords allow.
func ownKinds(o object) kinds {
	all, said := anyKind, false
	implied := kinds(0)
	for _, m := range o {
		p := part{schema: o, word: m.name}
		switch m.name {
		case "type":
			if k, err := p.types(); err == nil {
				all, said = all&k, true
			}
		case "enum", "const":
			some := kinds(0)
			list, _ := p.listed()
			for _, v := range list {
				some |= kindOf(v)
			}
			all, said = all&some, true
		case "$ref", "anyOf", "oneOf", "allOf", "if":
			said = true
		default:
			implied |= kindOfWord(m.name)
		}
	}
	if !said && implied != 0 {
		all &= implied
	}
	return all
}

// names returns the names of all arguments that a schema of parameters has.
func (t *typeReader) names() (list []string) {
	seen := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		o, _ := v.(object)
		for _, m := range o {
			switch value := m.value.(type) {
			case object:
				if m.name == "properties" {
					for _, p := range value {
						if !slices.Contains(list, p.name) {
							list = append(list, p.name)
						}
					}
				}
				if m.name == "dependentSchemas" {
					for _, p := range value {
						walk(p.value)
					}
				}
				if slices.Contains([]string{"if", "then", "else", "not"}, m.name) {
					walk(value)
				}
			case []any:
				if slices.Contains([]string{"allOf", "anyOf", "oneOf"}, m.name) {
					for _, v := range value {
						walk(v)
					}
				}
			case string:
				if to, key, ok := find(t.root, value); m.name == "$ref" && ok && !seen[key] {
					seen[key] = true
					walk(to)
				}
			}
		}
	}
	walk(t.root)
	return list
}

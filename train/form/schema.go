package form

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schema returns the JSON values that follow a JSON schema, where the members of an object come in the order of its
// properties. It knows these parts of draft 2020-12:
//
//	type, enum, const, anyOf, oneOf, allOf, not, if, then, else, $ref within the schema, also to itself
//	properties, required, additionalProperties, patternProperties, propertyNames, minProperties, maxProperties,
//	dependentRequired, dependentSchemas
//	items, prefixItems, minItems, maxItems, uniqueItems of items with few values
//	minLength, maxLength, pattern, format (formats.go)
//	minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
//
// Others are errors, except those that describe. Texts are some of those that follow the schema: an object with
// properties has no others unless additionalProperties or patternProperties allow them, and without a type the
// keywords tell which one is meant. Two liberties remain: oneOf is anyOf, at least one schema fits; and a name may
// come again among an object's further members, of which the last one counts.
//
// A schema is read as parts that hold together (conjunction.go). What one keyword adds to another is worked out for
// values of each type: bounds are compared, and automata of texts are met (meet.go).
func schema(g *grammar, raw json.RawMessage) (expr, error) {
	v, err := readValue(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	return newSchemaReader(g, v, jsonOf(g)).all(whole(v))
}

// schemaReader turns the parts of a schema into a grammar.
type schemaReader struct {
	g     *grammar
	json  *jsonRules
	root  any
	rules map[string]int32 // of conjunctions
}

func newSchemaReader(g *grammar, root any, rules *jsonRules) *schemaReader {
	return &schemaReader{g: g, json: rules, root: root, rules: map[string]int32{}}
}

// part is a part of a schema, or one keyword of it, that values follow, or do not.
type part struct {
	schema any
	at     string // what errors call it
	key    string // tells schemas apart: a pointer
	word   string // the keyword; empty: all of them
	not    bool
}

// whole returns a schema as a part of itself.
func whole(root any) part { return part{schema: root, at: "the schema", key: "#"} }

// id tells parts apart.
func (p part) id() string { return fmt.Sprintf("%s %q %t", p.key, p.word, p.not) }

// get returns the value of a keyword of the same schema.
func (p part) get(word string) (any, bool) {
	o, _ := p.schema.(object)
	return o.get(word)
}

// value returns the value of the part's keyword.
func (p part) value() any {
	v, _ := p.get(p.word)
	return v
}

// where returns what errors call the part's keyword.
func (p part) where() string { return p.at + "." + p.word }

// of returns another keyword of the same schema.
func (p part) of(word string) part {
	p.word = word
	return p
}

// sub returns the schema that a keyword has for its value.
func (p part) sub(word string) part {
	v, _ := p.get(word)
	return part{schema: v, at: p.at + "." + word, key: p.key + "/" + word}
}

// item returns schema i of a keyword's list.
func (p part) item(v any, i int) part {
	return part{schema: v, at: fmt.Sprintf("%s[%d]", p.where(), i), key: fmt.Sprintf("%s/%s/%d", p.key, p.word, i)}
}

// member returns the schema that a keyword's object has for a name.
func (p part) member(m member) part {
	return part{schema: m.value, at: p.where() + "." + m.name,
		key: p.key + "/" + p.word + "/" + escapedPointer(m.name)}
}

// opposite returns a part that values follow if they do not follow p.
func (p part) opposite() part {
	p.not = !p.not
	return p
}

// Keywords of schemas.
var (
	describing = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"$schema", "$id", "$comment", "$defs", "definitions", "discriminator"}
	choosing = []string{"$ref", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "const", "enum"}
	// ofKind are those that restrict values of one type.
	ofKind = map[kinds][]string{
		anObject: {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
			"minProperties", "maxProperties", "dependentRequired", "dependentSchemas", mustHave, mustLack, mustDiffer},
		anArray: {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
		aText:   {"minLength", "maxLength", "pattern", "format"},
		aNumber: {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	}
)

// Keywords of our own: what follows from others of one member's name.
const (
	mustHave   = "must have"   // a list: these members are there
	mustLack   = "must lack"   // a list: these are not
	mustDiffer = "must differ" // the member is there, and its value does not follow this schema
	anyWord    = "any keyword" // with part.not: values do not follow some keyword of the schema
)

// keywords returns the keywords of a schema that restrict values, or an error for one that is not supported.
func keywords(o object, at string) (list []string, err error) {
	for _, m := range o {
		if slices.Contains(describing, m.name) {
			continue
		}
		if m.name != "type" && !slices.Contains(choosing, m.name) && (kindOfWord(m.name) == 0 || ours(m.name)) {
			return nil, fmt.Errorf("%s has %q, which is not supported", at, m.name)
		}
		if m.name != "then" && m.name != "else" { // which count for "if"
			list = append(list, m.name)
		}
	}
	return list, nil
}

func ours(word string) bool { return word == mustHave || word == mustLack || word == mustDiffer }

// kindOfWord returns the kind of values that a keyword restricts; 0: all.
func kindOfWord(word string) kinds {
	for k, list := range ofKind {
		if slices.Contains(list, word) {
			return k
		}
	}
	return 0
}

// target returns the schema that a reference names.
func (x *schemaReader) target(p part) (part, error) {
	name, ok := p.value().(string)
	if !ok || name != "#" && !strings.HasPrefix(name, "#/") {
		return p, fmt.Errorf("%s must be a text that begins with #: schemas elsewhere are not read", p.where())
	}
	if name == "#" {
		return whole(x.root), nil
	}
	v, key, ok := find(x.root, name)
	if !ok {
		return p, fmt.Errorf("%s: the schema has no %s", p.where(), name)
	}
	return part{schema: v, at: name, key: key}, nil
}

// find follows a JSON pointer (RFC 6901), and returns it in one spelling.
func find(v any, pointer string) (_ any, key string, ok bool) {
	key = "#"
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "#"), "/")[1:] {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		key += "/" + escapedPointer(step)
		ok := false
		switch in := v.(type) {
		case object:
			v, ok = in.get(step)
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(in) {
				v, ok = in[i], true
			}
		}
		if !ok {
			return nil, "", false
		}
	}
	return v, key, true
}

func escapedPointer(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
}

// texts returns a keyword's value, a list of texts.
func (p part) texts() (list []string, err error) {
	v, ok := p.value().([]any)
	for _, v := range v {
		s, isText := v.(string)
		ok = ok && isText
		list = append(list, s)
	}
	if !ok {
		return nil, fmt.Errorf("%s must be a list of names", p.where())
	}
	return list, nil
}

// object returns a keyword's value, an object.
func (p part) object() (object, error) {
	o, ok := p.value().(object)
	if !ok {
		return nil, fmt.Errorf("%s must be an object", p.where())
	}
	return o, nil
}

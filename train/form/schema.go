package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schema returns the JSON values that follow a JSON schema, where the members of an object come in the order of its
// properties. It knows these parts of draft 2020-12:
//
//	type, enum, const, anyOf, oneOf, allOf with one schema, $ref within the schema, also to itself
//	properties, required, additionalProperties
//	items, prefixItems, minItems, maxItems
//	minLength, maxLength, pattern, format (date, time, date-time, uuid, ipv4, email)
//	minimum, maximum, exclusiveMinimum, exclusiveMaximum
//
// Others are errors, except those that describe. An object with properties has no others unless additionalProperties
// allows them. oneOf is anyOf: at least one schema fits.
func schema(g *grammar, raw json.RawMessage) (expr, error) {
	v, err := readValue(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	x := &schemaReader{g: g, json: jsonOf(g), root: v, refs: map[string]int32{}}
	return x.read(v, "the schema")
}

// schemaReader turns the parts of a schema into a grammar.
type schemaReader struct {
	g    *grammar
	json *jsonRules
	root any
	refs map[string]int32 // rules by the references to them
}

// Keywords of schemas.
var (
	describing = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"$schema", "$id", "$comment", "$defs", "definitions", "discriminator"}
	choosing = []string{"$ref", "anyOf", "oneOf", "allOf", "const", "enum"}
	// ofType are those that restrict values of one type.
	ofType = map[string][]string{
		"object":  {"properties", "required", "additionalProperties"},
		"array":   {"items", "prefixItems", "minItems", "maxItems"},
		"string":  {"minLength", "maxLength", "pattern", "format"},
		"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
		"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
		"boolean": {},
		"null":    {},
	}
)

// read returns the values of a part of a schema, which errors call `at`.
func (x *schemaReader) read(v any, at string) (expr, error) {
	if b, ok := v.(bool); ok {
		if b {
			return x.json.value, nil
		}
		return never, nil
	}
	o, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("%s must be an object, or true or false", at)
	}
	rest := slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(describing, m.name) })
	if err := checkKeywords(rest, at); err != nil {
		return nil, err
	}
	for _, name := range choosing {
		if v, ok := rest.get(name); ok {
			return x.chosen(name, v, rest, at)
		}
	}
	types, err := typesOf(rest, at)
	if err != nil {
		return nil, err
	}
	if types == nil {
		return x.json.value, nil
	}
	var list []expr
	for _, t := range types {
		e, err := x.typed(t, rest, at)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return alt(list...), nil
}

// checkKeywords returns an error for a keyword that is not supported.
func checkKeywords(o object, at string) error {
	for _, m := range o {
		known := m.name == "type" || slices.Contains(choosing, m.name)
		for _, list := range ofType {
			known = known || slices.Contains(list, m.name)
		}
		if !known {
			return fmt.Errorf("%s has %q, which is not supported", at, m.name)
		}
	}
	return nil
}

// chosen reads a schema whose values others give.
func (x *schemaReader) chosen(name string, v any, o object, at string) (expr, error) {
	at += "." + name
	for _, m := range o {
		if m.name != name && !(m.name == "type" && (name == "const" || name == "enum")) {
			return nil, fmt.Errorf("%s next to %q is not supported", at, m.name)
		}
	}
	list, isList := v.([]any)
	switch name {
	case "$ref":
		return x.ref(v, at)
	case "const":
		return x.values([]any{v}, o, at)
	}
	if !isList || len(list) == 0 {
		return nil, fmt.Errorf("%s must be a list with something in it", at)
	}
	switch name {
	case "enum":
		return x.values(list, o, at)
	case "allOf":
		if len(list) > 1 {
			return nil, fmt.Errorf("%s with several schemas is not supported", at)
		}
	}
	var all []expr
	for i, v := range list {
		e, err := x.read(v, fmt.Sprintf("%s[%d]", at, i))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return alt(all...), nil
}

// values returns the values that have the type of a schema, if it says one.
func (x *schemaReader) values(list []any, o object, at string) (expr, error) {
	types, err := typesOf(o, at)
	if err != nil {
		return nil, err
	}
	var all []expr
	for _, v := range list {
		t := typeOf(v)
		if types == nil || slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number") {
			all = append(all, x.json.valueOf(v))
		}
	}
	return alt(all...), nil
}

// ref returns the values of the schema that a reference names.
func (x *schemaReader) ref(v any, at string) (expr, error) {
	name, ok := v.(string)
	if !ok || name != "#" && !strings.HasPrefix(name, "#/") {
		return nil, fmt.Errorf("%s must be a text that begins with #: schemas elsewhere are not read", at)
	}
	if r, ok := x.refs[name]; ok {
		return use(r), nil
	}
	to, ok := x.find(name)
	if !ok {
		return nil, fmt.Errorf("%s: the schema has no %s", at, name)
	}
	r := x.g.define(name)
	x.refs[name] = r
	e, err := x.read(to, name)
	if err != nil {
		return nil, err
	}
	e(x.g, x.g.rules[r].in, x.g.rules[r].out)
	return use(r), nil
}

// find follows a JSON pointer from the root (RFC 6901).
func (x *schemaReader) find(pointer string) (any, bool) {
	v := x.root
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "#"), "/")[1:] {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		ok := false
		switch in := v.(type) {
		case object:
			v, ok = in.get(part)
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(in) {
				v, ok = in[i], true
			}
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

// typesOf returns the types of a schema's values; nil: any. Without "type", keywords tell.
func typesOf(o object, at string) (types []string, err error) {
	v, ok := o.get("type")
	if !ok {
		for _, m := range o {
			for _, t := range sortedKeys(ofType) {
				if slices.Contains(ofType[t], m.name) && t != "integer" && !slices.Contains(types, t) {
					types = append(types, t)
				}
			}
		}
		if len(types) > 1 {
			return nil, fmt.Errorf("%s has keywords of several types and no \"type\"", at)
		}
		return types, nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		t, _ := v.(string)
		if _, known := ofType[t]; !known {
			return nil, fmt.Errorf("%s.type is %v, must be one of %s, or a list of them", at, v,
				strings.Join(sortedKeys(ofType), ", "))
		}
		types = append(types, t)
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("%s.type is an empty list", at)
	}
	return types, nil
}

// typed returns the values of a type that follow a schema.
func (x *schemaReader) typed(t string, o object, at string) (expr, error) {
	switch t {
	case "object":
		return x.object(o, at)
	case "array":
		return x.array(o, at)
	case "string":
		return x.string(o, at)
	case "boolean":
		return alt(text("true"), text("false")), nil
	case "null":
		return text("null"), nil
	}
	return x.number(t, o, at)
}

// number returns numbers within bounds.
func (x *schemaReader) number(t string, o object, at string) (expr, error) {
	var lo, hi bound
	for _, m := range o {
		if !slices.Contains(ofType["number"], m.name) {
			continue
		}
		raw, _ := m.value.(json.Number)
		n, ok := rat(raw)
		if !ok {
			return nil, fmt.Errorf("%s.%s must be a number", at, m.name)
		}
		strict := strings.HasPrefix(m.name, "exclusive")
		if strings.HasSuffix(strings.ToLower(m.name), "minimum") {
			lo = lo.tighter(bound{n, strict}, 1)
		} else {
			hi = hi.tighter(bound{n, strict}, -1)
		}
	}
	switch {
	case t == "integer" && lo.value == nil && hi.value == nil:
		return x.json.integer, nil
	case t == "integer":
		return integers(lo, hi), nil
	case lo.value == nil && hi.value == nil:
		return x.json.number, nil
	}
	e, err := numbers(lo, hi)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return e, nil
}

// tighter returns the tighter of two lower bounds, side 1, or upper ones, side -1.
func (b bound) tighter(other bound, side int) bound {
	if b.value == nil {
		return other
	}
	switch c := side * b.value.Cmp(other.value); {
	case c > 0, c == 0 && b.strict:
		return b
	}
	return other
}

// rat returns a number of JSON, if it is not so large or small that it would take much memory.
func rat(n json.Number) (*big.Rat, bool) {
	if _, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok && len(exponent) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}

// count returns a keyword's value, a number of things from 0, or none.
func count(o object, name, at string, none int) (int, error) {
	v, ok := o.get(name)
	if !ok {
		return none, nil
	}
	raw, _ := v.(json.Number)
	n, ok := rat(raw)
	if !ok || !n.IsInt() || n.Sign() < 0 || n.Cmp(big.NewRat(mostNodes, 1)) > 0 {
		return 0, fmt.Errorf("%s.%s must be an integer from 0 to %d", at, name, mostNodes)
	}
	return int(n.Num().Int64()), nil
}

// counts returns the least and the most of something; most is -1 without a limit.
func counts(o object, least, most, at string) (lo, hi int, err error) {
	lo, err = count(o, least, at, 0)
	if err == nil {
		hi, err = count(o, most, at, -1)
	}
	return lo, hi, err
}

// string returns strings that follow a schema.
func (x *schemaReader) string(o object, at string) (expr, error) {
	least, most, err := counts(o, "minLength", "maxLength", at)
	if err != nil {
		return nil, err
	}
	if most >= 0 && least > most {
		return never, nil
	}
	body := repeat(x.json.char, least, most)
	for _, name := range []string{"pattern", "format"} {
		v, ok := o.get(name)
		if !ok {
			continue
		}
		if _, both := o.get("pattern"); least > 0 || most >= 0 || name == "format" && both {
			return nil, fmt.Errorf("%s.%s next to another restriction of the string is not supported", at, name)
		}
		pattern, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("%s.%s must be a text", at, name)
		}
		if name == "format" {
			if pattern, ok = formats[pattern]; !ok {
				return nil, fmt.Errorf("%s.format is %q; supported are %s", at, v, strings.Join(sortedKeys(formats),
					", "))
			}
		}
		if body, err = search(pattern, stringChar); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", at, name, err)
		}
	}
	return seq(text(`"`), body, text(`"`)), nil
}

// Parts of formats. A month has the days that it has in every year.
const (
	dates = `[1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))`
	times = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	octet = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	label = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
)

// formats are the formats of strings, as regular expressions.
var formats = map[string]string{
	"date": "^" + dates + "$", "time": "^" + times + "$", "date-time": "^" + dates + "T" + times + "$",
	"uuid":  `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
	"ipv4":  `^(` + octet + `\.){3}` + octet + `$`,
	"email": `^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@` + label + `(\.` + label + `)+$`,
}

// array returns arrays that follow a schema.
func (x *schemaReader) array(o object, at string) (expr, error) {
	least, most, err := counts(o, "minItems", "maxItems", at)
	if err != nil {
		return nil, err
	}
	var first []expr
	if v, ok := o.get("prefixItems"); ok {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s.prefixItems must be a list", at)
		}
		for i, v := range list {
			e, err := x.read(v, fmt.Sprintf("%s.prefixItems[%d]", at, i))
			if err != nil {
				return nil, err
			}
			first = append(first, e)
		}
	}
	item := x.json.value
	if v, ok := o.get("items"); ok {
		if _, list := v.([]any); list {
			return nil, fmt.Errorf("%s.items is a list: prefixItems has those", at)
		}
		if item, err = x.read(v, at+".items"); err != nil {
			return nil, err
		}
		item = x.g.shared(at+".items", item)
	}
	return x.items(first, item, least, most), nil
}

// items stands for arrays of least to most items; the first ones have their own schemas.
func (x *schemaReader) items(first []expr, item expr, least, most int) expr {
	if len(first) == 0 && (most < 0 || least <= most) {
		return x.json.list("[", "]", item, least, most)
	}
	return func(g *grammar, from, to node) {
		at, end := g.node(), g.node()
		text("[")(g, from, at)
		seq(x.json.space, text("]"))(g, end, to)
		if least == 0 {
			text("]")(g, at, to)
		}
		for n := 0; n != most && !g.large; n++ {
			next, e, before := g.node(), item, x.json.comma()
			if n < len(first) {
				e = first[n]
			}
			if n == 0 {
				before = x.json.space
			}
			seq(before, e)(g, at, next)
			if n+1 >= least {
				g.skip(next, end)
			}
			at = next
			if most < 0 && n+1 >= max(least, len(first)) {
				star(seq(x.json.comma(), item))(g, at, end)
				return
			}
		}
	}
}

// errMember says that a required property has no schema.
var errMember = errors.New("is required, and properties has no schema for it")

// object returns objects that follow a schema.
func (x *schemaReader) object(o object, at string) (expr, error) {
	v, named := o.get("properties")
	properties, ok := v.(object)
	if named && !ok {
		return nil, fmt.Errorf("%s.properties must be an object", at)
	}
	required := map[string]bool{}
	if v, ok := o.get("required"); ok {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s.required must be a list of names", at)
		}
		for _, v := range list {
			name, _ := v.(string)
			if _, ok := properties.get(name); !ok {
				return nil, fmt.Errorf("%s.required: %q %w", at, name, errMember)
			}
			required[name] = true
		}
	}
	var members []expr
	var needed []bool
	var names []string
	for _, p := range properties {
		e, err := x.read(p.value, at+".properties."+p.name)
		if err != nil {
			return nil, err
		}
		members = append(members, seq(quoted(p.name), x.json.colon(), e))
		needed, names = append(needed, required[p.name]), append(names, p.name)
	}
	extra, err := x.extra(o, named, names, at)
	if err != nil {
		return nil, err
	}
	return x.members(members, needed, extra), nil
}

// extra returns members besides the named ones; nil: none may come. named tells whether the schema has properties.
func (x *schemaReader) extra(o object, named bool, names []string, at string) (expr, error) {
	v, ok := o.get("additionalProperties")
	if !ok {
		v = !named
	}
	if v == false {
		return nil, nil
	}
	value, err := x.read(v, at+".additionalProperties")
	if err != nil {
		return nil, err
	}
	name := x.json.string
	if len(names) > 0 {
		name = stringExcept(names)
	}
	return x.g.shared(at+".additionalProperties", seq(name, x.json.colon(), value)), nil
}

// members stands for an object with members in their order; optional ones may be absent, and any
// number of extra ones behind.
func (x *schemaReader) members(list []expr, needed []bool, extra expr) expr {
	return func(g *grammar, from, to node) {
		none, some := g.node(), g.node() // where none came before the next member, and where some did
		text("{")(g, from, none)
		for i, e := range list {
			in, next, left := g.node(), g.node(), g.node()
			x.json.space(g, none, in)
			if i > 0 {
				x.json.comma()(g, some, in)
			}
			e(g, in, next)
			if !needed[i] {
				g.skip(none, left)
				g.skip(some, next)
			}
			none, some = left, next
		}
		text("}")(g, none, to)
		if extra != nil {
			more := g.node()
			seq(x.json.space, extra)(g, none, more)
			seq(x.json.comma(), extra)(g, some, more)
			g.skip(more, some)
		}
		seq(x.json.space, text("}"))(g, some, to)
	}
}

package form

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// expr returns arguments that follow a schema. key tells it from others.
func (f Fields) expr(g *grammar, root any, key string) (expr, error) {
	if g.values == nil {
		g.values = map[string]expr{}
	}
	w := fieldWriter{f: f, key: key, types: &typeReader{root: root}, x: newSchemaReader(g, root, jsonOf(g)),
		python: newSchemaReader(g, root, pythonOf(g))}
	p := whole(root)
	options, err := w.x.options(p, p.typed("object"))
	if err != nil {
		return nil, err
	}
	var list []expr
	for _, c := range options {
		e, err := w.option(c)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return alt(list...), nil
}

// fieldWriter writes the arguments of one tool.
type fieldWriter struct {
	f      Fields
	x      *schemaReader
	python *schemaReader
	types  *typeReader
	key    string // tells tools apart
}

// option returns arguments that follow a conjunction without choices.
func (w *fieldWriter) option(c *conjunction) (expr, error) {
	facts, err := w.x.facts(c)
	switch {
	case err != nil:
		return nil, err
	case facts.list:
		return nil, fmt.Errorf("%s: an enum of objects is not supported in this format of calls", c.words[0].at)
	case facts.kinds&anObject == 0:
		return never, nil
	}
	if err := w.x.differs(anObject, c, &facts); err != nil {
		return nil, err
	}
	m, err := w.x.membersOf(facts.words)
	if err != nil {
		return nil, err
	}
	for _, name := range w.types.names() { // so that their types are known
		if m.open || len(m.partsOf(name)) > 0 {
			m.name(name)
		}
	}
	l := layout{open: empty, space: empty, comma: empty, end: empty, named: w.named, further: w.further}
	if w.f.Python {
		l.open, l.space, l.comma, l.end = text("("), w.x.json.space, w.x.json.comma(), text(")")
	}
	return m.write(&l)
}

// named returns the argument with a name.
func (w *fieldWriter) named(name string, parts []part) (expr, error) {
	if !w.writes(name) {
		return nil, fmt.Errorf("%q cannot be the name of an argument in this format of calls", name)
	}
	return w.field(text(name), parts, w.types.of(name))
}

// writes reports whether a name can be written.
func (w *fieldWriter) writes(name string) bool {
	if w.f.Python {
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
		return name != "" && strings.Trim(name, letters) == ""
	}
	const longest = 200 // bytes
	return name != "" && strings.TrimSpace(name) == name && len(name) <= longest && utf8.ValidString(name) &&
		strings.IndexFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(`<>"`, r) }) < 0
}

// further returns arguments with other names: up to 64 letters, digits and underscores.
func (w *fieldWriter) further(names func(q quote) (expr, error), parts []part, found func(string) bool) (expr,
	error) {
	letters := [][2]rune{{'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	within := func(ranges [][2]rune) func(lo, hi rune) expr {
		return func(lo, hi rune) expr {
			var list []expr
			for _, r := range ranges {
				if from, to := max(lo, r[0]), min(hi, r[1]); from <= to {
					list = append(list, char(from, to))
				}
			}
			return alt(list...)
		}
	}
	first, other := within(letters), within(append(letters, [2]rune{'0', '9'}))
	letter := other(0, utf8.MaxRune)
	e, err := names(quote{any: letter, char: other})
	if err != nil {
		return nil, err
	}
	name := meet([]limit{{e, false}, {seq(first(0, utf8.MaxRune), repeat(letter, 0, 63)), false}}, nil)
	return w.field(name, parts, w.types.argument(func(object) (any, bool) { return nil, false }, found))
}

// field returns an argument whose value follows parts, and is read as one of some kinds; 0: they are not known.
func (w *fieldWriter) field(name expr, parts []part, kinds kinds) (expr, error) {
	if w.f.Python {
		e, err := w.python.all(parts...)
		return seq(name, text("="), e), err
	}
	key := fmt.Sprintf("%d %q %s", kinds, w.f.Stop, w.key)
	for _, p := range parts {
		key += "\n" + p.id()
	}
	g := w.x.g
	value, ok := g.values[key]
	if !ok {
		list, err := w.value(parts, kinds)
		if err != nil {
			return nil, err
		}
		value = g.shared("a value", alt(list...))
		g.values[key] = value
	}
	return seq(g.marked(w.f.Open), name, g.marked(w.f.Between), value, g.marked(w.f.Close)), nil
}

// value returns values that follow parts and are read as one of some kinds.
func (w *fieldWriter) value(parts []part, kinds kinds) ([]expr, error) {
	list, err := w.raw(parts, kinds)
	if err != nil {
		return nil, err
	}
	typed := func(x *schemaReader, names ...any) error {
		names = slices.DeleteFunc(names, func(t any) bool {
			k := kindsByName[t.(string)]
			return kinds&k == 0 && (kinds != 0 || k&(anObject|anArray) == 0)
		})
		if len(names) == 0 {
			return nil
		}
		e, err := x.all(append(slices.Clone(parts), whole(x.root).made(fmt.Sprint(names...), "type", names))...)
		list = append(list, e)
		return err
	}
	if err := typed(w.x, "number", "array", "object"); err != nil {
		return nil, err
	}
	err = typed(w.python, "boolean", "null")
	return list, err
}

// raw returns texts that follow parts, as they are, where readers take them for texts.
func (w *fieldWriter) raw(parts []part, kinds kinds) (list []expr, err error) {
	options, err := w.x.options(append(slices.Clone(parts), whole(w.x.root).typed("string"))...)
	if err != nil {
		return nil, err
	}
	limits := w.others(kinds)
	q := quote{any: char(0, utf8.MaxRune), char: char}
	for _, c := range options {
		f, err := w.x.facts(c)
		if err != nil {
			return nil, err
		}
		if !f.list {
			if f.kinds&aText != 0 {
				e, err := textIn(q, f.words, f.differ, slices.Clone(limits))
				if err != nil {
					return nil, err
				}
				list = append(list, e)
			}
			continue
		}
		fit, err := w.x.among(c, f.listed)
		if err != nil {
			return nil, err
		}
		for _, v := range fit {
			list = append(list, meet(append(slices.Clone(limits), limit{text(v.(string)), false}), nil))
		}
	}
	return list, nil
}

// others returns limits of a text as it is: it does not end early, and readers take it for nothing else.
func (w *fieldWriter) others(kinds kinds) (limits []limit) {
	any := star(char(0, utf8.MaxRune))
	limits = append(limits, limit{seq(any, text(w.f.Stop), any), true})
	var blanks []expr
	for _, r := range unicode.White_Space.R16 {
		for c := r.Lo; c <= r.Hi; c += r.Stride {
			blanks = append(blanks, char(rune(c), rune(c)))
		}
	}
	blank := star(alt(blanks...))
	not := func(e expr) { limits = append(limits, limit{seq(blank, e, blank), true}) }
	if kinds&aNumber != 0 {
		some := repeat(digit, 1, -1)
		sign := optional(alt(text("-"), text("+")))
		not(seq(optional(text("-")), alt(text("0"), seq(digits(1, 9), star(digit))), optional(seq(text("."), some)),
			optional(seq(alt(text("e"), text("E")), sign, some))))
	}
	if kinds&aBoolean != 0 {
		not(alt(text("true"), text("false"), text("True"), text("False")))
	}
	if kinds&aNull != 0 {
		not(alt(text("null"), text("None")))
	}
	if kinds&anObject != 0 || kinds == 0 {
		not(seq(text("{"), any))
	}
	if kinds&anArray != 0 || kinds == 0 {
		not(seq(text("["), any))
	}
	return limits
}

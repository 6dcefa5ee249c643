package chat

import (
	"fmt"
	"strings"
	"unicode"
)

// str is Python's str(v).
func (st *state) str(v Value) (string, error) {
	switch v := v.(type) {
	case Str:
		return string(v), nil
	case markup:
		return string(v), nil
	case *undefined:
		return "", nil
	}
	return st.repr(v)
}

// repr is Python's repr(v). It returns an error for values whose repr has an address, such
// as generators and methods: no template means to print that.
func (st *state) repr(v Value) (string, error) {
	w := reprWriter{st: st}
	err := w.value(v, 0)
	return w.b.String(), err
}

type reprWriter struct {
	st     *state
	b      strings.Builder
	sorted bool // dicts by their keys
}

func (w *reprWriter) text(s string) error {
	if w.b.Len()+len(s) > maxOutput {
		return limitErr("text longer than %d bytes", maxOutput)
	}
	w.b.WriteString(s)
	return w.st.charge(len(s) / textPerStep)
}

func (w *reprWriter) value(v Value, depth int) error {
	if depth > maxValueDepth {
		return errDeep
	}
	if err := w.st.charge(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case None:
		return w.text("None")
	case Bool:
		if v {
			return w.text("True")
		}
		return w.text("False")
	case Int:
		return w.text(fmt.Sprint(int64(v)))
	case bigInt:
		s, err := formatInt(v.i)
		if err != nil {
			return err
		}
		return w.text(s)
	case Float:
		return w.text(formatFloat(v.F))
	case Str:
		if err := w.st.chargeSlow(len(v)); err != nil {
			return err
		}
		return w.text(quote(string(v)))
	case markup:
		if err := w.st.chargeSlow(len(v)); err != nil {
			return err
		}
		return w.text("Markup(" + quote(string(v)) + ")")
	case *undefined:
		return w.text("Undefined")
	case *List:
		return w.items("[", v.Items, "]", depth)
	case *tuple:
		if len(v.items) == 1 {
			return w.items("(", v.items, ",)", depth)
		}
		return w.items("(", v.items, ")", depth)
	case *Dict:
		return w.dict(v, depth)
	case *view:
		items := make([]Value, v.dict.Len())
		for i := range items {
			items[i] = v.at(i)
		}
		return w.items(v.kind+"([", items, "])", depth)
	case *rangeValue:
		s := fmt.Sprintf("range(%d, %d", v.start, v.stop)
		if v.step != 1 {
			s += fmt.Sprintf(", %d", v.step)
		}
		return w.text(s + ")")
	}
	return w.object(v, depth)
}

// object writes the values that only templates create.
func (w *reprWriter) object(v Value, depth int) error {
	switch v := v.(type) {
	case *namespace:
		if err := w.text("<Namespace "); err != nil {
			return err
		}
		if err := w.dict(v.attrs, depth); err != nil {
			return err
		}
		return w.text(">")
	case *macro:
		if v.def.name == "" {
			return w.text("<Macro anonymous>")
		}
		return w.text("<Macro " + quote(v.def.name) + ">")
	case *loopValue:
		n, err := v.count(w.st)
		if err != nil {
			return err
		}
		return w.text(fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, n))
	case *function:
		if v.class != "" {
			return w.text("<class '" + v.class + "'>")
		}
		return typeErr("a function cannot be printed: '%s' is not called", v.name)
	case *generator:
		return typeErr("the result of the filter '%s' cannot be printed as it is: add |list or |join", v.name)
	}
	return typeErr("a value of type %s cannot be printed", v.typeName())
}

func (w *reprWriter) items(open string, items []Value, end string, depth int) error {
	if err := w.text(open); err != nil {
		return err
	}
	for i, x := range items {
		if i > 0 {
			if err := w.text(", "); err != nil {
				return err
			}
		}
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	return w.text(end)
}

func (w *reprWriter) dict(d *Dict, depth int) error {
	open := "{"
	if w.sorted {
		d = w.st.byKey(d)
	}
	for i, k := range d.keys {
		if err := w.text(open); err != nil {
			return err
		}
		open = ", "
		if err := w.value(k, depth+1); err != nil {
			return err
		}
		if err := w.text(": "); err != nil {
			return err
		}
		if err := w.value(d.vals[i], depth+1); err != nil {
			return err
		}
	}
	if d.Len() == 0 {
		return w.text("{}")
	}
	return w.text("}")
}

// quote is Python's repr of a string.
func quote(s string) string {
	q := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(escapeRune(r))
		}
	}
	b.WriteByte(q)
	return b.String()
}

// escapeRune writes r as \xhh, \uhhhh or \Uhhhhhhhh.
func escapeRune(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// ascii is Python's ascii(): a repr with all non-ASCII characters escaped.
func ascii(repr string) string {
	var b strings.Builder
	for _, r := range repr {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

package chat

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonWriter writes values like Python's json.dumps.
type jsonWriter struct {
	st      *state
	b       strings.Builder
	ascii   bool
	indent  *string // one level; nil: all on one line
	between string  // elements
	after   string  // a key
	sorted  bool
}

// tojsonFilter is the filter as transformers defines it:
// tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
func tojsonFilter(st *state, v Value, args []Value) (Value, error) {
	w := &jsonWriter{st: st, between: ", ", after: ": "}
	w.ascii = args[0] != nil && isTrue(args[0])
	w.sorted = args[3] != nil && isTrue(args[3])
	if _, none := args[1].(None); args[1] != nil && !none {
		unit, ok := textOf(args[1])
		if !ok {
			n, err := indexOf(args[1])
			if err != nil {
				return nil, err
			}
			unit = strings.Repeat(" ", max(min(n, maxOutput), 0))
		}
		w.indent, w.between = &unit, ","
	}
	if _, none := args[2].(None); args[2] != nil && !none {
		pair, err := st.unpack(args[2], 2)
		if err != nil {
			return nil, err
		}
		if w.between, err = textArgument("tojson", pair[0]); err != nil {
			return nil, err
		}
		if w.after, err = textArgument("tojson", pair[1]); err != nil {
			return nil, err
		}
	}
	err := w.value(v, 0)
	return Str(w.b.String()), err
}

func (w *jsonWriter) text(s string) error {
	if w.b.Len()+len(s) > maxOutput {
		return limitErr("text longer than %d bytes", maxOutput)
	}
	w.b.WriteString(s)
	return w.st.charge(len(s) / textPerStep)
}

func (w *jsonWriter) value(v Value, depth int) error {
	if depth > maxValueDepth {
		return errDeep
	}
	if err := w.st.charge(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case Str, markup:
		s, _ := textOf(v)
		return w.text(jsonString(s, w.ascii))
	case None, Bool, Int, bigInt, Float:
		s, err := jsonScalar(v)
		if err != nil {
			return err
		}
		return w.text(s)
	case *List:
		return w.array(v.Items, depth)
	case *tuple:
		return w.array(v.items, depth)
	case *Dict:
		return w.object(v, depth)
	}
	return typeErr("a value of type %s cannot be written as JSON", v.typeName())
}

func jsonScalar(v Value) (string, error) {
	switch v := v.(type) {
	case None:
		return "null", nil
	case Bool:
		return fmt.Sprint(bool(v)), nil
	case Float:
		switch {
		case math.IsNaN(v.F):
			return "NaN", nil
		case math.IsInf(v.F, 1):
			return "Infinity", nil
		case math.IsInf(v.F, -1):
			return "-Infinity", nil
		}
		return formatFloat(v.F), nil
	}
	i, _ := asBig(v)
	return formatInt(i)
}

// line ends a line if there is an indent.
func (w *jsonWriter) line(depth int) error {
	if w.indent == nil {
		return nil
	}
	if depth > 0 && len(*w.indent) > maxOutput/depth {
		return limitErr("text longer than %d bytes", maxOutput)
	}
	return w.text("\n" + strings.Repeat(*w.indent, depth))
}

func (w *jsonWriter) array(items []Value, depth int) error {
	if len(items) == 0 {
		return w.text("[]")
	}
	open := "["
	for _, x := range items {
		if err := w.text(open); err != nil {
			return err
		}
		open = w.between
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	if err := w.line(depth); err != nil {
		return err
	}
	return w.text("]")
}

func (w *jsonWriter) object(d *Dict, depth int) error {
	if d.Len() == 0 {
		return w.text("{}")
	}
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	if w.sorted {
		var err error
		if order, err = w.st.sortIndex(d.keys, false); err != nil {
			return err
		}
	}
	open := "{"
	for _, i := range order {
		if err := w.text(open); err != nil {
			return err
		}
		open = w.between
		if err := w.line(depth + 1); err != nil {
			return err
		}
		key, err := jsonKey(d.keys[i])
		if err != nil {
			return err
		}
		if err := w.text(jsonString(key, w.ascii) + w.after); err != nil {
			return err
		}
		if err := w.value(d.vals[i], depth+1); err != nil {
			return err
		}
	}
	if err := w.line(depth); err != nil {
		return err
	}
	return w.text("}")
}

func jsonKey(k Value) (string, error) {
	if s, ok := textOf(k); ok {
		return s, nil
	}
	switch k.(type) {
	case None, Bool, Int, bigInt, Float:
		return jsonScalar(k)
	}
	return "", typeErr("the keys of JSON must be strings or numbers, not %s", k.typeName())
}

// jsonString quotes s as json.dumps does.
func jsonString(s string, ascii bool) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && (c < 0x7f || !ascii) {
			i++
			continue
		}
		b.WriteString(s[start:i])
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		start = i
		if j := slices.Index([]rune("\"\\\n\r\t\f\b"), r); j >= 0 {
			b.WriteByte('\\')
			b.WriteByte(`"\nrtfb`[j])
			continue
		}
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x`, 0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
	return b.String()
}

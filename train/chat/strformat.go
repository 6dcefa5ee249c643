package chat

import (
	"strconv"
	"strings"
)

// formatter is one call of str.format: string.Formatter with the sandbox's attribute rules.
type formatter struct {
	st     *state
	a      *arguments
	named  *Dict // for format_map, in place of names
	next   int   // automatic number; -1 after an explicit one
	like   Value // the formatted text: markup escapes
	manual bool
}

func formatMethod(st *state, v Value, s, name string, a *arguments) (Value, error) {
	f := &formatter{st: st, a: a, like: v}
	if name == "format_map" {
		args, err := a.positional(name, 1, 1)
		if err != nil {
			return nil, err
		}
		d, ok := args[0].(*Dict)
		if !ok {
			return nil, typeErr("format_map() needs a mapping, not %s", args[0].typeName())
		}
		f.named, f.a = d, &arguments{}
	}
	text, err := f.format(s, 2)
	return alike(v, text), err
}

// format writes s with its fields replaced; depth counts nested fields.
func (f *formatter) format(s string, depth int) (string, error) {
	if depth < 0 {
		return "", valueErr("the fields of the format string are nested too deep")
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			i = len(s)
		}
		b.WriteString(s[:i])
		if s = s[i:]; s == "" {
			break
		}
		if len(s) > 1 && s[1] == s[0] {
			b.WriteByte(s[0])
			s = s[2:]
			continue
		}
		if s[0] == '}' {
			return "", valueErr("single '}' in the format string")
		}
		end, err := fieldEnd(s)
		if err != nil {
			return "", err
		}
		text, err := f.field(s[1:end], depth)
		if err != nil {
			return "", err
		}
		if err := f.st.chargeText(b.Len() + len(text)); err != nil {
			return "", err
		}
		b.WriteString(text)
		s = s[end+1:]
	}
	return b.String(), f.st.chargeText(b.Len())
}

// fieldEnd returns the index of the brace that closes the field s begins with.
func fieldEnd(s string) (int, error) {
	level := 0
	bracket := false
	for i := range len(s) {
		switch c := s[i]; {
		case bracket:
			bracket = c != ']'
		case c == '[' && level == 1:
			bracket = true
		case c == '{':
			level++
		case c == '}':
			if level--; level == 0 {
				return i, nil
			}
		}
	}
	return 0, valueErr("expected '}' before the end of the format string")
}

// field formats name!conversion:spec.
func (f *formatter) field(s string, depth int) (string, error) {
	name, conversion, spec := s, "", ""
	bracket := false
	for i := range len(s) {
		if bracket {
			bracket = s[i] != ']'
			continue
		}
		bracket = s[i] == '['
		if s[i] == '{' || s[i] == '}' {
			return "", valueErr("unexpected '%c' in a field name", s[i])
		}
		if s[i] == '!' {
			name, conversion = s[:i], s[i+1:]
			if len(conversion) != 1 && (len(conversion) < 2 || conversion[1] != ':') {
				return "", valueErr("expected ':' after the conversion")
			}
			if len(conversion) > 1 {
				conversion, spec = conversion[:1], conversion[2:]
			}
			break
		}
		if s[i] == ':' {
			name, spec = s[:i], s[i+1:]
			break
		}
	}
	v, err := f.lookup(name)
	if err != nil {
		return "", err
	}
	switch conversion {
	case "":
	case "s", "r", "a":
		text, err := f.convert(v, conversion)
		if err != nil {
			return "", err
		}
		v = Str(text)
	default:
		return "", valueErr("unknown conversion '%s'", conversion)
	}
	if spec, err = f.format(spec, depth-1); err != nil {
		return "", err
	}
	if _, ok := v.(markup); ok {
		if spec != "" && isMarkup(f.like) {
			return "", valueErr("markup takes no format specifier")
		}
		if s, _ := textOf(v); isMarkup(f.like) {
			return s, nil
		} else {
			v = Str(s)
		}
	}
	text, err := f.st.formatValue(v, spec)
	return escapeIf(isMarkup(f.like), text), err
}

func isMarkup(v Value) bool {
	_, ok := v.(markup)
	return ok
}

func (f *formatter) convert(v Value, conversion string) (string, error) {
	if conversion == "s" {
		return f.st.str(v)
	}
	text, err := f.st.repr(v)
	if conversion == "a" {
		text = ascii(text)
	}
	return text, err
}

// lookup returns the value of a field name such as 0.name[key].
func (f *formatter) lookup(name string) (Value, error) {
	i := strings.IndexAny(name, ".[")
	if i < 0 {
		i = len(name)
	}
	v, err := f.argument(name[:i])
	for rest := name[i:]; err == nil && rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			if end == 1 {
				return nil, valueErr("empty attribute in the format string")
			}
			v, err = f.st.getattr(v, rest[1:end])
			rest = rest[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			return nil, valueErr("missing ']' in the format string")
		}
		key := rest[1:end]
		if key == "" {
			return nil, valueErr("empty attribute in the format string")
		}
		var k Value = Str(key)
		if n, err := strconv.Atoi(key); err == nil && isDigit(key[0]) {
			k = Int(n)
		}
		v, err = f.st.getitem(v, k)
		rest = rest[end+1:]
		if rest != "" && rest[0] != '.' && rest[0] != '[' {
			return nil, valueErr("only '.' or '[' may follow ']' in the format string")
		}
	}
	return v, err
}

func (f *formatter) argument(name string) (Value, error) {
	n, err := strconv.Atoi(name)
	numbered := err == nil && isDigit(name[0])
	if name == "" {
		if f.manual {
			return nil, valueErr("cannot switch from numbered fields to automatic ones")
		}
		n, numbered = f.next, true
		f.next++
	} else if numbered {
		if f.next > 0 {
			return nil, valueErr("cannot switch from automatic fields to numbered ones")
		}
		f.manual = true
	}
	if numbered {
		if n >= len(f.a.pos) {
			return nil, &pyError{kindLookup, "the format string refers to argument " + strconv.Itoa(n) +
				", which is not given"}
		}
		return f.a.pos[n], nil
	}
	if f.named != nil {
		if v, ok := f.named.Get(name); ok {
			return v, nil
		}
	}
	for i, arg := range f.a.names {
		if arg == name {
			return f.a.kw[i], nil
		}
	}
	return nil, &pyError{kindLookup, "the format string refers to '" + name + "', which is not given"}
}

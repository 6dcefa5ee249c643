package chat

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// textCall is a method of str. It takes from least to most arguments without names or, if it has params, named
// ones as bind does.
type textCall struct {
	names       string
	do          func(st *state, v Value, s, name string, args []Value) (Value, error)
	least, most int
	params      []string
}

// textMethods are the methods of str by name.
var textMethods = sync.OnceValue(func() map[string]textCall {
	methods := map[string]textCall{}
	for _, m := range []textCall{
		{"strip lstrip rstrip", stripMethod, 0, 1, nil},
		{"split rsplit", splitMethod, 0, 0, []string{"sep=", "maxsplit="}},
		{"splitlines", splitlinesMethod, 0, 0, []string{"keepends="}},
		{"startswith endswith", endsMethod, 1, 3, nil},
		{"find rfind index rindex count", findMethod, 1, 3, nil},
		{"replace", replaceMethod, 2, 3, nil},
		{"join", joinMethod, 1, 1, nil},
		{"partition rpartition", partitionMethod, 1, 1, nil},
		{"removeprefix removesuffix", removeMethod, 1, 1, nil},
		{"center ljust rjust", padMethod, 1, 2, nil},
		{"zfill", zfillMethod, 1, 1, nil},
		{"expandtabs", expandtabsMethod, 0, 0, []string{"tabsize="}},
		{"upper lower title capitalize swapcase casefold", caseMethod, 0, 0, nil},
		{"isalnum isalpha isascii isdecimal isdigit isidentifier", isMethod, 0, 0, nil},
		{"islower isnumeric isprintable isspace istitle isupper", isMethod, 0, 0, nil},
	} {
		for name := range strings.FieldsSeq(m.names) {
			methods[name] = m
		}
	}
	return methods
})

func textMethod(v Value, name string) Value {
	s, _ := textOf(v)
	switch name {
	case "format", "format_map":
		return method(name, func(st *state, a *arguments) (Value, error) { return formatMethod(st, v, s, name, a) })
	case "encode", "maketrans", "translate":
		return unsupported("str", name)
	}
	m, ok := textMethods()[name]
	if !ok {
		return nil
	}
	return method(name, func(st *state, a *arguments) (Value, error) {
		if err := st.chargeText(len(s)); err != nil {
			return nil, err
		}
		args, err := a.positional(name, m.least, m.most)
		if m.params != nil {
			args, err = a.bind(name, m.params...)
		}
		if err != nil {
			return nil, err
		}
		return m.do(st, v, s, name, args)
	})
}

// textArgument returns a required argument that must be text.
func textArgument(function string, v Value) (string, error) {
	s, ok := textOf(v)
	if !ok {
		return "", typeErr("%s() needs a string, not %s", function, v.typeName())
	}
	return s, nil
}

func stripMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	s, err := st.strip(s, name, args[0])
	return alike(v, s), err
}

// strip removes white space, or the characters of chars, from one end or both.
func (st *state) strip(s, name string, chars Value) (string, error) {
	in := isSpace
	if _, none := chars.(None); chars != nil && !none {
		set, err := textArgument(name, chars)
		if err != nil {
			return "", err
		}
		if err := st.chargeSlow(len(set)); err != nil {
			return "", err
		}
		in = runeSet(set)
	}
	if name != "rstrip" {
		s = strings.TrimLeftFunc(s, in)
	}
	if name != "lstrip" {
		s = strings.TrimRightFunc(s, in)
	}
	return s, nil
}

// runeSet returns a function that reports whether a character is in set.
func runeSet(set string) func(rune) bool {
	const few = 32 // bytes: searching them is as fast as a map
	if len(set) <= few {
		return func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	in := map[rune]bool{}
	for _, r := range set {
		in[r] = true
	}
	return func(r rune) bool { return in[r] }
}

func splitMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	most := -1
	if args[1] != nil {
		var err error
		if most, err = indexOf(args[1]); err != nil {
			return nil, err
		}
	}
	var parts []string
	if _, none := args[0].(None); args[0] == nil || none {
		parts = splitSpace(s, most, name == "rsplit")
	} else {
		sep, err := textArgument(name, args[0])
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, valueErr("the separator of %s() is empty", name)
		}
		parts = splitText(s, sep, most, name == "rsplit")
	}
	return texts(v, parts), st.charge(len(parts) / 4)
}

// texts returns a list of texts of the kind of v.
func texts(v Value, parts []string) *List {
	l := &List{make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = alike(v, p)
	}
	return l
}

func splitText(s, sep string, most int, right bool) []string {
	if most < 0 {
		return strings.Split(s, sep)
	}
	if !right {
		return strings.SplitN(s, sep, min(most, len(s))+1)
	}
	var parts []string
	for range most {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return parts
}

func splitSpace(s string, most int, right bool) []string {
	if most < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	var parts []string
	for n := 0; ; n++ {
		if right {
			s = strings.TrimRightFunc(s, isSpace)
		} else {
			s = strings.TrimLeftFunc(s, isSpace)
		}
		if s == "" {
			break
		}
		i := -1
		if right {
			i = strings.LastIndexFunc(s, isSpace)
		} else {
			i = strings.IndexFunc(s, isSpace)
		}
		if n >= most || i < 0 {
			parts = append(parts, s)
			break
		}
		if right {
			_, size := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+size:])
			s = s[:i]
		} else {
			parts = append(parts, s[:i])
			s = s[i:]
		}
	}
	if right {
		slices.Reverse(parts)
	}
	return parts
}

func splitlinesMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	lines := splitLines(s, args[0] != nil && isTrue(args[0]))
	return texts(v, lines), st.charge(len(lines) / 4)
}

func splitLines(s string, keep bool) []string {
	var lines []string
	for s != "" {
		end, size := len(s), 0
		if i := strings.IndexFunc(s, isLineEnd); i >= 0 {
			_, size = utf8.DecodeRuneInString(s[i:])
			if strings.HasPrefix(s[i:], "\r\n") {
				size = 2
			}
			end = i
		}
		if keep {
			lines = append(lines, s[:end+size])
		} else {
			lines = append(lines, s[:end])
		}
		s = s[end+size:]
	}
	return lines
}

// stretch returns the part of s between the code points start and end, as for the search
// methods, its offset, and false if start is beyond s.
func stretch(st *state, s string, start, end Value) (part string, from int, ok bool, err error) {
	t, err := st.runesOf(s)
	if err != nil {
		return "", 0, false, err
	}
	n := t.len()
	i, err := optionalIndex(start, 0)
	if err != nil {
		return "", 0, false, err
	}
	j, err := optionalIndex(end, n)
	if err != nil {
		return "", 0, false, err
	}
	if i < 0 {
		i = max(i+n, 0)
	}
	if j < 0 {
		j = max(j+n, 0)
	}
	j = min(j, n)
	if i > j {
		return "", 0, false, nil
	}
	return t.cut(i, j), i, true, nil
}

func endsMethod(st *state, _ Value, s, name string, args []Value) (Value, error) {
	s, _, ok, err := stretch(st, s, args[1], args[2])
	if err != nil {
		return nil, err
	}
	affixes := []Value{args[0]}
	if t, ok := args[0].(*tuple); ok {
		affixes = t.items
	}
	for _, v := range affixes {
		affix, err := textArgument(name, v)
		if err == nil {
			err = st.charge(1 + len(affix)/textPerStep)
		}
		if err != nil {
			return nil, err
		}
		if ok && (name == "startswith" && strings.HasPrefix(s, affix) || name == "endswith" &&
			strings.HasSuffix(s, affix)) {
			return Bool(true), nil
		}
	}
	return Bool(false), nil
}

func findMethod(st *state, _ Value, s, name string, args []Value) (Value, error) {
	sub, err := textArgument(name, args[0])
	if err != nil {
		return nil, err
	}
	part, from, ok, err := stretch(st, s, args[1], args[2])
	if err != nil {
		return nil, err
	}
	if name == "count" {
		if !ok {
			return Int(0), nil
		}
		return Int(strings.Count(part, sub)), nil
	}
	i := -1
	if ok && strings.HasPrefix(name, "r") {
		i = strings.LastIndex(part, sub)
	} else if ok {
		i = strings.Index(part, sub)
	}
	if i < 0 {
		if strings.HasSuffix(name, "index") {
			return nil, valueErr("%s(): substring not found", name)
		}
		return Int(-1), nil
	}
	return Int(from + utf8.RuneCountInString(part[:i])), nil
}

func caseMethod(st *state, v Value, s, name string, _ []Value) (Value, error) {
	if err := st.chargeSlow(len(s)); err != nil {
		return nil, err
	}
	return alike(v, changeCase(name, s)), nil
}

func changeCase(name, s string) string {
	switch name {
	case "upper":
		return upperText(s)
	case "lower":
		return lowerText(s)
	case "title":
		return titleText(s)
	case "capitalize":
		return capitalizeText(s)
	case "casefold":
		return foldText(s)
	}
	return swapText(s)
}

func isMethod(st *state, _ Value, s, name string, _ []Value) (Value, error) {
	return Bool(textIs(name, s)), st.chargeSlow(len(s))
}

package chat

import (
	"strings"
	"unicode/utf8"
)

// Methods of str that build text from several pieces.

func replaceMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	old, err := textArgument(name, args[0])
	if err != nil {
		return nil, err
	}
	repl, err := textArgument(name, args[1])
	if err != nil {
		return nil, err
	}
	if _, ok := v.(markup); ok {
		repl = escapeValue(args[1], repl)
	}
	n := -1
	if args[2] != nil {
		if n, err = indexOf(args[2]); err != nil {
			return nil, err
		}
	}
	s, err = st.replace(s, old, repl, n)
	return alike(v, s), err
}

// replace is strings.Replace within the limits.
func (st *state) replace(s, old, repl string, n int) (string, error) {
	hits := strings.Count(s, old)
	if n >= 0 {
		hits = min(hits, n)
	}
	if grow := len(repl) - len(old); grow > 0 && hits > 0 && grow > maxOutput/hits {
		return "", limitErr("text longer than %d bytes", maxOutput)
	} else if err := st.chargeText(len(s) + grow*hits); err != nil {
		return "", err
	}
	return strings.Replace(s, old, repl, n), nil
}

func joinMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	items, err := st.list(args[0])
	if err != nil {
		return nil, err
	}
	_, escaped := v.(markup)
	parts := make([]string, len(items))
	for i, x := range items {
		if text, ok := textOf(x); ok {
			parts[i] = text
			if escaped {
				parts[i] = escapeValue(x, text)
			}
			continue
		}
		if !escaped {
			return nil, typeErr("join() needs strings: element %d is %s", i, x.typeName())
		}
		if parts[i], err = st.str(x); err != nil {
			return nil, err
		}
		parts[i] = escapeHTML(parts[i])
	}
	joined, err := st.joinTexts(parts, s)
	return alike(v, joined), err
}

// joinTexts is strings.Join within the limits.
func (st *state) joinTexts(parts []string, sep string) (string, error) {
	n := 0
	for _, p := range parts {
		if n += len(p) + len(sep); n > maxOutput+len(sep) {
			return "", limitErr("text longer than %d bytes", maxOutput)
		}
	}
	if err := st.charge(n / textPerStep); err != nil {
		return "", err
	}
	return strings.Join(parts, sep), nil
}

func partitionMethod(_ *state, v Value, s, name string, args []Value) (Value, error) {
	sep, err := textArgument(name, args[0])
	if err != nil {
		return nil, err
	}
	if sep == "" {
		return nil, valueErr("the separator of %s() is empty", name)
	}
	parts := [3]string{s, "", ""}
	i := strings.Index(s, sep)
	if name == "rpartition" {
		parts = [3]string{"", "", s}
		i = strings.LastIndex(s, sep)
	}
	if i >= 0 {
		parts = [3]string{s[:i], sep, s[i+len(sep):]}
	}
	return newTuple(alike(v, parts[0]), alike(v, parts[1]), alike(v, parts[2])), nil
}

func removeMethod(_ *state, v Value, s, name string, args []Value) (Value, error) {
	affix, err := textArgument(name, args[0])
	if err != nil {
		return nil, err
	}
	if name == "removeprefix" {
		return alike(v, strings.TrimPrefix(s, affix)), nil
	}
	return alike(v, strings.TrimSuffix(s, affix)), nil
}

func padMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	width, err := indexOf(args[0])
	if err != nil {
		return nil, err
	}
	fill := " "
	if args[1] != nil {
		if fill, err = textArgument(name, args[1]); err != nil {
			return nil, err
		}
		if _, ok := v.(markup); ok {
			fill = escapeValue(args[1], fill)
		}
		if utf8.RuneCountInString(fill) != 1 {
			return nil, typeErr("%s(): the fill must be one character", name)
		}
	}
	s, err = st.pad(s, name, width, fill)
	return alike(v, s), err
}

// pad fills s up to width code points: center, ljust or rjust.
func (st *state) pad(s, name string, width int, fill string) (string, error) {
	t, err := st.runesOf(s)
	n := width - t.len()
	if n <= 0 || err != nil {
		return s, err
	}
	if n > maxOutput {
		return "", limitErr("text longer than %d bytes", maxOutput)
	}
	if err := st.chargeText(len(s) + n*len(fill)); err != nil {
		return "", err
	}
	left := 0
	switch name {
	case "center":
		left = n/2 + n&width&1
	case "rjust":
		left = n
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left), nil
}

func zfillMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	width, err := indexOf(args[0])
	if err != nil {
		return nil, err
	}
	padded, err := st.pad(s, "rjust", width, "0")
	if err == nil && len(padded) > len(s) && s != "" && (s[0] == '+' || s[0] == '-') {
		padded = s[:1] + padded[:len(padded)-len(s)] + s[1:]
	}
	return alike(v, padded), err
}

func expandtabsMethod(st *state, v Value, s, name string, args []Value) (Value, error) {
	size, err := optionalIndex(args[0], 8)
	if err != nil {
		return nil, err
	}
	if size > maxOutput {
		return nil, limitErr("text longer than %d bytes", maxOutput)
	}
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch {
		case r == '\t' && size > 0:
			n := size - column%size
			column += n
			if err := st.chargeText(b.Len() + n); err != nil {
				return nil, err
			}
			b.WriteString(strings.Repeat(" ", n))
		case r == '\t':
		default:
			column++
			if r == '\n' || r == '\r' {
				column = 0
			}
			b.WriteRune(r)
		}
	}
	return alike(v, b.String()), nil
}

package toolcall

import "strings"

// Tags within GLM's calls, which stand in the tags of Hermes.
const (
	keyOpen    = "<arg_key>"
	keyClose   = "</arg_key>"
	valueOpen  = "<arg_value>"
	valueClose = "</arg_value>"
)

// glm returns the syntax of GLM-4.5 and later: a function's name and pairs of keys and values between tags. GLM-4.5
// and 4.6 write a line each, GLM-4.7 writes all of it in one; either may come.
func glm() Syntax {
	const open, shut = "<tool_call>", "</tool_call>"
	return Syntax{Name: GLM, Marks: []string{open, shut, keyOpen, keyClose, valueOpen, valueClose},
		opens: []string{open}, read: func(tools definitions, text string, whole bool) attempt {
			return tools.readGLM(text, open, shut, whole)
		}}
}

// readGLM reads a function between tags.
func (d definitions) readGLM(text, open, shut string, whole bool) attempt {
	no := attempt{n: len(open)}
	rest := strings.TrimLeft(text[len(open):], space)
	end := strings.IndexByte(rest, '<')
	if end < 0 {
		end = len(rest)
	}
	name := strings.TrimRight(rest[:end], space)
	if !goodName(name) && (name != "" || end < len(rest)) {
		return no
	}
	if rest = rest[end:]; rest == "" {
		return attempt{}
	}
	var args fields
	for {
		rest = strings.TrimLeft(rest, space)
		if after, ok := strings.CutPrefix(rest, shut); ok {
			return attempt{[]Call{{name, args.object()}}, len(text) - len(after)}
		}
		key, after, err := between(rest, keyOpen, keyClose)
		if err == errMore || err != nil && strings.HasPrefix(shut, rest) {
			return attempt{}
		}
		if err != nil {
			return no
		}
		key = strings.TrimSpace(key)
		after = strings.TrimLeft(after, space)
		inner, ok := strings.CutPrefix(after, valueOpen)
		if !ok && strings.HasPrefix(valueOpen, after) {
			return attempt{}
		} else if !ok {
			return no
		}
		kinds := d.kinds(name, key)
		said, after, ok := cutTyped(inner, valueClose, kinds, whole)
		if !ok {
			return attempt{}
		}
		rest = after
		args.set(key, typed(said, kinds))
	}
}

// between returns the text between two marks, if text begins with the first, and the text behind them. The error is
// errMore if more text may bring them, errNoParameter if something else stands there.
func between(text, open, shut string) (inner, after string, err error) {
	rest, ok := strings.CutPrefix(text, open)
	switch {
	case !ok && strings.HasPrefix(open, text):
		return "", "", errMore
	case !ok:
		return "", "", errNoParameter
	}
	if inner, after, ok = strings.Cut(rest, shut); !ok {
		return "", "", errMore
	}
	return inner, after, nil
}

// goodName reports whether a text may be a function's name.
func goodName(text string) bool {
	return text != "" && strings.IndexFunc(text, func(c rune) bool { return !nameRune(c) }) < 0
}

package toolcall

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// mostNested bounds how deep the values of a call are nested.
const mostNested = 100

// python reads calls in Python's syntax, whose arguments are literals: texts, numbers, True, False, None, lists,
// tuples and dictionaries with texts as keys, as JSON. JSON's true, false and null are literals too. It reads neither
// texts with a prefix, such as r"…", nor texts side by side, nor numbers that JSON has not.
type python struct {
	rest string
	more bool // it depends on text that has not come; set when a method reports false
}

func (p *python) blank() { p.rest = strings.TrimLeft(p.rest, space) }

// take reads a mark if it comes next.
func (p *python) take(mark string) bool {
	after, ok := strings.CutPrefix(p.rest, mark)
	p.more = !ok && strings.HasPrefix(mark, p.rest)
	if ok {
		p.rest = after
	}
	return ok
}

// call reads a call.
func (p *python) call() (c Call, ok bool) {
	var args fields
	if c.Name, ok = p.name(); !ok || !p.take("(") {
		return c, false
	}
	for {
		if p.blank(); p.take(")") {
			c.Arguments = args.object()
			return c, true
		}
		name, ok := p.name()
		if p.blank(); !ok || slices.Contains(args.names, name) || !p.take("=") {
			return c, false
		}
		v, ok := p.value(0)
		if !ok {
			return c, false
		}
		args.set(name, v)
		if p.blank(); !strings.HasPrefix(p.rest, ")") && !p.take(",") {
			return c, false
		}
	}
}

// name reads a name of a function or an argument.
func (p *python) name() (string, bool) {
	after := strings.TrimLeftFunc(p.rest, nameRune)
	name := p.rest[:len(p.rest)-len(after)]
	p.rest, p.more = after, after == ""
	return name, name != "" && !p.more
}

// value reads a literal as JSON.
func (p *python) value(deep int) (json.RawMessage, bool) {
	p.blank()
	p.more = p.rest == ""
	if p.more || deep > mostNested {
		return nil, false
	}
	switch c := p.rest[0]; c {
	case '"', '\'':
		text, ok := p.text()
		return quoted(text), ok
	case '[':
		return p.list(deep, "]")
	case '(':
		return p.list(deep, ")")
	case '{':
		return p.dict(deep)
	}
	end := strings.IndexFunc(p.rest, func(c rune) bool { return !nameRune(c) && c != '+' })
	if end < 0 {
		p.more = true
		return nil, false
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	switch word {
	case "True", "true":
		return json.RawMessage("true"), true
	case "False", "false":
		return json.RawMessage("false"), true
	case "None", "null":
		return json.RawMessage("null"), true
	}
	return json.RawMessage(word), kindOf(word) == "number"
}

// list reads a list or a tuple.
func (p *python) list(deep int, shut string) (json.RawMessage, bool) {
	tuple, commas := shut == ")", 0
	p.rest = p.rest[1:]
	var items []string
	for {
		if p.blank(); p.take(shut) {
			if tuple && len(items) == 1 && commas == 0 { // brackets around a value
				return json.RawMessage(items[0]), true
			}
			return json.RawMessage("[" + strings.Join(items, ", ") + "]"), true
		}
		v, ok := p.value(deep + 1)
		if !ok {
			return nil, false
		}
		items = append(items, string(v))
		if p.blank(); p.take(",") {
			commas++
		} else if p.more || !strings.HasPrefix(p.rest, shut) {
			return nil, false
		}
	}
}

// dict reads a dictionary.
func (p *python) dict(deep int) (json.RawMessage, bool) {
	p.rest = p.rest[1:]
	var out fields
	for {
		if p.blank(); p.take("}") {
			return out.object(), true
		}
		if p.more = p.rest == ""; p.more || p.rest[0] != '"' && p.rest[0] != '\'' {
			return nil, false
		}
		key, ok := p.text()
		if p.blank(); !ok || !p.take(":") {
			return nil, false
		}
		v, ok := p.value(deep + 1)
		if !ok {
			return nil, false
		}
		out.set(key, v)
		if p.blank(); !p.take(",") && (p.more || !strings.HasPrefix(p.rest, "}")) {
			return nil, false
		}
	}
}

// text reads a text in quotes. Line ends may stand in it, as templates write them.
func (p *python) text() (string, bool) {
	quote := p.rest[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(p.rest, triple) {
		quote = triple
	} else if p.rest == triple[:2] {
		p.more = true // an empty text, or the beginning of three quotes
		return "", false
	}
	inner := p.rest[len(quote):]
	end := 0
	for ; !strings.HasPrefix(inner[end:], quote); end++ {
		if end < len(inner) && inner[end] == '\\' {
			end++
		}
		if end >= len(inner) {
			p.more = true
			return "", false
		}
	}
	p.rest = inner[end+len(quote):]
	inner = inner[:end]
	var text string
	if quote == `"` && json.Unmarshal([]byte(`"`+inner+`"`), &text) == nil {
		return text, true
	}
	return unescaped(inner)
}

// unescaped returns the text that stands between quotes. ok is false if Python has no such escape.
func unescaped(inner string) (_ string, ok bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(inner, `\`)
		if b.WriteString(before); !found {
			return b.String(), true
		}
		if after == "" {
			return "", false
		}
		size := 1
		if c := strings.IndexByte(`\'"abfnrtv`+"\n", after[0]); c >= 0 {
			b.WriteString([]string{`\`, `'`, `"`, "\a", "\b", "\f", "\n", "\r", "\t", "\v", ""}[c])
		} else if digits := codeDigits(after); digits > 0 {
			n, err := strconv.ParseUint(after[1:1+digits], 16, 32)
			r := rune(n)
			if size += digits; utf16.IsSurrogate(r) && strings.HasPrefix(after[size:], `\u`) && len(after) >= size+6 {
				low, err := strconv.ParseUint(after[size+2:size+6], 16, 32)
				if pair := utf16.DecodeRune(r, rune(low)); err == nil && pair != utf8.RuneError {
					r, size = pair, size+6
				}
			}
			if err != nil || !utf8.ValidRune(r) {
				return "", false
			}
			b.WriteRune(r)
		} else if strings.IndexByte("xuU", after[0]) >= 0 {
			return "", false
		} else if octal := len(after) - len(strings.TrimLeft(after, "01234567")); octal > 0 {
			size = min(octal, 3)
			n, _ := strconv.ParseUint(after[:size], 8, 32) // digits
			b.WriteRune(rune(n))
		} else {
			b.WriteByte('\\') // as Python keeps unknown ones
			size = 0
		}
		inner = after[size:]
	}
}

// codeDigits returns how many hexadecimal digits an escape has behind its letter; 0 if it is another, or they are
// missing.
func codeDigits(escape string) int {
	n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[escape[0]]
	if n == 0 || len(escape) <= n {
		return 0
	}
	return n
}

package chat

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer splits a template into tokens with trim_blocks and lstrip_blocks on: it drops the
// first newline after a block tag, and white space between the start of a line and a block
// tag; a - or + at either side of a tag overrides that.
type lexer struct {
	src       string
	pos       int
	tokens    []token
	lineStart bool // the last match ended with a newline
}

// normalise makes every line end \n and drops one from the end of the template.
func normalise(source string) string {
	if strings.IndexByte(source, '\r') >= 0 {
		source = strings.ReplaceAll(source, "\r\n", "\n")
		source = strings.ReplaceAll(source, "\r", "\n")
	}
	return strings.TrimSuffix(source, "\n")
}

// syntaxError is an error at a byte offset, not yet converted to line and column.
type syntaxError struct {
	pos int
	msg string
	err error
}

func (e *syntaxError) Error() string { return e.msg }
func (e *syntaxError) Unwrap() error { return e.err }

func syntaxErr(pos int, format string, args ...any) error {
	return &syntaxError{pos: pos, msg: fmt.Sprintf(format, args...)}
}

func lex(source string) ([]token, error) {
	l := &lexer{src: source, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.add(tokEOF, len(l.src), "")
	return l.tokens, nil
}

func (l *lexer) add(kind tokenKind, pos int, text string) {
	l.tokens = append(l.tokens, token{kind: kind, pos: pos, text: text})
}

func (l *lexer) addData(pos int, text string) {
	if text != "" {
		l.add(tokData, pos, text)
	}
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() error {
	start := l.pos
	at := start
	for ; ; at++ {
		i := strings.IndexByte(l.src[at:], '{')
		if i < 0 || at+i+1 >= len(l.src) {
			l.addData(start, l.src[start:])
			l.pos = len(l.src)
			return nil
		}
		at += i
		if c := l.src[at+1]; c == '{' || c == '%' || c == '#' {
			break
		}
	}
	tag, after := l.src[at+1], at+2
	if tag == '%' {
		if end, sign, ok := l.rawBegin(at); ok {
			l.addData(start, l.strip(l.src[start:at], sign))
			l.lineStart = l.src[end-1] == '\n'
			l.pos = end
			return l.raw(at)
		}
	}
	sign := byte(0)
	if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
		sign = l.src[after]
		after++
	}
	text := l.src[start:at]
	switch {
	case tag != '{':
		text = l.strip(text, sign)
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	}
	l.addData(start, text)
	l.pos, l.lineStart = after, false
	switch tag {
	case '#':
		return l.comment(at)
	case '{':
		l.add(tokVarBegin, at, "")
		return l.code(at, tokVarEnd)
	}
	l.add(tokBlockBegin, at, "")
	return l.code(at, tokBlockEnd)
}

// strip removes white space at the end of text before a block tag or a comment.
func (l *lexer) strip(text string, sign byte) string {
	switch sign {
	case '-':
		return strings.TrimRightFunc(text, isSpace)
	case '+':
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || l.lineStart) && strings.TrimLeftFunc(text[line:], isSpace) == "" {
		return text[:line]
	}
	return text
}

// skipSpace returns the offset of the first non-space character from pos on.
func (l *lexer) skipSpace(pos int) int {
	for pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[pos:])
		if !isSpace(r) {
			break
		}
		pos += n
	}
	return pos
}

// rawBegin matches {% raw %} at pos.
func (l *lexer) rawBegin(pos int) (end int, sign byte, ok bool) {
	p := pos + 2
	if p < len(l.src) && (l.src[p] == '-' || l.src[p] == '+') {
		sign = l.src[p]
		p++
	}
	p = l.skipSpace(p)
	if !strings.HasPrefix(l.src[p:], "raw") {
		return 0, 0, false
	}
	p = l.skipSpace(p + 3)
	switch {
	case strings.HasPrefix(l.src[p:], "-%}"):
		return l.skipSpace(p + 3), sign, true
	case strings.HasPrefix(l.src[p:], "%}"):
		return p + 2, sign, true
	}
	return 0, 0, false
}

// raw reads up to and including {% endraw %}.
func (l *lexer) raw(begin int) error {
	start := l.pos
	for at := start; ; at += 2 {
		i := strings.Index(l.src[at:], "{%")
		if i < 0 {
			return syntaxErr(begin, "raw has no endraw")
		}
		at += i
		p, sign := at+2, byte(0)
		if p < len(l.src) && (l.src[p] == '-' || l.src[p] == '+') {
			sign = l.src[p]
			p++
		}
		p = l.skipSpace(p)
		if !strings.HasPrefix(l.src[p:], "endraw") {
			continue
		}
		end, ok := l.tagEnd(l.skipSpace(p+6), "%}")
		if !ok {
			continue
		}
		l.addData(start, l.strip(l.src[start:at], sign))
		l.lineStart = l.src[end-1] == '\n'
		l.pos = end
		return nil
	}
}

// tagEnd matches the end of a block tag, +%} or -%} or %}, at pos and returns the offset
// after it and the white space that it removes.
func (l *lexer) tagEnd(pos int, mark string) (int, bool) {
	rest := l.src[pos:]
	switch {
	case strings.HasPrefix(rest, "+"+mark):
		return pos + 3, true
	case strings.HasPrefix(rest, "-"+mark):
		return l.skipSpace(pos + 3), true
	case strings.HasPrefix(rest, mark+"\n"):
		return pos + 3, true
	case strings.HasPrefix(rest, mark):
		return pos + 2, true
	}
	return 0, false
}

// comment skips a comment that begins at begin.
func (l *lexer) comment(begin int) error {
	i := strings.Index(l.src[l.pos:], "#}")
	if i < 0 {
		return syntaxErr(begin, "the comment has no end #}")
	}
	at := l.pos + i
	if i > 0 && (l.src[at-1] == '-' || l.src[at-1] == '+') {
		at--
	}
	l.pos, _ = l.tagEnd(at, "#}")
	l.lineStart = l.src[l.pos-1] == '\n'
	return nil
}

// code reads the inside of a tag and its end.
func (l *lexer) code(begin int, end tokenKind) error {
	var open []byte // pending closing brackets
	for l.pos < len(l.src) {
		if len(open) == 0 {
			if after, ok := l.codeEnd(end); ok {
				l.add(end, l.pos, "")
				l.lineStart = l.src[after-1] == '\n'
				l.pos = after
				return nil
			}
		}
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		var err error
		switch {
		case isSpace(r):
			l.pos += n
		case r >= '0' && r <= '9':
			err = l.number()
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			err = l.name()
		case r == '\'' || r == '"':
			err = l.str()
		default:
			open, err = l.operator(open)
		}
		if err != nil {
			return err
		}
	}
	return syntaxErr(begin, "the tag has no end")
}

func (l *lexer) codeEnd(end tokenKind) (int, bool) {
	if end == tokBlockEnd {
		return l.tagEnd(l.pos, "%}")
	}
	rest := l.src[l.pos:]
	switch {
	case strings.HasPrefix(rest, "-}}"):
		return l.skipSpace(l.pos + 3), true
	case strings.HasPrefix(rest, "}}"):
		return l.pos + 2, true
	}
	return 0, false
}

func (l *lexer) operator(open []byte) ([]byte, error) {
	rest := l.src[l.pos:]
	op := ""
	for _, two := range []string{"//", "**", "==", "!=", ">=", "<="} {
		if strings.HasPrefix(rest, two) {
			op = two
		}
	}
	if op == "" {
		if !strings.ContainsRune("+-/*%~[](){}><=.:|,;", rune(rest[0])) {
			r, _ := utf8.DecodeRuneInString(rest)
			return nil, syntaxErr(l.pos, "unexpected character %q", r)
		}
		op = rest[:1]
	}
	switch op {
	case "{":
		open = append(open, '}')
	case "(":
		open = append(open, ')')
	case "[":
		open = append(open, ']')
	case "}", ")", "]":
		if len(open) == 0 {
			return nil, syntaxErr(l.pos, "unexpected '%s'", op)
		}
		if want := open[len(open)-1]; want != op[0] {
			return nil, syntaxErr(l.pos, "unexpected '%s', expected '%c'", op, want)
		}
		open = open[:len(open)-1]
	}
	l.add(tokOp, l.pos, op)
	l.pos += len(op)
	return open, nil
}

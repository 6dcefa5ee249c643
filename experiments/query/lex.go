package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	end    kind = iota
	word        // an operand, a keyword or a literal without quotes
	quoted      // a literal in quotes; its text excludes them
	symbol      // an operator, a parenthesis, a bracket, a comma
)

// token is a piece of a condition.
type token struct {
	kind kind
	text string
	col  int // of its first character, counted in runes from 0
	size int // runes, with quotes
}

// special are the characters that end a word.
const special = `()[],=!<>~"'`

// lex cuts text into tokens; the last one is of kind end.
func lex(text string) ([]token, error) {
	var tokens []token
	for col := 0; ; {
		trimmed := strings.TrimLeftFunc(text, unicode.IsSpace)
		col += utf8.RuneCountInString(text[:len(text)-len(trimmed)])
		text = trimmed
		if text == "" {
			return append(tokens, token{kind: end, col: col, size: 1}), nil
		}
		t, rest, err := next(text, col)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		text = rest
		col += t.size
	}
}

// next reads the token at the start of text, which is not empty.
func next(text string, col int) (token, string, error) {
	switch c := text[0]; {
	case c == '"' || c == '\'':
		close := strings.IndexByte(text[1:], c)
		if close < 0 {
			return token{}, "", &SyntaxError{Col: col, Msg: "unclosed quote"}
		}
		inside := text[1 : 1+close]
		return token{quoted, inside, col, utf8.RuneCountInString(inside) + 2}, text[close+2:], nil
	case strings.HasPrefix(text, "=="): // as most languages write =
		return token{symbol, "=", col, 2}, text[2:], nil
	case strings.HasPrefix(text, "!="), strings.HasPrefix(text, "<="), strings.HasPrefix(text, ">="):
		return token{symbol, text[:2], col, 2}, text[2:], nil
	case strings.IndexByte(special, c) >= 0:
		return token{symbol, text[:1], col, 1}, text[1:], nil
	}
	size := strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(special, r)
	})
	if size < 0 {
		size = len(text)
	}
	return token{word, text[:size], col, utf8.RuneCountInString(text[:size])}, text[size:], nil
}

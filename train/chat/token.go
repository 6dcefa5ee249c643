package chat

import (
	"fmt"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// token is a piece of a template. text is the name, the operator, the data or the string's
// value; value is a number's.
type token struct {
	kind  tokenKind
	pos   int // byte offset in the normalised source
	text  string
	value Value
}

// is reports whether t is the operator op.
func (t token) is(op string) bool { return t.kind == tokOp && t.text == op }

// isName reports whether t is the word name.
func (t token) isName(name string) bool { return t.kind == tokName && t.text == name }

// String describes t for messages.
func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template text"
	case tokVarBegin:
		return "{{"
	case tokVarEnd:
		return "}}"
	case tokBlockBegin:
		return "{%"
	case tokBlockEnd:
		return "%}"
	case tokString:
		return "a string"
	case tokInt, tokFloat:
		return "a number"
	}
	return fmt.Sprintf("'%.60s'", t.text)
}

// place returns line and column of a byte offset.
func place(source string, pos int) (line, column int) {
	pos = min(pos, len(source))
	line, start := 1, 0
	for i := 0; i < pos; i++ {
		if source[i] == '\n' {
			line, start = line+1, i+1
		}
	}
	return line, utf8.RuneCountInString(source[start:pos]) + 1
}

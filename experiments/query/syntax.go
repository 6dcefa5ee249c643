package query

import (
	"fmt"
	"strings"
	"unicode"
)

// SyntaxError reports a condition that does not parse or names something unknown.
type SyntaxError struct {
	Language string // Language.Name
	Text     string // the condition
	Col      int    // where, in runes from 0
	Msg      string
	Help     string // suggestion; may be empty
}

// Error shows the condition with a caret at the error:
//
//	filter, column 10: expected a value after "="
//	  status = and seed = 1
//	           ^
func (e *SyntaxError) Error() string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, e.Text)
	text := fmt.Sprintf("%s, column %d: %s\n  %s\n  %s^", e.Language, e.Col+1, e.Msg, line, strings.Repeat(" ", e.Col))
	if e.Help != "" {
		text += "\n  help: " + e.Help
	}
	return text
}

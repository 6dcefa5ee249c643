package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/quantity"
)

// Codes of configuration errors. They are stable: scripts may match them.
const (
	CodeFile        = "E100" // a file cannot be read, or is not text
	CodeSyntax      = "E101" // not YAML
	CodeUnknown     = "E102" // unknown key
	CodeDuplicate   = "E103" // a key twice in one block
	CodeDocuments   = "E104" // more than one document
	CodeExtends     = "E105" // extends: no such file, or a cycle
	CodeFeature     = "E106" // YAML that configurations do not use: anchors, tags, merge keys
	CodeRenamed     = "E107" // a key that has another name here
	CodeMissing     = "E108" // a required key is not set
	CodeIneffective = "E109" // a key that has no effect under the other settings
	CodeRange       = "E110" // a value outside its range
	CodeType        = "E111" // a value of the wrong type
	CodeBool        = "E112" // yes, no, on or off instead of true or false
	CodeWord        = "E113" // not one of the allowed words
	CodeNull        = "E115" // null for a key that needs a value
	CodeShape       = "E116" // a block where a value belongs, or a value where a block does
	CodeSet         = "E117" // a --set expression that cannot be read
	CodeUser        = "E118" // a semantic key in the user's own configuration
	CodeConflict    = "E120" // values that conflict
	CodeDigest      = "E140" // an external file does not have the stated digest
	CodeData        = "E141" // an external file cannot be read or has the wrong contents
)

// maxErrors limits how many errors are printed; nobody reads more.
const maxErrors = 20

// Error is one fault of a configuration, with its place.
type Error struct {
	Code    string `json:"code"`
	Source  string `json:"file"`           // file as the user named it, or "--set #2"
	Line    int    `json:"line,omitempty"` // from 1; 0 if the source has no lines
	Col     int    `json:"column,omitempty"`
	Message string `json:"message"`
	Help    string `json:"help,omitempty"`

	width   int     // of the marked text in runes
	excerpt string  // the line
	src     *source // for its order among the layers
	late    bool    // it shows in prepared data only
}

// Place returns FILE:LINE:COL, shortened if a part is unknown.
func (e *Error) Place() string {
	switch {
	case e.Line > 0:
		return fmt.Sprintf("%s:%d:%d", e.Source, e.Line, e.Col)
	case e.Col > 0:
		return fmt.Sprintf("%s:%d", e.Source, e.Col)
	}
	return e.Source
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: error[%s]: %s", e.Place(), e.Code, e.Message)
}

// text renders the error as printed, with excerpt, caret and help.
func (e *Error) text(color bool) string {
	paint := func(style, s string) string {
		if !color {
			return s
		}
		return "\x1b[" + style + "m" + s + "\x1b[0m"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %s\n", paint("1", e.Place()), paint("1;31", "error["+e.Code+"]"), printable(e.Message))
	if e.Line > 0 && e.excerpt != "" {
		line, col, width := clip(e.excerpt, e.Col, e.width)
		fmt.Fprintf(&b, "%5d | %s\n      | %s%s\n", e.Line, line, strings.Repeat(" ", col-1),
			paint("31", caret(width)))
	}
	if e.Help != "" {
		fmt.Fprintf(&b, "   %s %s\n", paint("36", "help:"), printable(e.Help))
	}
	return b.String()
}

// caret marks width runes: ^~~~.
func caret(width int) string { return "^" + strings.Repeat("~", max(width-1, 0)) }

// excerptRunes is the longest line that is printed in full; terminals are rarely wider.
const excerptRunes = 120

// clip shortens a long line around the marked columns and makes every rune one
// printable column, so that the caret lines up.
func clip(line string, col, width int) (string, int, int) {
	runes := []rune(printable(line))
	col = min(max(col, 1), len(runes)+1)
	start, end := 0, len(runes)
	if len(runes) > excerptRunes {
		start = max(0, col-1-excerptRunes/3)
		end = min(len(runes), start+excerptRunes)
	}
	text := string(runes[start:end])
	col -= start
	if start > 0 {
		text, col = "…"+text, col+1
	}
	if end < len(runes) {
		text += "…"
	}
	return text, col, min(width, end-start-col+2)
}

// printable replaces characters that move the cursor or control the terminal: tabs by a
// space, other control characters by U+FFFD.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e ||
			r >= 0x2066 && r <= 0x2069:
			return '\uFFFD'
		}
		return r
	}, s)
}

// Errors holds the faults of a configuration, ordered by layer and place.
type Errors []*Error

func (es Errors) Error() string { return es.Text(false) }

// Text renders at most 20 errors and a last line that counts them all. color adds
// escape sequences and changes nothing else.
func (es Errors) Text(color bool) string {
	var b strings.Builder
	for _, e := range es[:min(len(es), maxErrors)] {
		b.WriteString(e.text(color))
	}
	if more := len(es) - maxErrors; more > 0 {
		fmt.Fprintf(&b, "... and %d more\n", more)
	}
	done := "nothing was run"
	if len(es) > 0 && es[0].late {
		done = "nothing was run but stage prepare"
	}
	b.WriteString(quantity.Plural(len(es), "error") + "; " + done)
	return b.String()
}

// AfterPrepare marks errors that show in the data that stage prepare wrote.
func (es Errors) AfterPrepare() Errors {
	for _, e := range es {
		e.late = true
	}
	return es
}

// sort orders errors by layer and place and removes duplicates.
func (es Errors) sort() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.src.order, b.src.order), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return slices.CompactFunc(es, func(a, b *Error) bool {
		return a.Error() == b.Error()
	})
}

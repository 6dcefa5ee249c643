package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/quantity"
	"exp/experiments/spelling"
	"exp/experiments/store"
)

// Values says what values a field has; the zero Values allows any.
type Values struct {
	Number bool
	Age    bool // of a number: it counts seconds, so literals may be durations
	Time   bool
	ID     bool     // an id; its first digits are enough, as in references
	Words  []string // nil: any
}

// Schema reads filters with what the store does not know of their fields. The zero Schema
// knows nothing more.
type Schema struct {
	Config func(path string) (v Values, known bool) // describes a configuration key
	Result func(name string) bool                   // whether lists may show a result with that name
}

// Parse reads a filter. The error is a *SyntaxError.
func (s Schema) Parse(text string) (*Filter, error) {
	return Language[store.Field]{Name: "filter", Operand: s.filterField, values: s.values}.Parse(text)
}

// values describes the values of a field.
func (s Schema) values(f store.Field) (v Values) {
	if f.Kind == store.FieldConfig && s.Config != nil {
		v, _ = s.Config(f.Name)
		return v
	}
	return Values{Number: f.IsNumber(), Age: f.Kind != store.FieldColumn || f.Name == "wall", Time: f.IsTime(),
		ID: f.Kind == store.FieldColumn && (f.Name == "id" || f.Name == "xid"), Words: f.Words()}
}

// check returns an error if a test of a field with such values can never hold, because of
// its literal. field is the field as written.
func (v Values) check(field, op string, l literal) *SyntaxError {
	fail := func(help, format string, args ...any) *SyntaxError {
		return &SyntaxError{Col: l.col, Msg: fmt.Sprintf(format, args...), Help: help}
	}
	found := strconv.Quote(l.text)
	if l.quoted {
		found = "a text in quotes"
	}
	switch {
	case op == "~" && v.Number:
		return fail("", `"~" matches texts, and %s is a number`, field)
	case op == "~" && v.Time:
		return fail("", `"~" matches texts, and %s is a time`, field)
	case op == "~":
	case v.ID && !isID(l.text):
		return fail("", "%s takes the first %d to 64 hexadecimal digits of an id, not %s", field, minDigits, found)
	case v.Number && v.Age && !l.isNumber && !l.isAge:
		return fail(unquoted(l), "%s takes a number or a duration (90s, 3h), not %s", field, found)
	case v.Number && !v.Age && !l.isNumber:
		return fail(unquoted(l), "%s takes a number, not %s", field, found)
	case v.Time && !l.isAge && !l.isTime:
		return fail(unquoted(l), "%s takes an age (2d, 3h), a day (2026-01-02) or an instant (2026-01-02T15:04:05Z), "+
			"not %s", field, found)
	case v.Words != nil && !slices.Contains(v.Words, l.text):
		help := ""
		if near := spelling.Nearest(l.text, v.Words); near != "" {
			help = "did you mean " + near + "?"
		}
		return fail(help, "%s takes %s, not %q", field, either(v.Words), l.text)
	}
	return nil
}

// unquoted suggests the value without its quotes if it is a number, an age or a time.
func unquoted(l literal) string {
	plain := literalOf(token{kind: word, text: l.text})
	if l.quoted && (plain.isNumber || plain.isAge || plain.isTime) {
		return "write " + l.text + " without quotes"
	}
	return ""
}

// either writes "a, b or c", or the first of many words.
func either(words []string) string {
	const most = 12
	last := len(words) - 1
	if last < 1 || last >= most {
		return quantity.AtMost(words, most)
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

package grade

import (
	"fmt"
	"slices"
	"strings"
)

// choice is a multiple-choice letter, with the value that it stands for: (B) 12.
type choice struct {
	letter byte
	value  string // LaTeX; empty if not given
	marked bool   // the letter stands in brackets or before a colon, so it is no variable
}

// choiceIn reads B, (B), B., (B) 12, option B, \textbf{(B)}\ 12.
func choiceIn(s string) (choice, bool) {
	s = strings.TrimSpace(unwrapped(s))
	for _, p := range []string{"option ", "choice ", "answer "} {
		if len(s) > len(p) && strings.EqualFold(s[:len(p)], p) {
			s = strings.TrimSpace(s[len(p):])
		}
	}
	open := strings.HasPrefix(s, "(")
	s = strings.TrimSpace(strings.TrimPrefix(s, "("))
	if s == "" || s[0] < 'A' || s[0] > 'J' {
		return choice{}, false
	}
	c := choice{letter: s[0], marked: open}
	rest := strings.TrimSpace(s[1:])
	switch {
	case rest == "" && !open || rest == ".":
		return c, true
	case strings.HasPrefix(rest, ")") || strings.HasPrefix(rest, ":") && !open,
		strings.HasPrefix(rest, ".") && len(rest) > 1 && rest[1] == ' ':
		c.marked = true
		if after := rest[1:]; after != "" && strings.IndexByte("+*/^=-_!", after[0]) >= 0 {
			return choice{}, false // (B)+1
		}
		c.value = strings.Trim(rest[1:], " .:;~")
	default:
		return choice{}, false
	}
	if several(c.value) {
		return choice{}, false
	}
	return c, true
}

// several reports whether what follows a letter is another letter.
func several(rest string) bool {
	rest = strings.TrimLeft(rest, " ,;&/.)")
	for _, w := range []string{"and ", "or "} {
		if strings.HasPrefix(rest, w) {
			return true
		}
	}
	if rest == "" {
		return false
	}
	if _, ok := choiceIn(rest); ok {
		return true
	}
	return false
}

// fontCommands change only the font of what a multiple-choice answer says.
var fontCommands = strings.NewReplacer("\\textbf", "", "\\textit", "", "\\textrm", "", "\\textnormal", "", "\\text",
	"", "\\mathrm", "", "\\mathbf", "", "\\mbox", "", "\\bf", "", "\\rm", "",
	"\\ ", " ", "\\,", " ", "\\quad", " ", "~", " ",
	"$", " ", "**", " ", "\\left", "", "\\right", "", "\\!", "", "\\;", " ", "\\:", " ", "\\qquad", " ")

// unwrapped strips fonts from the letter at the start; the braces of a formula behind it stay.
func unwrapped(s string) string {
	if !strings.ContainsAny(s, "ABCDEFGHIJ") || len(s) > 400 {
		return s
	}
	s = strings.TrimSpace(fontCommands.Replace(s))
	for strings.HasPrefix(s, "{") {
		end := matchBrace(s, 0)
		if end < 0 {
			return s
		}
		s = strings.TrimSpace(s[1:end]) + " " + strings.TrimSpace(s[end+1:])
		s = strings.TrimSpace(s)
	}
	return s
}

// choices compares multiple-choice letters if the gold answer is one. The gold answer (B) 12 is the letter B; the
// value 12 is right as well, and so is a letter with the right value for the gold answer 12.
func choices(gold, prediction string) (result, bool) {
	if r, ok := letterSets(gold, prediction); ok {
		return r, true
	}
	g, ok := choiceIn(gold)
	if !ok {
		p, ok := choiceIn(prediction)
		if !ok || p.value == "" {
			return result{}, false
		}
		r := compareTexts(gold, statement(p.value))
		r.why = fmt.Sprintf("letter %c with a value: %s", p.letter, r.why)
		return r, true
	}
	if g.value != "" && !g.marked {
		return result{}, false
	}
	p, ok := choiceIn(prediction)
	if k := strings.LastIndex(prediction, " is "); !ok && k >= 0 { // the correct option is B
		p, ok = choiceIn(prediction[k+len(" is "):])
	}
	switch {
	case ok && p.letter == g.letter:
		return yes("the same letter"), true
	case ok:
		return no(fmt.Sprintf("letter %c against %c", p.letter, g.letter)), true
	case g.value != "":
		r := compareTexts(statement(g.value), prediction)
		r.why = "the value of the letter: " + r.why
		return r, true
	case g.marked && len(lettersIn(prediction)) > 0:
		return no("several letters"), true
	}
	return result{}, false
}

// lettersIn returns the letters of A, B, D or A and B, sorted; nil if s is anything else.
func lettersIn(s string) []string {
	f := strings.FieldsFunc(unwrapped(s), func(r rune) bool { return strings.ContainsRune(" ,;()&.", r) })
	var list []string
	for _, w := range f {
		switch {
		case w == "and":
		case len(w) == 1 && 'A' <= w[0] && w[0] <= 'J':
			list = append(list, w)
		default:
			return nil
		}
	}
	slices.Sort(list)
	return list
}

// letterSets compares ABD with A, B, D.
func letterSets(gold, prediction string) (result, bool) {
	together, apart := strings.Trim(unwrapped(gold), " ()."), lettersIn(prediction)
	if len(apart) < 2 {
		together, apart = strings.Trim(unwrapped(prediction), " ()."), lettersIn(gold)
	}
	if len(together) < 2 || len(together) > 6 || len(apart) < 2 || strings.Trim(together, "ABCDEFGHIJ") != "" {
		return result{}, false
	}
	letters := strings.Split(together, "")
	slices.Sort(letters)
	if slices.Equal(letters, apart) {
		return yes("the same letters"), true
	}
	return no("other letters"), true
}

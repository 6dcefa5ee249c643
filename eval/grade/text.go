package grade

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// texts compares two answers if at least one is words.
func (c *comparer) texts(g, p *formula.Expr) result {
	if g.Op == formula.Text && p.Op == formula.Text || letters(g) != "" && letters(p) != "" {
		a, b := wording.Normal(letters(g)), wording.Normal(letters(p))
		if sameWords(a, b) {
			return yes("the same words")
		}
		return no(fmt.Sprintf("%q against %q", shorten(b), shorten(a)))
	}
	return no(describe(p) + " against " + describe(g))
}

// synonyms are wordings of one answer.
var synonyms = [][]string{
	{"does not exist", "dne", "undefined", "doesn t exist", "not defined"},
	{"diverges", "divergent", "is divergent", "series diverges", "integral diverges", "sequence diverges"},
	{"converges", "convergent", "is convergent", "series converges", "integral converges", "sequence converges"},
	{"none", "none of these", "none of above"},
	{"cannot be determined", "can not be determined", "not enough information", "cannot determine"},
}

// shortDays are the abbreviations of days of the week.
var shortDays = map[string]string{"mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday",
	"thu": "thursday", "thur": "thursday", "thurs": "thursday", "fri": "friday", "sat": "saturday", "sun": "sunday"}

func sameWords(a, b string) bool {
	if a == b || shortDays[a] == b && b != "" || shortDays[b] == a && a != "" || isKindOf(a, b) || isKindOf(b, a) {
		return true
	}
	for _, list := range synonyms {
		if slices.Contains(list, a) && slices.Contains(list, b) {
			return true
		}
	}
	return false
}

// isKindOf reports whether words are a quality with the kind of things that has it: odd function.
func isKindOf(words, quality string) bool {
	rest, ok := strings.CutPrefix(words, quality+" ")
	return ok && quality != "" && slices.Contains([]string{"function", "number", "integer", "triangle", "matrix",
		"series", "sequence", "relation", "statement"}, rest)
}

// dayOfMonth matches a date with an ordinal: March 14th.
var dayOfMonth = pattern.New(`\b((?:Jan|Febr)uary [0-9]{1,2}|(?:March|April|May|June|July|August) [0-9]{1,2}|` +
	`(?:Septem|Octo|Novem|Decem)ber [0-9]{1,2})(?:st|nd|rd|th)\b`)

// dayBefore matches a date with the day first: 14 March, 14th of March.
var dayBefore = pattern.New(`^(?:the )?([0-9]{1,2})(?:st|nd|rd|th)?(?: of)? ((?:Jan|Febr)uary|March|April|May|June|` +
	`July|August|(?:Septem|Octo|Novem|Decem)ber)$`)

// shortMonth matches an abbreviation before a day: Oct. 31.
var shortMonth = pattern.New(`\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)\.? [0-9]{1,2}`)

// monthNames are the months by their first letters.
var monthNames = map[string]string{"Jan": "January", "Feb": "February", "Mar": "March", "Apr": "April", "Jun": "June",
	"Jul": "July", "Aug": "August", "Sep": "September", "Oct": "October", "Nov": "November", "Dec": "December"}

// withoutOrdinal writes a date as March 14.
func withoutOrdinal(s string) string {
	if !strings.ContainsAny(s, "JFMASOND") {
		return s
	}
	s = shortMonth.ReplaceAllStringFunc(s, func(m string) string {
		return monthNames[m[:3]] + m[len(strings.TrimRight(m, "0123456789 ")):]
	})
	return dayOfMonth.ReplaceAllString(dayBefore.ReplaceAllString(s, "$2 $1"), "$1")
}

// sameNames compares lists of names that "and" joins, in any order: Alice and Bob.
func sameNames(gold, prediction string) (result, bool) {
	if len(gold) > 200 || len(prediction) > 200 ||
		strings.ContainsAny(gold+prediction, "0123456789=+^_<>|()[]*/&\\#") {
		return result{}, false
	}
	g, p := namesIn(gold), namesIn(prediction)
	if len(g) < 2 || len(p) < 2 || !hasWord(gold) {
		return result{}, false
	}
	slices.Sort(g)
	slices.Sort(p)
	if slices.Equal(g, p) {
		return yes("the same names"), true
	}
	return result{}, false
}

// namesIn splits a list of names at commas and "and"; nil if it has another conjunction.
func namesIn(s string) []string {
	s = strings.ToLower(strings.ReplaceAll(s, ",", " , "))
	var names []string
	name := ""
	for _, w := range append(strings.Fields(s), "and") {
		switch w {
		case "or", "not", "nor", "but":
			return nil
		case "and", ",":
			if name != "" {
				names = append(names, wording.Normal(name))
			}
			name = ""
		default:
			name = strings.TrimSpace(name + " " + w)
		}
	}
	return names
}

// reordered reports whether two answers are the same three or more capital letters in another order: the letters of
// a word, an order or an angle do not commute like the factors of a product.
func reordered(gold, prediction string) bool {
	if len(gold) < 3 || len(gold) != len(prediction) || strings.Trim(gold, capitals) != "" ||
		strings.Trim(prediction, capitals) != "" || gold == prediction {
		return false
	}
	a, b := strings.Split(gold, ""), strings.Split(prediction, "")
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// letters returns the text of words, or of a product of single letters that was one word.
func letters(x *formula.Expr) string {
	switch x.Op {
	case formula.Text:
		return x.Name
	case formula.Sym:
		return x.Name
	case formula.List:
		var names []string
		for _, a := range x.Args {
			if a.Op != formula.Sym {
				return ""
			}
			names = append(names, a.Name)
		}
		return strings.Join(names, ", ")
	case formula.Mul:
		s := ""
		for _, a := range x.Args {
			if a.Op != formula.Sym {
				return ""
			}
			s += a.Name
		}
		return s
	}
	return ""
}

// spelling unifies LaTeX spellings that every reader takes as the same, for answers the parser cannot read.
var spelling = strings.NewReplacer("\\left", "", "\\right", "", "\\dfrac", "\\frac", "\\tfrac", "\\frac", "\\!", "",
	"\\,", " ", "\\;", " ", "\\:", " ", "\\ ", " ", "~", " ", "\\displaystyle", "", "$", "", "\\cdot", "*", "\\times",
	"*", "\\leq", "\\le", "\\geq", "\\ge", "\\neq", "\\ne")

// vectorSpelling keeps the cross product apart.
var vectorSpelling = strings.NewReplacer("\\times", "×")

// spelled removes spaces except between two digits or two letters.
func spelled(s string) string {
	if strings.Contains(s, "\\vec") || strings.Contains(s, "\\mathbf") || strings.Contains(s, "\\hat") ||
		strings.Contains(s, "arrow") || strings.Contains(s, "\\b") {
		s = vectorSpelling.Replace(s)
	}
	f := strings.Fields(spelling.Replace(s))
	var b strings.Builder
	for i, w := range f {
		if i > 0 {
			last, first := f[i-1][len(f[i-1])-1], w[0]
			if wording.IsDigit(last) && wording.IsDigit(first) || wording.IsLetter(last) && wording.IsLetter(first) {
				b.WriteByte(' ')
			}
		}
		b.WriteString(w)
	}
	if t := b.String(); strings.HasSuffix(t, "...") { // a list that goes on
		return t
	}
	return strings.TrimRight(b.String(), ".,;")
}

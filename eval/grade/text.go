package grade

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// texts compares two answers if at least one is words.
func (c *comparer) texts(g, p *expr) result {
	if g.op == opText && p.op == opText || letters(g) != "" && letters(p) != "" {
		a, b := words(letters(g)), words(letters(p))
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
	{"none", "none of these", "none of above"},
	{"cannot be determined", "can not be determined", "not enough information", "cannot determine"},
}

func sameWords(a, b string) bool {
	if a == b {
		return true
	}
	for _, list := range synonyms {
		if slices.Contains(list, a) && slices.Contains(list, b) {
			return true
		}
	}
	return false
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
				names = append(names, words(name))
			}
			name = ""
		default:
			name = strings.TrimSpace(name + " " + w)
		}
	}
	return names
}

// letters returns the text of words, or of a product of single letters that was one word.
func letters(x *expr) string {
	switch x.op {
	case opText:
		return x.name
	case opSym:
		return x.name
	case opList:
		var names []string
		for _, a := range x.args {
			if a.op != opSym {
				return ""
			}
			names = append(names, a.name)
		}
		return strings.Join(names, ", ")
	case opMul:
		s := ""
		for _, a := range x.args {
			if a.op != opSym {
				return ""
			}
			s += a.name
		}
		return s
	}
	return ""
}

// words returns a text in lower case without punctuation, articles and repeated spaces.
func words(s string) string {
	var list []string
	all := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
	for i, w := range all {
		article := w == "the" || w == "on" && i == 0 && len(all) > 1 || (w == "a" || w == "an") && i+1 < len(all) &&
			len(all[i+1]) > 1
		if !article {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return strings.ToLower(strings.TrimSpace(s))
	}
	return strings.Join(list, " ")
}

// textWrappers are commands that change only the font.
var textWrappers = strings.NewReplacer("\\textbf", "", "\\textit", "", "\\textrm", "", "\\textnormal", "", "\\text",
	"", "\\mathrm", "", "\\mathbf", "", "\\mbox", "", "\\rm", "", "{", " ", "}", " ", "\\ ", " ", "\\,", " ", "~",
	" ",
	"$", " ", "**", " ", "\\left", "", "\\right", "", "\\!", "")

// bare strips fonts and delimiters from an answer.
func bare(s string) string { return strings.Join(strings.Fields(textWrappers.Replace(s)), " ") }

// clock reads a time of day: 8:34, 08:34 PM, 20:34. It returns minutes since midnight, and the half of the
// day if a.m. or p.m. was given.
func clock(s string) (minutes int, half, ok bool) {
	s = strings.ToLower(strings.NewReplacer(".", "", " ", "").Replace(bare(s)))
	noon := 0
	if t, found := strings.CutSuffix(s, "pm"); found {
		s, half, noon = t, true, 12
	} else if t, found := strings.CutSuffix(s, "am"); found {
		s, half = t, true
	}
	hs, ms, found := strings.Cut(s, ":")
	if !found && !half {
		return 0, false, false
	}
	h, err := strconv.Atoi(hs)
	m := 0
	if found && err == nil {
		if len(ms) != 2 {
			return 0, false, false
		}
		m, err = strconv.Atoi(ms)
	}
	if err != nil || h < 0 || h > 23 || m < 0 || m > 59 || half && (h < 1 || h > 12) {
		return 0, false, false
	}
	if half {
		h = h%12 + noon
	}
	return 60*h + m, half, true
}

// clocks compares times of day if at least one says a.m. or p.m.
func clocks(gold, prediction string) (result, bool) {
	if len(gold) > 40 || len(prediction) > 40 || !strings.ContainsAny(gold+prediction, "mM") {
		return result{}, false
	}
	g, gh, ok := clock(gold)
	p, ph, ok2 := clock(prediction)
	switch {
	case !ok || !ok2 || !gh && !ph:
		return result{}, false
	case g == p:
		return yes("the same time of day"), true
	case gh != ph && g%720 == p%720:
		return result{true, false, "the same time; one side does not say a.m. or p.m."}, true
	}
	return no("another time of day"), true
}

// spelling unifies LaTeX spellings that every reader takes as the same, for answers the parser cannot read.
var spelling = strings.NewReplacer("\\left", "", "\\right", "", "\\dfrac", "\\frac", "\\tfrac", "\\frac", "\\!", "",
	"\\,", " ", "\\;", " ", "\\:", " ", "\\ ", " ", "~", " ", "\\displaystyle", "", "$", "", "\\cdot", "*", "\\times",
	"*", "\\leq", "\\le", "\\geq", "\\ge", "\\neq", "\\ne")

// spelled removes spaces except between two digits or two letters.
func spelled(s string) string {
	f := strings.Fields(spelling.Replace(s))
	var b strings.Builder
	for i, w := range f {
		if i > 0 {
			last, first := f[i-1][len(f[i-1])-1], w[0]
			if isDigit(last) && isDigit(first) || isLetter(last) && isLetter(first) {
				b.WriteByte(' ')
			}
		}
		b.WriteString(w)
	}
	return strings.TrimRight(b.String(), ".,;")
}

// setInWords returns the set that words name, or nil. The words are in lower case, without articles.
func setInWords(w string) *expr {
	if len(w) > 60 || len(w) < 3 {
		return nil
	}
	switch w {
	case "empty set", "no solution", "no solutions", "no real solutions", "no real solution", "there are no solutions",
		"there is no solution", "has no solution", "has no solutions", "none exist", "no such number exists":
		return symbol(symNil)
	case "infinity", "infinite", "infinitely many", "infinitely many solutions", "infinite solutions",
		"infinite number", "infinite number of solutions", "infinitely many values", "positive infinity":
		return symbol(symInf)
	case "negative infinity", "minus infinity":
		return negative(symbol(symInf))
	}
	t := strings.TrimSuffix(strings.TrimSuffix(w, " numbers"), " number")
	t = strings.TrimSuffix(strings.TrimSuffix(t, " values"), " value")
	t = strings.TrimPrefix(strings.TrimPrefix(t, "set of "), "all ")
	t = strings.TrimSuffix(strings.TrimPrefix(t, "every "), "s")
	side, real := strings.CutSuffix(t, "real")
	if !real || t == w && t == "real" {
		return nil
	}
	zero, infinite := integer(0), symbol(symInf)
	switch strings.TrimSpace(side) {
	case "":
		return symbol(symR)
	case "positive":
		return &expr{op: opTuple, open: '(', close: ')', args: []*expr{zero, infinite}}
	case "negative":
		return &expr{op: opTuple, open: '(', close: ')', args: []*expr{negative(infinite), zero}}
	case "nonnegative", "non negative":
		return &expr{op: opTuple, open: '[', close: ')', args: []*expr{zero, infinite}}
	case "nonpositive", "non positive":
		return &expr{op: opTuple, open: '(', close: ']', args: []*expr{negative(infinite), zero}}
	case "nonzero", "non zero":
		return &expr{op: opWithout, args: []*expr{symbol(symR), {op: opSet, args: []*expr{zero}}}}
	}
	return nil
}

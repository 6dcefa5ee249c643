package grade

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// texts compares two answers if at least one is words.
func (c *comparer) texts(g, p *expr) result {
	if g.op == opText && p.op == opText || letters(g) != "" && letters(p) != "" {
		a, b := words(letters(g)), words(letters(p))
		if a == b {
			return yes("the same words")
		}
		return no(fmt.Sprintf("%q against %q", shorten(b), shorten(a)))
	}
	return no(describe(p) + " against " + describe(g))
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

// choice reads a multiple-choice letter: B, (B), B., (B) 12, option B. It returns 0 if s is not one.
func choice(s string) byte {
	s = bare(s)
	for _, p := range []string{"option ", "Option ", "choice ", "Choice "} {
		s = strings.TrimPrefix(s, p)
	}
	s = strings.TrimSpace(s)
	open := strings.HasPrefix(s, "(")
	s = strings.TrimSpace(strings.TrimPrefix(s, "("))
	if s == "" || s[0] < 'A' || s[0] > 'J' {
		return 0
	}
	rest := strings.TrimSpace(s[1:])
	if more := strings.TrimLeft(rest, ") ."); strings.HasPrefix(more, ",") || strings.HasPrefix(more, "and ") ||
		strings.HasPrefix(more, "or ") || strings.HasPrefix(more, "&") {
		return 0 // several letters
	}
	switch {
	case rest == "" || rest == ")" || rest == "." || rest == ").":
		return s[0]
	case rest[0] == ')' && open, rest[0] == ')' || rest[0] == ':' || rest[0] == '.' && len(rest) > 1 &&
		rest[1] == ' ':
		return s[0]
	}
	return 0
}

// choices compares multiple-choice letters if the gold answer is one.
func choices(gold, prediction string) (result, bool) {
	g := choice(gold)
	if g == 0 || len(strings.Trim(bare(gold), "(). ")) != 1 {
		return result{}, false
	}
	p := choice(prediction)
	if k := strings.LastIndex(prediction, " is "); p == 0 && k >= 0 { // the correct option is B
		p = choice(prediction[k+len(" is "):])
	}
	switch {
	case p == g:
		return yes("the same letter"), true
	case p != 0:
		return no(fmt.Sprintf("letter %c against %c", p, g)), true
	}
	return result{}, false
}

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

package peer

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"exp/eval/grade"
	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// MathVision grades as evaluation/evaluate.py of MATH-Vision does, and its copy in lmms-eval: a letter that ends or
// begins the response, a number after "is", the last box, or the words after "the answer is", against the gold answer
// or the gold letter's option. Texts are equal, or values rounded to two decimals. The source reads values by
// latex2sympy; here package latex does, which reads more, and less where LaTeX is broken.
func MathVision(q Question, response string) grade.Verdict {
	answer := mathVisionAnswer(response)
	for _, gold := range q.Golds {
		if mathVisionEqual(gold, answer) {
			return verdict(true, answer, "equal text or value")
		}
	}
	if q.hasOptions() && mathVisionEqual(q.Options[q.Right], answer) {
		return verdict(true, answer, "the right option")
	}
	return verdict(false, answer, "another text and value")
}

// mathVisionFlags are the words before an answer, in the source's order.
var mathVisionFlags = []string{"the final answer is", "the answer is", "the correct answer is",
	"the answer should be"}

// mathVisionAnswer is the part of evaluate.py that finds the model's answer.
func mathVisionAnswer(response string) string {
	s := strings.TrimFunc(response, isPythonSpace)
	for _, c := range []string{"A", "B", "C", "D", "E"} {
		if strings.HasSuffix(s, " "+c+".") || strings.HasSuffix(s, " ("+c+").") || strings.HasPrefix(s, c+"\n") ||
			strings.HasPrefix(s, "("+c+")\n") || strings.HasPrefix(s, "("+c+") "+c+"\n") {
			s = c
		}
	}
	if tail := strings.TrimRight(afterLast(s, "is "), "."); isPythonFloat(tail) {
		s = tail
	}
	const box = "oxed{"
	switch n := strings.Count(s, box); {
	case n == 0:
		for _, flag := range mathVisionFlags {
			s = mathVisionBehind(s, flag)
			s = mathVisionBehind(s, strings.ReplaceAll(flag, "the", "The"))
		}
	case n > 1:
		s = "\\boxed{" + afterLast(s, box)
	}
	s = mathVisionText(s)
	for _, c := range []string{"a", "b", "c", "d", "e"} {
		s = strings.ReplaceAll(s, "("+c+")", c)
	}
	for _, c := range []string{"a", "b", "c", "d", "e"} {
		s = strings.ReplaceAll(s, "{"+c+"}", c)
	}
	return strings.TrimFunc(strings.TrimLeft(strings.TrimRight(s, "."), ":"), isPythonSpace)
}

// mathVisionBehind returns the rest of the sentence behind the last flag, if there is one.
func mathVisionBehind(s, flag string) string {
	found := strings.Contains(s, flag)
	s = strings.TrimFunc(afterLast(s, flag), isPythonSpace)
	if found {
		s, _, _ = strings.Cut(s, "\n")
		s, _, _ = strings.Cut(s, ". ")
	}
	return s
}

// afterLast returns what follows the last mark, or all without one.
func afterLast(s, mark string) string {
	if i := strings.LastIndex(s, mark); i >= 0 {
		return s[i+len(mark):]
	}
	return s
}

func isPythonFloat(s string) bool {
	_, ok := pythonFloat(s)
	return ok
}

// mathVisionText is find_math_answer: what the box holds, or the whole, in lower case and without some LaTeX.
func mathVisionText(s string) string {
	s = strings.ReplaceAll(pythonLower(s), "{}", "")
	if i := strings.Index(s, "oxed{"); i >= 0 {
		if end := strings.LastIndex(s, "}"); end >= i+len("oxed{") {
			s = s[i+len("oxed{") : end]
		}
	}
	if end, open := strings.Index(s, "}"), strings.Index(s, "{"); end >= 0 && (open < 0 || end < open) {
		s = s[:end]
	}
	s = afterLast(afterLast(s, "="), "\\approx")
	for _, r := range [][2]string{
		{" ", ""}, {"\\,", ""}, {"∞", "\\infty"}, {"+\\infty", "\\infty"}, {"\\\\", "\\"}, {"\n", ""},
		{"\\text", ""}, {"\\mbox", ""}, {"bmatrix", "pmatrix"}, {"\\left", ""}, {"\\right", ""},
		{"^{\\circ}", ""}, {"^\\circ", ""}, {"{m}^3", ""}, {"m^3", ""}, {"{units}", ""}, {"units", ""},
		{"{km}", ""}, {"km", ""},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return mathVisionStrip(s)
}

// mathVisionStrip is _strip_string, whose text has no spaces, line ends or equations any more.
func mathVisionStrip(s string) string {
	for _, r := range [][2]string{{"\\!", ""}, {"\\\\", "\\"}, {"tfrac", "frac"}, {"dfrac", "frac"}, {"\\$", ""},
		{"$", ""}, {"\\%", ""}, {"{.", "{0."}} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	if strings.HasPrefix(s, ".") {
		s = "0" + s
	}
	if strings.Contains(s, "sqrt") {
		if braced, err := braceSqrt(s); err == nil {
			s = braced
		}
		if braced, err := braceFrac(s); err == nil { // of roots alone, in the source
			s = braced
		}
	}
	if s == "0.5" {
		return "\\frac{1}{2}"
	}
	return slashFrac(s)
}

// mathVisionEqual is is_equal: the same text in lower case, equal values, or lists of these.
func mathVisionEqual(gold, answer string) bool {
	gold, answer = pythonLower(gold), pythonLower(answer)
	if strings.ReplaceAll(gold, " ", "") == "" || strings.ReplaceAll(answer, " ", "") == "" {
		return false
	}
	if strings.TrimFunc(gold, isPythonSpace) == strings.TrimFunc(answer, isPythonSpace) {
		return true
	}
	if g, ok := mathVisionTuple(gold); ok {
		a, ok := mathVisionTuple(answer)
		return ok && equalFloats(g, a) && gold[0] == answer[0]
	}
	g, ok := mathVisionValue(gold)
	a, ok2 := mathVisionValue(answer)
	return ok && ok2 && g == a
}

// mathVisionTuple returns the rounded values of (1,2) or [1,2].
func mathVisionTuple(s string) (list []float64, ok bool) {
	if len(s) < 2 || !(s[0] == '(' && s[len(s)-1] == ')' || s[0] == '[' && s[len(s)-1] == ']') {
		return nil, false
	}
	for _, part := range strings.Split(s[1:len(s)-1], ",") {
		x, ok := mathVisionValue(part)
		if !ok {
			return nil, false
		}
		list = append(list, x)
	}
	return list, len(list) > 1
}

func equalFloats(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// wordOrCommand matches a word, or a command of LaTeX.
var wordOrCommand = regexp.MustCompile(`\\?[a-z]{2,}`)

// mathVisionValue returns the value of a text in LaTeX, rounded to two decimals. As in latex2sympy, a colon divides,
// and words such as "answer" are not part of a value.
func mathVisionValue(s string) (float64, bool) {
	word := func(w string) bool { return w[0] != '\\' }
	if len(s) > latex.MaxAnswer || slices.ContainsFunc(wordOrCommand.FindAllString(s, -1), word) {
		return 0, false
	}
	x, err := latex.ParseFormula(strings.NewReplacer("$", "", ":", "/").Replace(s), false)
	if err != nil {
		return 0, false
	}
	budget := formula.NewBudget(formula.MaxWork)
	v, ok := budget.Evaluate(x, &formula.Point{})
	if !ok {
		return 0, false
	}
	return pythonRound(real(v.V), 2), !math.IsNaN(real(v.V))
}

package peer

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"exp/eval/grade"
	"exp/eval/grade/pattern"
)

// PrimeMath is compute_score of verl's reward_score/prime_math, which grades numina_*: the words after "answer is" and
// its like, a box in them, then grade_answer and math_equal.
//
// In verl math_equal ends without SymPy: symbolic_equal enters a decorator with "with", which fails, and so does
// everything within. Not here: predictions that begin with "Matrix", and lists against a pmatrix.
func PrimeMath(gold, response string) grade.Verdict {
	answer := primeMathAnswer(response)
	switch {
	case PrimeMathd(answer, gold):
		return verdict(true, answer, "equal text")
	case primeMathSymbolic(answer, gold):
		return verdict(true, answer, "equal symbolically")
	case primeMathEqual(answer, gold):
		return verdict(true, answer, "equal numbers or parts")
	}
	return verdict(false, answer, "neither equal text nor equal value")
}

// primeMathAnswer is match_answer.
func primeMathAnswer(response string) string {
	s := []rune(response)
	after := func(mark string) {
		if i := lastBefore(s, mark); i >= 0 {
			s = strippedRunes(s[min(i+len(mark), len(s)):])
		}
	}
	for _, mark := range []string{"answer:", "answer is", "answers are"} {
		after(mark)
	}
	for _, mark := range []string{"is answer", "is the answer", "are answers", "are the answers"} {
		if i := lastBefore(s, mark); i >= 0 {
			s = strippedRunes(s[:min(i, len(s))])
		}
	}
	if box := primeMathBox(string(s)); box != "" {
		s = []rune(box)
	}
	if i := lastBefore(s, ". "); i >= 0 {
		s = strippedRunes(s[:min(i, len(s))])
	}
	for _, mark := range []string{"be ", "is ", "are ", "=", ": ", "get ", "be\n", "is\n", "are\n", ":\n", "get\n"} {
		after(mark)
	}
	return string(s)
}

// lastBefore returns where a mark begins last in the lower case of s, in code points, or -1. As in Python, lower case
// may have more of them than s.
func lastBefore(s []rune, mark string) int {
	lower := pythonLower(string(s))
	i := strings.LastIndex(lower, mark)
	if i < 0 {
		return -1
	}
	return len([]rune(lower[:i]))
}

func strippedRunes(s []rune) []rune { return []rune(strings.TrimFunc(string(s), isPythonSpace)) }

// primeMathBox is _last_boxed_only_string: what the first brace after the last \boxed, else \fbox, encloses.
func primeMathBox(s string) string {
	at := strings.LastIndex(s, "\\boxed")
	if at < 0 {
		at = strings.LastIndex(s, "\\fbox")
	}
	if at < 0 {
		return ""
	}
	open, left := 0, -1
	for i := at; i < len(s); i++ {
		switch s[i] {
		case '{':
			if open++; left < 0 {
				left = i
			}
		case '}':
			if open--; open == 0 && left >= 0 {
				return strings.TrimFunc(s[left+1:i], isPythonSpace)
			} else if open == 0 {
				return "" // Python finds an end without a beginning
			}
		}
	}
	return ""
}

// unreadable matches what SymPy does not read, or not as we do: sets, a point that ends no number, a float exponent, a
// function of what stands behind a blank, two numbers side by side, and factorials of brackets.
var unreadable = pattern.New(`[{}]|\.[0-9]*\.|[\p{L} )]\.(?:[^0-9]|$)|[\p{L})]\^[0-9]+\.|` +
	`(?:ln|log|exp|sqrt|sin|cos|tan) |[0-9.] +[0-9.]|\)!`)

// primeMathSymbolic is the symbolic part of grade_answer. Unlike PrimeSymbolic it leaves blanks and braces in.
func primeMathSymbolic(answer, gold string) bool {
	return primeElements(primeMathText(answer), primeMathText(gold), func(g, p string) bool {
		return !unreadable.MatchString(g) && !unreadable.MatchString(p) &&
			primeElement(strings.ReplaceAll(g, " ", ""), strings.ReplaceAll(p, " ", ""))
	})
}

// primeMathEqual is math_equal as compute_score calls it: with π in a text once for each value of it.
func primeMathEqual(answer, gold string) bool {
	if !strings.Contains(answer, "\\pi") && !strings.Contains(gold, "\\pi") {
		equal, ok := mathEqual(answer, gold, math.Pi)
		return ok && equal
	}
	any := false
	for _, pi := range []float64{math.Pi, 3.14} {
		equal, ok := mathEqual(answer, gold, pi)
		if !ok {
			return false
		}
		any = any || equal
	}
	return any
}

var (
	wholeNumber = pattern.New(`^-?[0-9]+$`)
	dollars     = pattern.New(`^\$\p{Nd}+(\.\p{Nd}+)?`)
	percentage  = pattern.New(`^\p{Nd}+(\.\p{Nd}+)?(%|\\%)\n?$`)
)

// mathNormalize is normalize: the text, or its number; ok is false if it raises an error.
func mathNormalize(s string, pi float64) (text string, number float64, isNumber, ok bool) {
	switch {
	case dollars.MatchString(s):
		return s[1:], 0, false, true
	case percentage.MatchString(s):
		return strings.NewReplacer("\\%", "", "%", "").Replace(s), 0, false, true
	}
	if base, _, found := strings.Cut(s, "_"); found {
		f, ok := pythonFloat(base)
		if !ok || math.IsInf(f, 0) || math.IsNaN(f) {
			return "", 0, false, false
		}
		return "", math.Trunc(f), true, true
	}
	if !strings.Contains(s, "\\pi") {
		return s, 0, false, true
	}
	s = withPi(s, strconv.FormatFloat(pi, 'g', -1, 64))
	if f, ok := arithmetic(s); ok {
		return "", f, true, true
	}
	return arithmeticTuple(s), 0, false, true
}

// arithmeticTuple evaluates a tuple such as (2*3.14, 1), or returns s.
func arithmeticTuple(s string) string {
	if !enclosed(s, "(", ")") || !strings.Contains(s, ",") {
		return s
	}
	parts := within(s, 1)
	for i, p := range parts {
		if parts[i] = strings.Trim(p, " "); wholeNumber.MatchString(parts[i]) {
			continue
		}
		f, ok := arithmetic(p)
		if !ok {
			return s
		}
		parts[i] = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// withPi replaces \pi by a number, as a factor.
func withPi(s, pi string) string {
	parts := strings.Split(s, "\\pi")
	out := parts[0]
	for _, p := range parts[1:] {
		r := []rune(out)
		if len(r) == 0 || !unicode.IsDigit(r[len(r)-1]) {
			out += "1"
		}
		out += "*" + pi + p
	}
	return out
}

// mathNumber is is_digit: a number, with commas anywhere.
func mathNumber(s string) (float64, bool) {
	if strings.Contains(s, "{,}") {
		return pythonFloat(strings.ReplaceAll(s, "{,}", ""))
	}
	return pythonFloat(strings.ReplaceAll(s, ",", ""))
}

// mathEqual is math_equal; ok is false if it raises an error.
func mathEqual(prediction, reference string, pi float64) (equal, ok bool) {
	p, x, xIs, ok := mathNormalize(prediction, pi)
	if !ok {
		return false, false
	}
	g, y, yIs, ok := mathNormalize(reference, pi)
	if !ok {
		return false, false
	}
	if r := []rune(p); len(r) > 1000 {
		p = string(r[:1000])
	}
	if !xIs && !yIs {
		strip := func(s string) string { return pythonLower(strings.TrimFunc(s, isPythonSpace)) }
		if strip(p) == strip(g) || strings.ReplaceAll(p, " ", "") == strings.ReplaceAll(g, " ", "") {
			return true, true
		}
	}
	if !xIs {
		x, xIs = mathNumber(p)
	}
	if !yIs {
		y, yIs = mathNumber(g)
	}
	if xIs && yIs {
		return slices.ContainsFunc([]float64{y / 100, y, y * 100}, func(y float64) bool { return isClose(y, x) }), true
	}
	if p == "" || g == "" { // a number has no text
		return false, true
	}
	return mathParts(strings.TrimFunc(p, isPythonSpace), strings.TrimFunc(g, isPythonSpace))
}

// isClose is Python's isclose with rel_tol=1e-4.
func isClose(a, b float64) bool {
	return a == b || !math.IsInf(a, 0) && !math.IsInf(b, 0) &&
		math.Abs(a-b) <= 1e-4*max(math.Abs(a), math.Abs(b))
}

// mathParts compares texts without their brackets, and the parts of intervals, points and lists.
func mathParts(p, g string) (equal, ok bool) {
	p = mathInterval(p)
	ps, gs := p, g
	if enclosed(p, "[", "]") && !strings.HasPrefix(g, "(") || enclosed(p, "(", ")") && !strings.HasPrefix(g, "[") {
		ps, gs = strings.Trim(ps, "[]()"), strings.Trim(gs, "[]()")
	}
	bare := strings.NewReplacer("{", "", "}", "", "(", "", ")", "")
	if bare.Replace(ps) == bare.Replace(gs) {
		return true, true
	}
	if p == "" || g == "" {
		return false, g != "" || !strings.HasPrefix(p, "Point")
	}
	last := func(s string) byte { return s[len(s)-1] }
	if strings.ContainsRune("([", rune(p[0])) && strings.ContainsRune(")]", rune(last(p))) && p[0] == g[0] &&
		last(p) == last(g) {
		if equal, ok := mathLists(within(p, 1), within(g, 1)); !ok || equal {
			return equal, ok
		}
	}
	if a, b := strings.Split(p, ","), strings.Split(g, ","); len(a) > 1 && len(a) == len(b) {
		trim := func(list []string) []string {
			for i := range list {
				list[i] = strings.TrimFunc(list[i], isPythonSpace)
			}
			return list
		}
		return mathLists(trim(a), trim(b))
	}
	if strings.HasPrefix(p, "Point") && enclosed(g, "(", ")") {
		return mathLists(within(p, strings.Index(p, "(")+1), within(g, 1))
	}
	return false, true
}

// within splits s[from:-1] at commas.
func within(s string, from int) []string { return strings.Split(s[min(from, len(s)-1):len(s)-1], ",") }

func enclosed(s, open, end string) bool {
	return strings.HasPrefix(s, open) && strings.HasSuffix(s, end)
}

// mathLists compares lists item by item, all of them: an error in one counts.
func mathLists(p, g []string) (equal, ok bool) {
	if len(p) != len(g) {
		return false, true
	}
	all := true
	for i := range p {
		equal, ok := mathEqual(p[i], g[i], math.Pi)
		if !ok {
			return false, false
		}
		all = all && equal
	}
	return all, true
}

// mathInterval is format_intervals: SymPy's intervals in brackets.
func mathInterval(s string) string {
	for _, form := range [][3]string{{"Interval(", "[", "]"}, {"Interval.Ropen(", "[", ")"},
		{"Interval.Lopen(", "(", "]"}, {"Interval.open(", "(", ")"}} {
		inner, ok := strings.CutPrefix(s, form[0])
		if ok && strings.HasSuffix(inner, ")") && !strings.Contains(inner, "\n") {
			return form[1] + inner[:len(inner)-1] + form[2]
		}
	}
	return s
}

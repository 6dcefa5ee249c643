package peer

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"exp/eval/grade"
	"exp/eval/grade/latex"
	"exp/eval/grade/pattern"
)

// The graders of prime_math (verl) and rllm, which share an ancestor (openai/prm800k, after
// hendrycks/math): mathd normalisation, else a second normalisation and symbolic equality. Text handling
// follows the source; latextext.go does what pylatexenc does. Where the source calls SymPy, we use the parser and
// exact comparison of package grade, so verdicts may differ where SymPy gives up.

var (
	primeText  = pattern.New(`^\\text\{(.+?)\}$`)
	primeUnits = pattern.New(
		`(?:degree|cm|centimeter|meter|mile|second|minute|hour|day|week|month|year|foot|feet|inch|yard)(?:es)?s? *(?:\^[0-9]+)?`)
	primeCircle     = pattern.New(`\^ *\\circ`)
	primeComma      = pattern.New(`,\\! *`)
	primeMinus      = pattern.New(`- *`)
	primeMixed      = pattern.New(`([0-9]) +([0-9])`)
	primeUnderscore = pattern.New(`([0-9])_([0-9])`)
	primeFrac       = pattern.New(`^-?[0-9]+.?/0*[1-9][0-9]*.?$`)
	primeBadPow     = pattern.New(`\^[0-9]+\^|\^[0-9][0-9]+`)
	primeGroup      = pattern.New(`([0-9]),([0-9]{3})($|[^0-9])`)
	primeOctal      = pattern.New(`(?:^|[^0-9.a-z])0[0-9]*[1-9][0-9]*(?:[^0-9.e]|$)`)
	primeDot        = pattern.New(`[a-z)]\.(?:[^a-z]|$)|\.[0-9]*\.`)
)

// Prime grades the last \boxed{…} of a response, as rllm's grade_answer_verl. A box in the gold answer is opened; a
// gold answer with a box that does not open is equal to nothing.
func Prime(gold, response string) grade.Verdict {
	if gold == "" {
		return verdict(false, "", "no gold answer")
	}
	goldOK := true
	if strings.Contains(gold, "\\boxed") {
		gold, goldOK = primeExtract(gold)
	}
	answer, ok := primeExtract(response)
	switch {
	case !ok:
		return verdict(false, "", "no box")
	case !goldOK:
		return verdict(false, answer, "the box of the gold answer does not open")
	}
	return PrimeAnswer(gold, answer)
}

// primeExtract is extract_answer: the content of the last \boxed, which must have its brace right behind it and
// must close. \fbox and \boxed 5 give nothing.
func primeExtract(s string) (string, bool) {
	if !strings.Contains(s, "\\boxed") {
		return "", false
	}
	box, ok := lastBoxed(s, true)
	if !ok || !strings.HasPrefix(box, "\\boxed{") {
		return "", false
	}
	return box[len("\\boxed{") : len(box)-1], true
}

// PrimeAnswer is grade_answer: mathd, else symbolic equality.
func PrimeAnswer(gold, answer string) grade.Verdict {
	switch {
	case PrimeMathd(answer, gold):
		return verdict(true, answer, "equal text")
	case PrimeSymbolic(answer, gold):
		return verdict(true, answer, "equal symbolically")
	}
	return verdict(false, answer, "neither equal text nor symbolically equal")
}

// PrimeNormalize is normalize_answer of math_normalize.py.
func PrimeNormalize(s string) string {
	s = strings.TrimFunc(s, isPythonSpace)
	if m := primeText.FindStringSubmatch(s); m != nil {
		s = strings.TrimFunc(m[1], isPythonSpace)
	}
	if out, err := StripString(s); err == nil {
		return out
	}
	return s
}

// PrimeMathd is grade_answer_mathd.
func PrimeMathd(answer, gold string) bool { return PrimeNormalize(answer) == PrimeNormalize(gold) }

// primeSymbolicText is the second normalisation, _normalize of rllm's source.
func primeSymbolicText(s string) string {
	return primeNormalized(s, strings.NewReplacer(" ", "", "{", "", "}", ""))
}

// primeMathText is the same of verl's, which leaves blanks and braces in.
func primeMathText(s string) string { return primeNormalized(s, strings.NewReplacer()) }

func primeNormalized(s string, without *strings.Replacer) string {
	if m := primeText.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	s = strings.NewReplacer("\\%", "", "\\$", "", "$", "", "%", "").Replace(s)
	s = strings.NewReplacer(" or ", " , ", " and ", " , ", "million", "*10^6", "billion", "*10^9", "trillion",
		"*10^12").Replace(s)
	s = primeUnits.ReplaceAllString(s, "")
	s = primeCircle.ReplaceAllString(s, "")
	if len(s) > 0 && s[0] == '{' && s[len(s)-1] == '}' {
		s = s[1 : len(s)-1]
	}
	s = primeComma.ReplaceAllString(s, "")
	if f, ok := pythonFloat(s); ok && !math.IsInf(f, 0) && math.Abs(f-math.Round(f)) <= 1e-7 {
		s = integerOf(math.RoundToEven(f))
	}
	if strings.ContainsRune(s, '\\') {
		s = primeLatexText(s)
	}
	s = primeMinus.ReplaceAllString(s, "-")
	s = primeMixed.ReplaceAllString(s, "$1+$2")
	s = pythonLower(without.Replace(s))
	if z, ok := primeInteger(s); ok {
		s = z
	}
	return s
}

// primeInteger is _str_is_int and _str_to_int: an integer, perhaps with commas before every third digit or with .0.
func primeInteger(s string) (string, bool) {
	s = primeWithoutCommas(s)
	f, ok := pythonFloat(s)
	if !ok || math.IsInf(f, 0) || math.IsNaN(f) || math.Abs(f-math.Round(f)) > 1e-7 {
		return "", false
	}
	return integerOf(math.Trunc(f)), true
}

// pythonFloat is float(s): digits of any script, and single underscores between digits.
func pythonFloat(s string) (float64, bool) {
	s = strings.Map(func(c rune) rune {
		if c >= 0x80 && unicode.IsDigit(c) {
			return []rune(latex.PlainCharacters(string(c)))[0]
		}
		return c
	}, strings.TrimFunc(s, isPythonSpace))
	if strings.ContainsAny(s, "xXpP") {
		return 0, false // hexadecimal in Go alone
	}
	f, err := strconv.ParseFloat(primeUnderscore.ReplaceAllString(
		primeUnderscore.ReplaceAllString(s, "$1$2"), "$1$2"), 64)
	return f, err == nil || math.IsInf(f, 0)
}

// integerOf writes a float without fraction as Python's int does.
func integerOf(f float64) string {
	z, _ := big.NewFloat(f).Int(nil)
	return z.String()
}

// primeWithoutCommas is _strip_properly_formatted_commas.
func primeWithoutCommas(s string) string {
	for {
		t := primeGroup.ReplaceAllString(s, "$1$2$3")
		if t == s {
			return s
		}
		s = t
	}
}

// primeLatexText is _parse_latex: the text of LaTeX, with the signs that SymPy reads.
func primeLatexText(s string) string {
	s = strings.NewReplacer("\\tfrac", "\\frac", "\\dfrac", "\\frac").Replace(s)
	s = latexToText(strings.ReplaceAll(s, "\\frac", " \\frac"))
	s = strings.NewReplacer("√", "sqrt", "π", "pi", "∞", "inf", "∪", "U", "·", "*", "×", "*").Replace(s)
	return strings.TrimFunc(s, isPythonSpace)
}

// PrimeSymbolic is grade_answer_sympy.
func PrimeSymbolic(answer, gold string) bool {
	return primeElements(primeSymbolicText(answer), primeSymbolicText(gold), primeElement)
}

// primeElements reports whether two normalised texts are equal, or tuples of elements that same accepts one by one.
func primeElements(p, g string, same func(g, p string) bool) bool {
	if g == p {
		return true
	}
	if p == "" || g == "" {
		return false
	}
	gs, ps := primeTuple(g), primeTuple(p)
	if len(gs) != len(ps) || len(gs) > 1 && (g[0] != p[0] || g[len(g)-1] != p[len(p)-1]) {
		return false
	}
	for i := range gs {
		if !same(gs[i], ps[i]) {
			return false
		}
	}
	return true
}

// primeTuple is split_tuple.
func primeTuple(s string) []string {
	s = primeWithoutCommas(s)
	if len(s) > 2 && strings.ContainsRune("([", rune(s[0])) && strings.ContainsRune(")]", rune(s[len(s)-1])) &&
		!strings.ContainsAny(s[1:len(s)-1], "()[]") {
		parts := strings.Split(s[1:len(s)-1], ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	return []string{s}
}

// primeElement compares one element; reduced fractions and integers must match verbatim.
func primeElement(gold, answer string) bool {
	if primeFrac.MatchString(gold) && primeFrac.MatchString(answer) {
		return gold == answer
	}
	_, whole := primeInteger(gold)
	if _, ok := primeInteger(answer); ok != whole {
		return false
	}
	return primeAllowed(gold) && primeAllowed(answer) && grade.EqualExpressions(sympyText(gold), sympyText(answer))
}

// sympyText writes products as SymPy reads them: a name is the product of its letters and digits, unless it is a
// function or π, and i and e are names like others.
func sympyText(s string) string {
	s = primeUnderscore.ReplaceAllString(primeUnderscore.ReplaceAllString(s, "$1$2"), "$1$2") // 1_000 is 1000
	s = sympyName.ReplaceAllStringFunc(s, func(m string) string {
		name := strings.TrimRight(m, "0123456789(")
		switch rest := m[len(name):]; {
		case rest == "(" && (name == "sqrt" || name == "ln"), name == "pi" && rest == "":
			return m
		default:
			return strings.Join(strings.Split(name+rest, ""), "*")
		}
	})
	s = sympyFactor.ReplaceAllString(strings.ReplaceAll(s, "*(", "("), "$1*(")
	s = strings.ReplaceAll(afterBracket.ReplaceAllString(s, ")*$1"), "ϕ", "χ")
	for _, name := range []string{"i", "e"} {
		if name == "e" && sympyExponent.MatchString(s) {
			break
		}
		for _, other := range []string{"w", "y", "z", "u"} {
			if !strings.Contains(s, other) {
				s = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(s, "pi", "π"), name, other), "π", "pi")
				break
			}
		}
	}
	return s
}

var (
	sympyName   = pattern.New(`[a-z]+(?:[0-9]+|\()?`)
	sympyFactor = pattern.New(`([0-9.])\(`)
	// sympyExponent matches the exponent of a number.
	sympyExponent = pattern.New(`[0-9.]e[-+]?[0-9]`)
	afterBracket  = pattern.New(`\)([0-9a-z])`)
)

// primeAllowed is should_allow_eval: no power that might take long, at most two letters. Nor does SymPy read a name
// with a point behind it, bars, a sign outside ASCII or 025, nor subtract a list in square brackets.
func primeAllowed(s string) bool {
	if primeDot.MatchString(s) || primeOctal.MatchString(s) || strings.ContainsAny(s, "|[]") ||
		strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f && (!unicode.IsLetter(r) || r == 'π') }) {
		return false
	}
	if strings.Contains(s, "^{") || strings.Contains(s, "^(") || primeBadPow.MatchString(s) {
		return false
	}
	letters := map[rune]bool{}
	for _, r := range strings.NewReplacer("sqrt", "", "frac", "").Replace(s) {
		if unicode.IsLetter(r) {
			letters[r] = true
		}
	}
	return len(letters) <= 2
}

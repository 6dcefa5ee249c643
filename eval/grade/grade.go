// Package grade decides whether an answer to a mathematics problem is right.
//
// Response finds the final answer in a whole response (package extract); Answer compares an answer with the gold one.
// Package latex parses both sides into the expressions of package formula. They are compared by kind (compare.go):
// numbers and functions by exact arithmetic, canonical forms and values at points (scalar.go), sets of real numbers
// (set.go) after solving inequalities (solve.go), functions by cases, matrices, vectors with their direction,
// units, words.
//
// Words after a value must be a unit or a counted noun (package wording): with any other word the verdict is unsure
// and not right, on either side, because the word may negate the value, add another or continue the calculation. Units
// convert, in several parts too (5 feet 6 inches), and dozen and million multiply. A unit that only one side gives
// counts as implied by the question. Bounds in words (at least 12) are inequalities; numbers in words are numbers.
// "A ≈ B" is A if B is A rounded; it is also B if B is a decimal and A has no finite one. log is the natural
// logarithm or, by convention, to the base 10. Chinese words count as the English ones of their sense. CheckGold says
// which gold answers are not understood.
//
// Every verdict has a reason, says whether it is sure and, if it is "right", what it rests on (basis.go). Answers
// that cannot be parsed or compared give unsure verdicts, which a strict score counts as wrong. Time and memory are
// bounded for any input: the parser by depth and number of nodes, the comparison by a work budget. The bounds count
// operations, not seconds, so a verdict is the same on every machine.
//
// The package does not solve problems: integrals, limits, derivatives and infinite sums equal only the same
// operator on equal operands.
//
// The graders of other programs are in package peer.
package grade

import (
	"slices"
	"strings"
	"unicode"

	"exp/eval/grade/extract"
	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// Verdict is a grader's judgement of one answer.
type Verdict struct {
	Correct bool
	// Sure: the verdict is proven rather than the better guess.
	Sure bool
	// Extracted is the answer as written; empty if none was found.
	Extracted string
	// Reason explains the verdict in a few words.
	Reason string
	// Basis is the ground for a verdict "right".
	Basis Basis
	// Form says whether the whole response has the form that the grader asks for.
	Form Form
	// Share is the part of the full score that a grader of shares gives, from 0 to 1; 0 where Shared is false.
	Share  float64
	Shared bool
}

// Form says whether a response has a form that some graders ask for besides a right answer.
type Form int

const (
	AnyForm   Form = iota // the grader asks for none
	InForm                // it has the form
	OutOfForm             // it has another
)

// Answer compares an answer with the gold one. Either may be between $, in a box, or among words.
func Answer(gold, prediction string) Verdict {
	gold = extract.Unfenced(latex.PlainCharacters(gold))
	prediction = extract.Unfenced(extract.FirstTurn(latex.PlainCharacters(prediction)))
	if len(prediction) <= 200 {
		prediction = withoutQuantifier(wording.FromChinese(prediction))
	}
	switch whole, g := extract.Statement(prediction), goldAnswer(gold); {
	case whole == "":
	case whole == g:
		return yes("the same text").verdict(whole)
	case len(whole) <= latex.MaxAnswer && len(g) <= latex.MaxAnswer && spelled(whole) == spelled(g):
		return yes("the same LaTeX").verdict(whole)
	}
	if r, ok := choices(goldAnswer(gold), extract.Statement(prediction)); ok {
		return r.verdict(extract.Statement(prediction))
	}
	f := extract.FromAnswer(prediction)
	if f.Text == "" {
		return Verdict{Reason: "no answer in the text"}
	}
	v := compare(gold, f)
	if !v.Correct && wordsInSentence.MatchString(prediction) {
		if w := Response(gold, prediction); w.Correct { // The day is Tuesday.
			return w
		}
	}
	return v
}

// wordsInSentence matches a sentence without values.
var wordsInSentence = pattern.New(`^[A-Z][A-Za-z' -]* (?:is|are|was|were|falls) [A-Za-z' -]+\.$`)

// Response finds the final answer in a whole response and compares it with gold.
func Response(gold, response string) Verdict {
	gold = extract.Unfenced(latex.PlainCharacters(gold))
	f := extract.FromResponse(response)
	if f.Text == "" {
		return Verdict{Sure: f.Sure, Reason: f.How}
	}
	return compare(gold, f)
}

func compare(gold string, p extract.Found) Verdict {
	written := p.Text
	p.Text = wording.FromChinese(p.Text)
	if m := congruence.FindStringSubmatch(p.Text); m != nil && !strings.Contains(gold, "mod") {
		p.Text = strings.TrimPrefix(m[1]+m[2], "\\equiv")
	}
	r := compareTexts(goldAnswer(gold), p.Text)
	if m := lastStep.FindStringSubmatch(p.Text); m != nil && !r.equal && !p.Sure &&
		!wording.Unsettled(inBrackets.ReplaceAllString(m[1], "")) && !unsolved.MatchString(m[1]) &&
		!roundsDecimal(m[1], m[2]) && !hasOtherValue(m[1]) &&
		!(strings.Contains(gold, "=") && oneLetter.MatchString(m[3])) {
		if q := compareTexts(goldAnswer(gold), extract.Statement(m[3])); q.equal {
			r = q
		}
	}
	ways := orInText.ReplaceAllString(wayInBrackets.ReplaceAllString(p.Text, "$1 or $2"), " or ")
	if !r.equal && strings.Contains(ways, " or ") {
		if q := inOtherWords(goldAnswer(gold), ways); q.equal {
			r = q
		}
	}
	if !r.equal && p.Also != "" {
		if q := compareTexts(goldAnswer(gold), p.Also); q.equal {
			r = q
		}
	}
	if !p.Sure {
		r.sure = false
		r.why = p.How + "; " + r.why
	}
	return r.verdict(written)
}

// congruence matches a congruence with its modulus, which belongs to the sign and not to the value.
var congruence = pattern.New(`(?s)^(.*(?:\\equiv|≡).*?)[ ,]*(?:\\q?quad *)?` +
	`(?:\\pmod *(?:\{[^{}]*\}|[0-9]+)|\((?:\\text\{)?mod[ }][^()]*\))([ $.]*)$`)

// lastStep matches the last step of a calculation.
var lastStep = pattern.New(`(?s)^(.*)(=|\\approx|≈|\\equiv)(.*)$`)

// oneLetter matches a name: what a - b = c ends in does not name the equation a + b = c.
var oneLetter = pattern.New(`^[ $]*[a-zA-Z][ .$]*$`)

// valueOfLast matches an equation that gives a name a value without letters, and a name alone at the end: the
// "x = 3, x" of "x = 3, x = 4".
var valueOfLast = pattern.New(`(?s)(?:^|[ ,;$])([a-zA-Z](?:_\{?\w+\}?)?) *= *((?:[^a-zA-Z=]|\\[a-zA-Z]+)*?)` +
	`(?:,|;|\band\b|\bor\b)[ $]*([a-zA-Z](?:_\{?\w+\}?)?) *$`)

// hasOtherValue reports whether the text before the last equals sign already gives the name before it a value: the
// equations are a list.
func hasOtherValue(left string) bool {
	m := valueOfLast.FindStringSubmatch(left)
	return m != nil && m[1] == m[3] && strings.Trim(m[2], " $") != ""
}

// inBrackets matches the argument of a name, which may be words: P(\text{not red}).
var inBrackets = pattern.New(`\b[A-Z]\([^()=]*\)`)

// roundsDecimal reports whether a last step only rounds a decimal: 0.54 ≈ 0.5 says 0.54.
func roundsDecimal(left, sign string) bool {
	if sign != "≈" && sign != "\\approx" {
		return false
	}
	left = extract.Statement(left)
	for _, relation := range []string{"=", "\\approx", "≈"} {
		if k := strings.LastIndex(left, relation); k >= 0 {
			left = left[k+len(relation):]
		}
	}
	x, err := latex.Parse(left, true)
	if err != nil {
		return decimal.MatchString(left)
	}
	c := comparer{Budget: formula.NewBudget(formula.MaxWork)}
	return c.isTerminating(withoutUnit(x))
}

// decimal matches a number at the end of words.
var decimal = pattern.New(`[0-9][ $%]*$`)

// orInText matches "or" between two values of a formula.
var orInText = pattern.New(`(?:\\[ ,;]|\\q?quad|\s)*` +
	`\\(?:text|mbox|mathrm|textrm)\{ *or *\}(?:\\[ ,;]|\\q?quad|\s)*`)

// wayInBrackets matches a value and another form of it in brackets: 3/4 (or 0.75), 3/4 (i.e. 75%), twelve (12).
var wayInBrackets = pattern.New(`^([^()]*[^() ]),? +\((?:(?:or|i\.e\.|ie|that is|equivalently)[, ] *)?([^()]+)\)$`)

// unsolved matches the left side of an equation that does not give the value of its name: 2x = 6, x^2 = 9.
var unsolved = pattern.New(`^(?:[^=]*[^a-zA-Z\\])?(?:[0-9]+ ?\\?[a-z]|[a-z]\^\{?[0-9]+\}?|\|[a-z]\|) *$`)

// inOtherWords compares an answer that says one value in several ways: 3/8 or 37.5%. All must be equal to the first,
// and one to the gold answer.
func inOtherWords(gold, prediction string) result {
	ways := strings.Split(prediction, " or ")
	r := no("")
	for _, way := range ways {
		if way = extract.Statement(way); way == "" {
			return no("")
		}
		if q := compareTexts(gold, way); q.equal && !r.equal {
			r = q
		}
	}
	for _, way := range ways[1:] {
		q := compareTexts(extract.Statement(ways[0]), extract.Statement(way))
		if !q.equal {
			return no("")
		}
		r = r.with(q)
	}
	return r
}

// goldAnswer strips a box or delimiters from the gold answer. It does not search for the answer as for a
// response.
func goldAnswer(gold string) string {
	if f, ok := extract.LastBox(gold); ok {
		gold = f
	}
	return wording.FromChinese(extract.Statement(gold))
}

// compareTexts compares two answers without surroundings.
func compareTexts(gold, prediction string) result {
	switch {
	case gold == "":
		return unsure("the gold answer is empty")
	case prediction == "":
		return no("no answer")
	case gold == prediction:
		return yes("the same text")
	case len(gold) > latex.MaxAnswer || len(prediction) > latex.MaxAnswer:
		return unsure("too long to be compared, and not the same text")
	}
	if r, ok := choices(gold, prediction); ok {
		return r
	}
	prediction = strings.TrimSpace(strings.TrimPrefix(prediction, `\displaystyle`))
	for _, compared := range []func(gold, prediction string) (result, bool){clocks, integerSets, ordinals} {
		if r, ok := compared(gold, prediction); ok {
			return r
		}
	}
	gold, prediction = permutationsInWords(gold), permutationsInWords(prediction)
	if strings.Contains(gold, "mod") {
		gold, prediction = withModulus(gold), withModulus(prediction)
	}
	if reordered(gold, prediction) {
		return no("the same letters in another order")
	}
	gold, prediction = withoutDerivative(withoutOrdinal(gold), withoutOrdinal(prediction))
	gold, prediction = pairsInWords(withoutQuantifier(gold)), pairsInWords(withoutQuantifier(prediction))
	if r, ok := sameNames(wording.Bare(gold), wording.Bare(prediction)); ok {
		return r
	}
	prediction = valueInText.ReplaceAllString(prediction, "$1")
	gold, prediction = plainUnits(gold, prediction)
	prediction = unitsInText(gold, prediction)
	if strings.Contains(gold, "'") && feetOrInches.MatchString(prediction) {
		gold = feetAndInches.ReplaceAllString(gold, `$1\text{ feet }$2\text{ inches}`)
	}
	if strings.Contains(gold, "£") || strings.Contains(gold, `\pounds`) {
		prediction = poundsInWords.ReplaceAllString(prediction, "$1 sterling")
	}
	b := formula.NewBudget(formula.MaxWork)
	r := compareParsed(gold, prediction, true, &b)
	if !r.equal && (strings.Contains(gold, ",") || strings.Contains(prediction, ",")) {
		// 100,200 may be one number or two, but the same on both sides.
		if q := compareParsed(gold, prediction, false, &b); q.equal {
			return q
		}
	}
	if r.equal {
		return r
	}
	bareGold, bare := wording.Bare(gold), wording.Bare(prediction)
	if bareGold == bare && hasWord(bare) && !strings.Contains(bare, "\\") { // May 12
		return yes("the same words")
	}
	if a, b := wording.Normal(bareGold), wording.Normal(bare); a != b && hasWord(bareGold) && winner(a) == winner(b) {
		return yes("the same winner").by(Convention)
	}
	if both := bareGold + " " + bare; sameWords(wording.Normal(bareGold), wording.Normal(bare)) &&
		!strings.ContainsAny(hyphen.ReplaceAllString(both, "$1 "), "0123456789\\+-*/^<>=|!%_'[]") && hasWord(both) {
		return yes("the same words")
	}
	if spelled(gold) == spelled(prediction) {
		return yes("the same LaTeX")
	}
	return r
}

// withoutDerivative takes the right side of an equation dy/dx = 3x^2 or (f∘g)(x) = 3x, if only one answer is such.
func withoutDerivative(gold, prediction string) (string, string) {
	if both := gold + prediction; !strings.Contains(both, "d") && !strings.Contains(both, ")(") &&
		!strings.Contains(both, "circ") && !strings.Contains(both, "∘") && !strings.Contains(both, "partial") {
		return gold, prediction
	}
	g, p := derivative.FindStringSubmatch(gold), derivative.FindStringSubmatch(prediction)
	switch {
	case g == nil && p != nil:
		prediction = p[1]
	case g != nil && p == nil:
		gold = g[1]
	}
	return gold, prediction
}

// derivative matches an equation that names its right side a derivative: dy/dx = 3x^2.
var derivative = pattern.New(`^(?:\\[dt]?frac\{\\partial(?:\^?[0-9])? ?[a-zA-Z]?\}\{\\partial ?[a-z](?:\^?[0-9])?\}|` +
	`\\[dt]?frac\{d(?:\^?[0-9])?[a-z]?\}\{d[a-z](?:\^?[0-9])?\}|d[a-z]?/d[a-z]|` +
	`\(? ?[fgh] ?(?:\\circ|∘|[-+]) ?[fgh] ?\)? ?\([a-z]\))[^=]*=([^=]+)$`)

// hyphen matches the hyphen of one-to-one; between single letters it is a minus.
var hyphen = pattern.New(`([A-Za-z]{2})-\b`)

// hasWord reports whether some run of letters is a word rather than variables.
func hasWord(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }),
		func(w string) bool { return len(w) > 2 })
}

func compareParsed(gold, prediction string, thousands bool, b *formula.Budget) result {
	g, err := latex.Parse(gold, thousands)
	if err != nil {
		return unsure("the gold answer is not understood: " + err.Error())
	}
	p, err := latex.Parse(prediction, thousands)
	if err != nil {
		return unsure("the answer is not understood: " + err.Error())
	}
	if g.Op == formula.Base && strings.ContainsAny(g.Name, "abcdef") &&
		strings.EqualFold(g.Name, wording.Bare(prediction)) {
		return yes("equal digits; only one side names the base").by(Convention)
	}
	c := comparer{Budget: *b}
	r := c.same(g, inGoldNotation(g, p, prediction))
	*b = c.Budget
	return r
}

// EqualExpressions reports whether two expressions in plain notation are surely equal: no units,
// conventions, rounding or lists.
func EqualExpressions(a, b string) bool {
	if len(a) > latex.MaxAnswer || len(b) > latex.MaxAnswer {
		return false
	}
	x, err := latex.ParseFormula(a, false)
	y, err2 := latex.ParseFormula(b, false)
	if err != nil || err2 != nil || !x.IsScalar() || !y.IsScalar() || x.Op == formula.Unit || y.Op == formula.Unit {
		return false
	}
	c := comparer{Budget: formula.NewBudget(formula.MaxWork)}
	r := c.values(x, y)
	return r.equal && r.sure
}

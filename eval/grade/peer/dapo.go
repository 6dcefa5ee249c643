package peer

import (
	"strings"
	"unicode"

	"exp/eval/grade"
	"exp/eval/grade/pattern"
)

// invalid is the answer that verl's scorer assigns to a response without one. It matches a gold answer with
// that text.
const invalid = "[INVALID]"

var (
	dapoAnswer  = pattern.New(`(?i)Answer[\s\v\x1c-\x1f\x85\p{Z}]*:[\s\v\x1c-\x1f\x85\p{Z}]*([^\n]+)`)
	dapoDollars = pattern.New(`(.*?)(\$)(.*?)(\$)(.*)`)
	dapoText    = pattern.New(`(\\text\{)(.*?)(\})`)
	dapoBold    = pattern.New(`(\\textbf\{)(.*?)(\})`)
	dapoOver    = pattern.New(`(\\overline\{)(.*?)(\})`)
	dapoBoxed   = pattern.New(`(\\boxed\{)(.*)(\})`)
	dapoFrac    = pattern.New(`(frac)([^{])(.)`)
	dapoSqrt    = pattern.New(`(sqrt)([^{])`)
)

// dapoSubstitutions, then dapoRemoved, are applied in order.
var dapoSubstitutions = [][2]string{
	{"an ", ""}, {"a ", ""}, {".$", "$"}, {"\\$", ""}, {`\ `, ""}, {" ", ""}, {"mbox", "text"},
	{",\\text{and}", ","}, {"\\text{and}", ","}, {"\\text{m}", "\\text{}"},
}

var dapoRemoved = []string{
	"square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", "\\ldots", "sue", "points",
	"feet", "minutes", "digits", "cents", "degrees", "cm", "gm",
	"pounds", "meters", "meals", "edges", "students", "childrentickets", "multiples", "\\text{s}", "\\text{.}",
	"\\text{\ns}", "\\text{}^2", "\\text{}^3", "\\text{\n}", "\\text{}",
	`\mathrm{th}`, `^\circ`, `^{\circ}`, `\;`, `,\!`, "{,}", `"`, "\\dots",
}

// NormalizeDAPO is normalize_final_answer of verl's math_dapo.py.
func NormalizeDAPO(s string) string {
	s = s[strings.LastIndexByte(s, '=')+1:]
	for _, r := range dapoSubstitutions {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	for _, r := range dapoRemoved {
		s = strings.ReplaceAll(s, r, "")
	}
	s = dapoDollars.ReplaceAllString(s, "$$${3}$$")
	s = dapoText.ReplaceAllString(s, "$2")
	s = dapoBold.ReplaceAllString(s, "$2")
	s = dapoOver.ReplaceAllString(s, "$2")
	s = dapoBoxed.ReplaceAllString(s, "$2")
	s = dapoFrac.ReplaceAllString(s, "frac{$2}{$3}")
	s = dapoSqrt.ReplaceAllString(s, "sqrt{$2}")
	s = strings.ReplaceAll(s, "$", "")
	if plain := strings.ReplaceAll(s, ",", ""); isPythonDigits(plain) {
		s = plain
	}
	return strings.TrimFunc(s, isPythonSpace)
}

// otherDigits are the characters of Unicode's Numeric_Type=Digit: superscripts, circled digits and others.
var otherDigits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb2, 0xb3, 1}, {0xb9, 0xb9, 1}, {0x1369, 0x1371, 1}, {0x19da, 0x19da, 1}, {0x2070, 0x2070, 1},
		{0x2074, 0x2079, 1}, {0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247c, 1}, {0x2488, 0x2490, 1},
		{0x24ea, 0x24ea, 1}, {0x24f5, 0x24fd, 1}, {0x24ff, 0x24ff, 1}, {0x2776, 0x277e, 1}, {0x2780, 0x2788, 1},
		{0x278a, 0x2792, 1},
	},
	R32: []unicode.Range32{
		{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1}, {0x1f100, 0x1f10a, 1},
	},
}

// isPythonDigits is str.isdigit: digits of any script, including superscripts.
func isPythonDigits(s string) bool {
	for _, r := range s {
		if !unicode.IsDigit(r) && !unicode.Is(otherDigits, r) {
			return false
		}
	}
	return s != ""
}

// isPythonSpace is str.isspace for one character.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// MathDAPO is compute_score of verl's math_dapo.py. Without an "Answer:" it compares the last box of the
// last 100 characters verbatim.
func MathDAPO(gold, response string) grade.Verdict {
	response = lastRunes(response, 300)
	v := mathDAPO(gold, response)
	if v.Extracted != invalid {
		return v
	}
	if box, ok := dapoBox(gold, response); ok {
		return box
	}
	return v
}

// MathDAPOOriginal is the scorer as it was released with FlowRL.
func MathDAPOOriginal(gold, response string) grade.Verdict {
	return mathDAPO(gold, lastRunes(response, 300))
}

func mathDAPO(gold, response string) grade.Verdict {
	pred := invalid
	if all := dapoAnswer.FindAllStringSubmatch(response, -1); len(all) > 0 {
		pred = all[len(all)-1][1]
	}
	pred = NormalizeDAPO(pred)
	correct := pred == NormalizeDAPO(gold)
	return verdict(correct, pred, equalText(correct))
}

// MathDAPOBox is the strict-box mode of the scorer.
func MathDAPOBox(gold, response string) grade.Verdict {
	if v, ok := dapoBox(gold, response); ok {
		return v
	}
	return verdict(false, "", "no box in the last 100 characters")
}

// dapoBox reports whether there is a box at all; an empty one is an answer too.
func dapoBox(gold, response string) (grade.Verdict, bool) {
	box, ok := lastBoxed(lastRunes(response, 100), false)
	if !ok || !strings.HasPrefix(box, "\\boxed{") {
		return grade.Verdict{}, false
	}
	pred := strings.TrimSuffix(strings.TrimPrefix(box, "\\boxed{"), "}")
	return verdict(pred == gold, pred, equalText(pred == gold)), true
}

// lastBoxed is last_boxed_only_string: the last \boxed with balanced braces; with fbox set, \fbox in a text
// without \boxed. A backslash does not escape a brace.
func lastBoxed(s string, fbox bool) (string, bool) {
	k := strings.LastIndex(s, "\\boxed")
	if !fbox {
		k = strings.LastIndex(s, "\\boxed{")
	} else if k < 0 {
		k = strings.LastIndex(s, "\\fbox")
	}
	if k < 0 {
		return "", false
	}
	depth := 0
	for i := k; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[k : i+1], true
			}
		}
	}
	return "", false
}

package peer

import (
	"errors"
	"math/big"
	"strings"

	"exp/eval/grade"
)

// MathReward is compute_score of verl's math_reward.py (after hendrycks/math): the last
// box, compared by is_equiv.
func MathReward(gold, response string) grade.Verdict {
	box, ok := LastBoxedOnly(response)
	if !ok {
		return verdict(false, "", "no box")
	}
	answer, err := unbox(box)
	if err != nil {
		return verdict(false, box, err.Error())
	}
	correct := IsEquiv(answer, gold)
	return verdict(correct, answer, equalText(correct))
}

// LastBoxedOnly is last_boxed_only_string: if the text has "\boxed ", it takes what follows the last one,
// up to a $.
func LastBoxedOnly(s string) (string, bool) {
	if k := strings.LastIndex(s, "\\boxed "); k >= 0 {
		rest, _, _ := strings.Cut(s[k+len("\\boxed "):], "$")
		return "\\boxed " + rest, true
	}
	return lastBoxed(s, true)
}

func unbox(s string) (string, error) {
	if rest, ok := strings.CutPrefix(s, "\\boxed "); ok {
		return rest, nil
	}
	rest, ok := strings.CutPrefix(s, "\\boxed{")
	if !ok || !strings.HasSuffix(rest, "}") {
		return "", errors.New("a box that is not \\boxed{…}")
	}
	return strings.TrimSuffix(rest, "}"), nil
}

// IsEquiv is is_equiv: equal after normalisation, or equal verbatim if either normalisation fails.
func IsEquiv(a, b string) bool {
	x, err := StripString(a)
	y, err2 := StripString(b)
	if err != nil || err2 != nil {
		return a == b
	}
	return x == y
}

var (
	errUnits = errors.New("two units")
	errIndex = errors.New("a command at the end")
)

// StripString is strip_string of math_reward.py. Its errors stand for the source's exceptions.
func StripString(s string) (string, error) {
	for _, r := range [][2]string{
		{"\n", ""}, {"\\!", ""}, {"\\\\", "\\"}, {"tfrac", "frac"}, {"dfrac", "frac"}, {"\\left", ""},
		{"\\right", ""},
		{"^{\\circ}", ""}, {"^\\circ", ""}, {"\\$", ""},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	if parts := strings.Split(s, "\\text{ "); len(parts) > 2 {
		return "", errUnits
	} else if len(parts) == 2 {
		s = parts[0]
	}
	for _, r := range [][2]string{{"\\\\%", ""}, {"\\%", ""}, {" .", " 0."}, {"{.", "{0."}} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	if s == "" {
		return s, nil
	}
	if s[0] == '.' {
		s = "0" + s
	}
	if parts := strings.Split(s, "="); len(parts) == 2 && len([]rune(parts[0])) <= 2 {
		s = parts[1]
	}
	s, err := braceSqrt(s)
	if err != nil {
		return "", err
	}
	s = strings.ReplaceAll(s, " ", "")
	if s, err = braceFrac(s); err != nil {
		return "", err
	}
	if s == "0.5" {
		s = "\\frac{1}{2}"
	}
	return slashFrac(s), nil
}

// braceSqrt is fix_sqrt: \sqrt3 becomes \sqrt{3}.
func braceSqrt(s string) (string, error) {
	parts := strings.Split(s, "\\sqrt")
	var out strings.Builder // the parts may be many
	out.WriteString(parts[0])
	for _, p := range parts[1:] {
		r := []rune(p)
		switch {
		case len(r) == 0:
			return "", errIndex
		case r[0] == '{':
			out.WriteString("\\sqrt" + p)
		default:
			out.WriteString("\\sqrt{" + string(r[0]) + "}" + string(r[1:]))
		}
	}
	return out.String(), nil
}

// braceFrac is fix_fracs: \frac12 becomes \frac{1}{2}.
func braceFrac(s string) (string, error) {
	parts := strings.Split(s, "\\frac")
	var out strings.Builder // the parts may be many
	out.WriteString(parts[0])
	for _, p := range parts[1:] {
		r := []rune(p)
		switch {
		case len(r) == 0:
			return "", errIndex
		case r[0] == '{':
			out.WriteString("\\frac" + p)
		case len(r) < 2:
			return s, nil
		case r[1] == '{':
			out.WriteString("\\frac{" + string(r[0]) + "}" + string(r[1:]))
		default:
			out.WriteString("\\frac{" + string(r[0]) + "}{" + string(r[1]) + "}" + string(r[2:]))
		}
	}
	return out.String(), nil
}

// slashFrac is fix_a_slash_b: 3/4 becomes \frac{3}{4}, for integers in Python's notation.
func slashFrac(s string) string {
	parts := strings.Split(s, "/")
	if len(parts) != 2 || !isPythonInt(parts[0]) || !isPythonInt(parts[1]) {
		return s
	}
	return "\\frac{" + parts[0] + "}{" + parts[1] + "}"
}

// isPythonInt reports whether str(int(s)) == s.
func isPythonInt(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	z, ok := new(big.Int).SetString(s, 10)
	return ok && len(s) < 4300 && z.String() == s
}

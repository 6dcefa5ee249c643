package extract

import (
	"math"
	"strconv"
	"strings"
)

// rounding matches a decimal and the same rounded: 12.46 cm ≈ 12.5 cm, 12.46 (about 12.5).
var rounding = lazy(`(?:^|[ $])([-−]?[0-9]+\.[0-9]+)((?: [a-z]+)?,?(?: which is| or)?) ?` +
	`\(?(?:≈|\\approx|approximately|about|roughly) ?([-−]?[0-9]+(?:\.[0-9]+)?)(?: [a-z]+)?\)?([ $.]*)$`)

// about matches what an exact value is about: 2/3, or about 66.7%; $\sqrt{5}$ cm, approximately $2.24$ cm.
var about = lazy(`^(.*[0-9}$)])(?: [a-z]+)?(?:,? (?:or|which is|i\.e\.,?)|,) (?:approximately|about|roughly|around) ` +
	`\$?([0-9]+\.[0-9]+(?:\\?%)?)\$?(?: [a-z]+)?([ .]*)$`)

// roundedAside writes it as a rounding.
func roundedAside(s string) string {
	m := about.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	if formula, ok := strings.CutSuffix(m[1], "$"); ok {
		return formula + ` \approx ` + m[2] + "$" + m[3]
	}
	return m[1] + " ≈ " + m[2] + m[3]
}

// withoutRounding drops what a decimal at the end of a text is rounded to, which is not another answer.
func withoutRounding(s string) string {
	s = roundedAside(s)
	m := rounding.FindStringSubmatchIndex(s)
	if m == nil {
		return s
	}
	value, rounded := s[m[2]:m[3]], s[m[6]:m[7]]
	a, err := strconv.ParseFloat(strings.Replace(value, "−", "-", 1), 64)
	b, err2 := strconv.ParseFloat(strings.Replace(rounded, "−", "-", 1), 64)
	_, places, _ := strings.Cut(rounded, ".")
	if err != nil || err2 != nil || math.Abs(a-b) > math.Pow10(-len(places)) {
		return s
	}
	unit := strings.TrimSuffix(strings.TrimSuffix(s[m[4]:m[5]], " which is"), " or")
	return s[:m[3]] + strings.TrimSuffix(unit, ",") + s[m[8]:]
}

package latex

import (
	"strings"

	"exp/eval/grade/pattern"
)

// AnyName is the variable of a bound that names none: "at least 7" is AnyName ≥ 7.
const AnyName = "▢"

// boundWords are the wordings of inequality signs.
var boundWords = []struct{ words, sign string }{
	{"greater than or equal to|more than or equal to|no less than|not less than|no fewer than|no smaller than|" +
		"at least|at minimum", `\ge`},
	{"less than or equal to|fewer than or equal to|no more than|not more than|no greater than|not greater than|" +
		"at most|at maximum|up to", `\le`},
	{"greater than|more than|larger than|bigger than|strictly more than", `>`},
	{"less than|fewer than|smaller than", `<`},
}

var (
	boundPatterns = makeBoundPatterns()
	orMore        = pattern.New(`(?i)^(.*[0-9A-Za-z)}])(?:\\text\{)? +or ` +
		`(more|greater|above|higher|less|fewer|below|lower)\}?$`)
	overOrUnder = pattern.New(`(?i)^(over|above|under|below) +(-?[0-9\\$])`)
)

type boundPattern struct {
	pattern *pattern.Pattern
	sign    string
}

func makeBoundPatterns() []boundPattern {
	var list []boundPattern
	for _, b := range boundWords {
		verbs := `(?:\b(?:is|are|be|was) +(?:strictly +)?)?(?:` + b.words + `)`
		list = append(list,
			boundPattern{pattern.New(`(?i)\\text(?:rm|bf)?\{ *` + verbs + ` *\}`), " " + b.sign + " "},
			boundPattern{pattern.New(`(?i)(^|[ {])` + verbs + `( |\}|$)`), "${1} " + b.sign + " ${2}"})
	}
	return list
}

// boundsAsSigns rewrites bounds in words as inequality signs: at least 7, 7 or more.
func boundsAsSigns(s string) string {
	if len(s) > 200 || !strings.Contains(s, " ") {
		return s
	}
	low := strings.ToLower(s)
	if strings.Contains(low, "than") || strings.Contains(low, "at ") || strings.Contains(low, "up to") {
		for _, p := range boundPatterns {
			s = p.pattern.ReplaceAllString(s, p.sign)
		}
	}
	if !strings.Contains(low, "or ") && !strings.HasPrefix(low, "over") && !strings.HasPrefix(low, "above") &&
		!strings.HasPrefix(low, "under") && !strings.HasPrefix(low, "below") {
		return s
	}
	if m := orMore.FindStringSubmatch(s); m != nil {
		sign := `\ge `
		if w := strings.ToLower(m[2]); w == "less" || w == "fewer" || w == "below" || w == "lower" {
			sign = `\le `
		}
		return sign + m[1]
	}
	if m := overOrUnder.FindStringSubmatch(s); m != nil {
		sign := "> "
		if strings.EqualFold(m[1], "under") || strings.EqualFold(m[1], "below") {
			sign = "< "
		}
		return sign + s[len(m[1]):]
	}
	return s
}

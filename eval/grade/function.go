package grade

import (
	"slices"
	"strings"

	"exp/eval/grade/formula"
	"exp/eval/grade/pattern"
)

// Answers that are functions, and pairs in words.

// quantified matches a function and the words that say for which arguments it holds: f(x) = x for all real x.
var quantified = pattern.New(`^(\$?[a-zA-Z](?:_\{?|\()([a-z])(?:\)|\}?) ?=.*?)(?:[,;~ $(]|\\[ ,;]|\\q?quad)*` +
	`(?:\\forall *|(?:\\text\{ *,? *)?for (?:all|any|every|each)(?: (?:real|positive|non-?negative|natural|rational))?` +
	`(?: numbers?| integers?| reals?)? *\}? *\$?)([a-z])\$?` +
	`(?: *(?:\\in|∈) *(?:\\mathbb ?\{?[RQZN]\}?|[ℝℚℤℕ])(?:[\^_]\{?(?:\+|> ?0|\\ge 0|\\geq 0)\}?)?)?[.) $]*$`)

// declared matches a function and the words that call a letter of it a constant: f(x) = cx for some constant c.
var declared = pattern.New(`^(\$?[a-zA-Z]\([a-z]\) ?=.*?)(?:[,;~ $(]|\\[ ,;]|\\q?quad)*(?:\\text\{ *,? *)?` +
	`(?:for (?:some|any|every|all)|where|with)(?: an?| any| some)?(?:(?: arbitrary| real| fixed)* ` +
	`(?:constant|number)s? *\}? *\$?([a-zA-Z])\$?|` +
	` *\}? *\$?([a-zA-Z])\$?(?: *\\text\{)? *(?:is (?:an? |any )?(?:arbitrary |real |fixed )*(?:constant|number) *\}?|` +
	`(?:\\in|∈) *(?:\\mathbb ?\{?[RQ]\}?|[ℝℚ])))[.) $]*$`)

// withoutQuantifier drops the words after a function that hold for all its arguments, or name a constant.
func withoutQuantifier(s string) string {
	if !strings.Contains(s, "=") {
		return s
	}
	if m := declared.FindStringSubmatch(s); m != nil {
		if _, value, _ := strings.Cut(m[1], "="); strings.Contains(value, m[2]+m[3]) {
			s = m[1]
		}
	}
	if m := quantified.FindStringSubmatch(s); m != nil && m[2] == m[3] {
		s = m[1]
	}
	return s
}

// constantNames are letters for a constant that an answer chooses.
var constantNames = []string{"c", "k", "C", "K"}

// sameConstantName gives the constant in p's function the name it has in g's: f(x) = kx answers f(x) = cx.
func (c *comparer) sameConstantName(name, g, p *formula.Expr) result {
	var given []string
	other := append([]string{"a", "b", "m", "lambda", "alpha"}, constantNames...)
	switch {
	case isApplication(name):
		given = arguments(name)
	case name.Op == formula.Sym && slices.Contains(unknowns, name.Name): // y = Ce^x
		given, other = arguable, ofIntegration
		if !slices.ContainsFunc(formula.Variables(g), func(v string) bool { return slices.Contains(given, v) }) {
			return no("")
		}
	default:
		return no("")
	}
	if q := c.sameConstantPair(given, g, p); q.equal {
		return q
	}
	rest := func(x *formula.Expr) string {
		var list []string
		for _, v := range formula.Variables(x) {
			if !slices.Contains(given, v) {
				list = append(list, v)
			}
		}
		if len(list) != 1 {
			return ""
		}
		return list[0]
	}
	a, b := rest(g), rest(p)
	if !slices.Contains(other, a) || !slices.Contains(other, b) ||
		!slices.Contains(constantNames, a) && !slices.Contains(constantNames, b) ||
		name.Op == formula.Sym && a[0] != 'C' && b[0] != 'C' {
		return no("")
	}
	r := c.same(g, formula.Rename(p, b, a))
	r.why += "; the constant has another name"
	return r.by(Convention)
}

var (
	// unknowns are names of functions that are written without their argument, arguable names of arguments.
	unknowns = []string{"y", "u", "v", "w", "z", "x"}
	arguable = []string{"x", "t"}
	// ofIntegration are the names of a constant of integration.
	ofIntegration = []string{"C", "K", "k", "c", "A", "C_1", "c_1"}
	// constantPairs are the names of two constants of integration. Only those with subscripts are surely such.
	constantPairs = [][]string{{"C_1", "C_2"}, {"c_1", "c_2"}, {"A", "B"}, {"C", "D"}}
)

// sameConstantPair gives the two constants of integration in p the names that they have in g, in either order.
func (c *comparer) sameConstantPair(given []string, g, p *formula.Expr) result {
	pair := func(x *formula.Expr) []string {
		return slices.DeleteFunc(formula.Variables(x), func(v string) bool { return slices.Contains(given, v) })
	}
	a, b := pair(g), pair(p)
	isPair := func(names []string) bool {
		return slices.ContainsFunc(constantPairs, func(q []string) bool { return slices.Equal(q, names) })
	}
	if !isPair(a) || !isPair(b) || len(a[0]) == 1 && len(b[0]) == 1 {
		return no("")
	}
	for _, to := range [][]string{{a[0], a[1]}, {a[1], a[0]}} {
		if r := c.same(g, renamed(p, b, to)); r.equal {
			r.why += "; the constants have other names"
			return r.by(Convention)
		}
	}
	return no("")
}

var (
	eitherPair = pattern.New(`(?: |\\[ ,;]|\\q?quad)*(?:\\(?:text|mbox)\{ *or *\}|\bor\b|;)(?: |\\[ ,;]|\\q?quad)*`)
	bothValues = pattern.New(`(?: |\\[ ,;]|\\q?quad)*(?:\\(?:text|mbox)\{ *and *\}|\band\b)(?: |\\[ ,;]|\\q?quad)*`)
	namedValue = pattern.New(`^ *([a-z]) *= *([^=,]+?) *$`)
)

// pairsInWords writes x = 1, y = 2 or x = 2, y = 1 as (1, 2), (2, 1), in the order of the names.
func pairsInWords(s string) string {
	ways := eitherPair.Split(s, -1)
	if len(ways) < 2 || strings.Count(s, "=") < 4 || len(s) > 500 {
		return s
	}
	var tuples []string
	names := ""
	for _, way := range ways {
		way = strings.Trim(bothValues.ReplaceAllString(way, ","), " ()$.")
		values := map[string]string{}
		var order []string
		for _, part := range strings.Split(way, ",") {
			m := namedValue.FindStringSubmatch(part)
			if m == nil || values[m[1]] != "" {
				return s
			}
			values[m[1]] = m[2]
			order = append(order, m[1])
		}
		slices.Sort(order)
		if joined := strings.Join(order, ""); len(order) < 2 || names != "" && names != joined {
			return s
		} else {
			names = joined
		}
		for i, name := range order {
			order[i] = values[name]
		}
		tuples = append(tuples, "("+strings.Join(order, ", ")+")")
	}
	return strings.Join(tuples, ", ")
}

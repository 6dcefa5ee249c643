package extract

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"exp/eval/grade/wording"
)

// sentenceValue returns the value of the last clause that has one, with its unit. What follows in the sentence
// does not matter, unless it goes on the value: "12 squared", "12 or 13".
func sentenceValue(s string) string {
	if k := strings.LastIndex(s, "("); k > 0 && strings.HasSuffix(strings.TrimRight(s, ". "), ")") &&
		len(strings.Fields(s[k:])) > 2 { // an aside
		s = strings.TrimSpace(s[:k])
	}
	ends := clauseEnds.FindAllStringIndex(masked(s), -1)
	name := ""
	for i := len(ends); i >= 0; i-- {
		from, to := 0, len(s)
		if i > 0 {
			from = ends[i-1][1]
		}
		if i < len(ends) {
			to = ends[i][0]
		}
		clause := s[from:to]
		t, decided := clauseValue(clause)
		if decided && !isName(t) && (i == 0 || !subordinate.MatchString(clause)) {
			return t
		}
		if name == "" {
			name = t
		}
	}
	return name
}

// subordinate matches the start of a clause that says where or why rather than what.
var subordinate = regexp.MustCompile(`(?i)^(attained|achieved|reached|obtained|occurring|when|where|independent) `)

// span is a value in a clause.
type span struct {
	start, end int
	text       string
	name       bool // a variable or points; the value is elsewhere
}

// clauseValue returns the value of a clause; decided is false if the clause has none or says what it is not. An
// empty value that is decided is left open.
func clauseValue(clause string) (value string, decided bool) {
	v, ok := choiceOfSpan(clause, spans(clause))
	if !ok {
		return "", false
	}
	before, after := wording.Lower(clause[:v.start]), wording.Lower(strings.Trim(clause[v.end:], " .*!"))
	if strings.Contains(" "+before, " not ") || strings.Contains(before, "n't ") {
		return "", false
	}
	next := strings.Fields(after)
	switch {
	case partOfPhrase(before), doubted(before), wording.Unsettled(lastWords(before, 4)), len(next) > 0 &&
		wording.Unsettled(next[0]),
		len(next) > 1 && (next[0] == "is" || next[0] == "are") && slices.Contains(wording.Negations, next[1]):
		return "", true
	case len(next) > 1 && (next[0] == "to" || next[0] == "and") && strings.ContainsAny(next[1], "0123456789$"):
		return "", true
	}
	value = Statement(v.text)
	for n := min(len(next), 5); n > 0; n-- {
		if unit := strings.Join(next[:n], " "); wording.QuantityOf(unit).Known {
			value += "\\text{ " + unit + "}"
			return largerUnit(clause[:v.start], unit) + value + smallerUnit(next[n:], unit), true
		}
	}
	return value, true
}

// partOfPhrase reports whether the words between the last verb and a value make something else of it: a third of
// 8, a prime below 8, a number with 8 digits.
func partOfPhrase(before string) bool {
	const most = 6 // words of such a phrase; a longer start without a verb is a sentence of another kind
	from := strings.LastIndexByte(before, '=') + 1
	for _, w := range verbs {
		if k := strings.LastIndex(before+" ", w); k >= 0 {
			from = max(from, k+len(w)-1)
		}
	}
	words := strings.FieldsFunc(before[min(from, len(before)):], func(r rune) bool {
		return (r < 'a' || r > 'z') && r < 0x80
	})
	if from == 0 && len(words) > most {
		return false
	}
	for i, w := range words {
		head := ""
		if i > 0 {
			head = words[i-1]
		}
		if heads, ok := prepositions[w]; ok && !slices.Contains(heads, head) {
			return true
		}
	}
	return false
}

// insidePhrase reports whether the words around the last place of a value in a clause make something else of it: a
// third of 8, an 8-digit number.
func insidePhrase(clause, value string) bool {
	k := strings.LastIndex(clause, value)
	if k < 0 {
		return false
	}
	after := clause[k+len(value):]
	before := wording.Lower(clause[:k])
	return partOfPhrase(before) || doubted(before) || len(after) > 1 && after[0] == '-' && wording.IsLetter(after[1])
}

// prepositions lists, for each, the words before it that let the value after it be the clause's: a total of 8, equal
// to 8, given by 8.
var prepositions = map[string][]string{
	"of": {"total", "value", "values", "area", "volume", "length", "width", "height", "perimeter", "circumference",
		"distance", "cost", "price", "maximum", "minimum", "speed", "rate", "probability", "average", "score",
		"radius", "diameter", "profit", "amount", "weight", "mass", "age", "measure", "time", "temperature",
		"answer", "result", "instead", "form", "consists", "set", "pair", "pairs", "salary", "balance", "slope",
		"angle", "range"},
	"to": {"equal", "equals", "equivalent", "simplifies", "simplify", "reduces", "up", "comes", "amounts", "evaluates",
		"rounded", "leads", "congruent", "according", "down", "converges", "out", "sums", "adds"},
	"by":    {"given", "represented", "denoted", "expressed", "described"},
	"below": nil, "above": nil, "under": nil, "over": nil, "with": nil, "base": nil, "than": nil,
	"half": nil, "twice": nil, "double": nil, "thrice": nil, "root": nil, "logarithm": nil, "digits": nil,
}

// larger matches the 5 feet of "5 feet 3 inches".
var larger = regexp.MustCompile(`([0-9][0-9.,]*) ?([A-Za-z]+),?(?: and)? $`)

// largerUnit returns the larger part of a value in two units that stands before the smaller.
func largerUnit(before, unit string) string {
	m := larger.FindStringSubmatch(before)
	if m == nil {
		return ""
	}
	big, small := wording.QuantityOf(m[2]), wording.QuantityOf(unit)
	if !big.Known || !big.Measured || !small.Measured || big.Dim != small.Dim || big.Factor.Cmp(small.Factor) <= 0 {
		return ""
	}
	return m[1] + "\\text{ " + m[2] + "}"
}

// smallerUnit returns the smaller part of a value in two units, if it begins the words after the larger.
func smallerUnit(next []string, unit string) string {
	if len(next) > 0 && next[0] == "and" {
		next = next[1:]
	}
	if len(next) < 2 || !wording.AllDigits(next[0]) {
		return ""
	}
	big, small := wording.QuantityOf(unit), wording.QuantityOf(next[1])
	if !big.Measured || !small.Measured || big.Dim != small.Dim || big.Factor.Cmp(small.Factor) <= 0 {
		return ""
	}
	return next[0] + "\\text{ " + next[1] + "}"
}

// verbs stand before the value of a clause.
var verbs = []string{" is ", " are ", " equals ", " = ", " be ", " gives ", " get ", " have "}

// choiceOfSpan picks the value of a clause: the first after its last verb, else the last formula, else the last
// number. Names count only if there is nothing else.
func choiceOfSpan(clause string, list []span) (span, bool) {
	if len(list) == 0 {
		return span{}, false
	}
	hidden, verb := wording.Lower(masked(clause)), -1
	for _, w := range verbs {
		if k := strings.LastIndex(hidden, w); k > verb {
			verb = k
		}
	}
	for i, v := range list {
		if !v.name && verb >= 0 && v.start > verb {
			return calculated(clause, list[i:]), true
		}
	}
	last := list[len(list)-1]
	for _, v := range list {
		if !v.name {
			last = v
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].name && strings.ContainsAny(clause[list[i].start:list[i].end], "\\$") {
			return list[i], true
		}
	}
	return last, true
}

// step matches what joins the numbers of a calculation.
var step = regexp.MustCompile(`^[-+*/×÷·x=()−–$ ]*$`)

// calculated follows 130 + 45 = 175 to its result; without an equals sign it returns the first value.
func calculated(clause string, list []span) span {
	last := list[0]
	equals := false
	for i := 1; i < len(list); i++ {
		gap := clause[list[i-1].end:list[i].start]
		if strings.TrimSpace(gap) == "" || !step.MatchString(gap) {
			break
		}
		if equals = equals || strings.Contains(gap, "="); equals {
			last = list[i]
		}
	}
	return last
}

// spans lists the formulas and numbers of a clause in order.
func spans(clause string) []span {
	var list []span
	money := isMoney(clause)
	for i := 0; i < len(clause); {
		if c := clause[i]; (c == '$' || c == '\\') && !money {
			if content, n := leadingFormulas(clause[i:]); n > 0 {
				text := lastSide(content)
				list = append(list, span{i, i + n, text, isName(text)})
				i += n
				continue
			}
		}
		if n := numberAt(clause, i, money); n > 0 {
			list = append(list, span{i, i + n, strings.TrimRight(clause[i:i+n], ","), false})
			i += n
			continue
		}
		i++
	}
	return list
}

// isName reports whether a formula is a variable or the letters of points.
func isName(s string) bool {
	return s != "" && len(s) < 12 && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && r != ' ' && r != '\\' && r != '_' && r != '{' && r != '}'
	}) < 0 && !strings.Contains(s, "text") && !strings.Contains(s, "infty") && !strings.Contains(s, "pi")
}

// lastSide returns what is right of the last equals sign if there are several: the others show the way.
func lastSide(s string) string {
	if k := strings.LastIndex(s, "="); k >= 0 && strings.Count(s, "=") > 1 && !strings.ContainsAny(s[k:], ",<>") {
		if j := strings.Index(s, ","); j < 0 || j > k {
			return strings.TrimSpace(s[k+1:])
		}
	}
	return s
}

// plainValue matches a number in prose, with currency, fraction and per cent sign.
var plainValue = regexp.MustCompile(`^(?:[$€£¥] ?)?[-−]?(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)` +
	`(?: ?/ ?[0-9]+|(?: [0-9]+/[0-9]+))?(?: ?\\?%)?`)

// numberAt returns the length of the number at clause[i:] that is no part of a name.
func numberAt(clause string, i int, money bool) int {
	c := clause[i]
	if !wording.IsDigit(c) && c != '-' && c != '.' && c != '$' && c < 0x80 || c == '$' && !money ||
		i > 0 && (wording.IsLetter(clause[i-1]) || wording.IsDigit(clause[i-1]) || clause[i-1] == '.') {
		return 0
	}
	n := len(plainValue.FindString(clause[i:]))
	if rest := clause[i+n:]; n > 0 && rest != "" && (wording.IsLetter(rest[0]) ||
		len(rest) > 1 && rest[0] == '-' && wording.IsLetter(rest[1])) {
		return 0 // 4th, 8-digit
	}
	return n
}

// lastWords returns the last n words of s.
func lastWords(s string, n int) string {
	f := strings.Fields(s)
	return strings.Join(f[max(0, len(f)-n):], " ")
}

// clauseEnds separate clauses.
var clauseEnds = regexp.MustCompile(`[,;:] | (so|thus|hence|therefore|which means|giving) `)

// lastClause returns the last value of the last clause that has one. Clauses that say what the value is not are
// skipped; one that leaves it open gives none.
func lastClause(s string) string {
	ends := clauseEnds.FindAllStringIndex(s, -1)
	for i := len(ends); i >= 0; i-- {
		from := 0
		if i > 0 {
			from = ends[i-1][1]
		}
		clause := s[from:]
		if i < len(ends) {
			clause = s[from:ends[i][0]]
		}
		value := lastMath(clause)
		if value == "" {
			value = lastNumber(clause)
		}
		if value == "" {
			continue
		}
		low := " " + wording.Lower(clause)
		switch {
		case strings.Contains(low, " not ") || strings.Contains(low, "n't "):
			continue
		case wording.Unsettled(clause), insidePhrase(clause, value):
			return s
		}
		return numberWithWords(clause, value)
	}
	return ""
}

// numberWithWords adds the words after the last number if they are a unit that changes the value.
func numberWithWords(clause, value string) string {
	k := strings.LastIndex(clause, value)
	if k < 0 {
		return value
	}
	rest := strings.TrimSpace(strings.Trim(clause[k+len(value):], " .*$!"))
	first, _, _ := strings.Cut(rest, " ")
	if wording.Scales[wording.Lower(first)] != 0 {
		return value + " " + first
	}
	return value
}

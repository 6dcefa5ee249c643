package extract

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"exp/eval/grade/wording"
)

// The values of a clause, and which of them counts.

// span is a value in a clause.
type span struct {
	start, end int
	text       string
	name       bool // a variable or points; the value is elsewhere
}

// circumstances matches what begins the part of a clause that says when or why.
var circumstances = regexp.MustCompile(` (?:after|before|when|while|because|since|until|once|to make|in order to|` +
	`by the time|assuming|given that|provided|if|out of) `)

// mainSpans returns the values of a clause before its circumstances, or all if those before have none.
func mainSpans(clause string) []span {
	list := spans(clause)
	m := circumstances.FindStringIndex(wording.Lower(masked(clause)))
	if m == nil {
		return list
	}
	if strings.Contains(clause[m[0]:], "=") && !strings.Contains(clause[:m[0]], "=") {
		return list // the circumstances show the result
	}
	n := 0
	for n < len(list) && list[n].start < m[0] {
		n++
	}
	if n == 0 || !slices.ContainsFunc(list[:n], func(v span) bool { return !v.name }) {
		return list
	}
	return list[:n]
}

// verbs stand before the value of a clause.
var verbs = []string{" is ", " are ", " equals ", " = ", " be ", " gives ", " get ", " have ", " gets ", " has ",
	" had ",
	" makes ", " made ", " costs ", " cost ", " earns ", " earned ", " needs ", " needed ", " takes ", " take ",
	" took ", " scored ", " sold ", " sells ", " pays ",
	" paid ", " spends ", " spent ", " saves ", " saved ", " contains ", " receives ", " received ", " uses ",
	" used ",
	" weighs ", " was ", " were ", " reads ", " runs ", " travels ", " covers ", " bought ", " buys ", " eats ",
	" ate ",
	" wins ", " won ", " leaves ", " remain ", " yields ", " find ", " obtain "}

// choiceOfSpan picks the value of a clause: the first after its last verb, else the last formula, else the last
// number. Names count only if there is nothing else.
func choiceOfSpan(clause string, list []span) (span, bool) {
	if len(list) == 0 {
		return span{}, false
	}
	hidden, verb := wording.Lower(masked(clause)), -1
	if end := list[len(list)-1].end; end < len(hidden) { // verbs behind the last value have none
		hidden = hidden[:end]
	}
	for _, w := range verbs {
		if k := strings.LastIndex(hidden, w); k > verb {
			verb = k
		}
	}
	if k := strings.LastIndexByte(hidden, '='); k >= 0 && resultSign.MatchString(hidden[k:]) {
		verb = k // 4+5=9 points in the 40 minutes
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

// resultSign matches an equals sign before a number.
var resultSign = regexp.MustCompile(`^= ?[$€£]?[-−]?[0-9.]`)

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
		if m := pair.FindString(clause[i:]); m != "" {
			list = append(list, span{i, i + len(m), m, false})
			i += len(m)
			continue
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

// pair matches the coordinates of a point in prose.
var pair = regexp.MustCompile(`^\([-−]?[0-9][0-9./]*(?:, ?[-−]?[0-9][0-9./]*)+\)`)

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

// plainValue matches a number in prose, with currency, fraction and per cent sign, or a time of day.
var plainValue = regexp.MustCompile(`^(?:[0-9]{1,2}:[0-9]{2}(?i: ?[ap]\.?m\b\.?)?|[$€£] ?[0-9]{1,3}(?: [0-9]{3})+\b|(?:[$€£¥] ?)?[-−]?(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)` +
	`(?: ?/ ?[0-9]+|(?: [0-9]+/[0-9]+))?(?: ?\\?%)?(?:π)?)`)

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

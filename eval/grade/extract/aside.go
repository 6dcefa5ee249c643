package extract

import (
	"regexp"
	"strings"

	"exp/eval/grade/wording"
)

// What follows a value in its sentence without changing it.

// restated matches what leads to the same value in another form: 4^3, i.e., 64.
var restated = regexp.MustCompile(`, (?:i\.e\.,?|that is,|in other words,|(?:or )?equivalently,?) `)

// restatedAsChoice joins a value and its restatement by "or": the comparison asks both to be equal.
func restatedAsChoice(s string) string {
	m := restated.FindStringIndex(s)
	if m == nil || !isValue(s[:m[0]]) || !isValue(s[m[1]:]) {
		return s
	}
	return s[:m[0]] + " or " + s[m[1]:]
}

// isValue reports whether a text is a value without words other than units.
func isValue(s string) bool {
	s = Statement(s)
	return hasValue(s) && !strings.ContainsAny(s, "=≡") && !strings.Contains(s, "\\equiv") && !isSentence(s) &&
		strings.Count(s, "$")%2 == 0 && readable(s) && !hasUnknownWords(s)
}

// valueAside matches what may follow a value in its sentence: a reason, an apposition, the end of the solution.
var valueAside = regexp.MustCompile(`,? (?:since|because) |(?:,| [—–-]) an? [a-z]{2,}[^0-9$\\]*$|` +
	`,? (?:and (?:so )?we(?: are|'re) done|as (?:desired|required|claimed|needed|wanted|was to be shown))[.!]*$`)

// withoutAside drops it if what is before it is a value by itself.
func withoutAside(s string) string {
	m := valueAside.FindStringIndex(s)
	if m == nil || wording.Unsettled(s[m[0]:]) {
		return s
	}
	t := Statement(opening.ReplaceAllString(Statement(s[:m[0]]), ""))
	if !isValue(t) {
		return s
	}
	return s[:m[0]]
}

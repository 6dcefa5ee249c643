package extract

import (
	"slices"
	"strings"

	"exp/eval/grade/wording"
)

// What follows a value in its sentence without changing it.

// counterfactual matches a sentence whose values are all in its condition: If it were 12, we would get a
// contradiction.
var counterfactual = lazy(`(?i)^(?:but |now |then )?(?:if|suppose|supposing|assuming|were) [^,]*, ` +
	`[^0-9$\\]*\b(?:would|contradict|impossible|wrong|cannot|not)\b[^0-9$\\]*$`)

// undecided matches a clause that does not know whether its value holds, or does not believe it. Formulas are masked.
var undecided = lazy(`\b(?:unclear|uncertain|unknown|unsure|undecided|doubtful|` +
	`not (?:clear|certain|sure|known|obvious)|(?:do not|don't|cannot|can't|can not) (?:know|tell|decide|say|see)|wonder|` +
	`question is) (?:whether|if)\b[^,;]*[0-9\x01][^,;]*$|` +
	`\b(?:(?:false|untrue|wrong|incorrect|impossible|absurd|not (?:true|right|correct|the case|possible))|` +
	`(?:nothing|none|nobody|no one) [a-z]+|(?:do not|don't|does not|doesn't|did not|didn't|cannot|can't|never|hardly) ` +
	`(?:believe|think|claim|say|mean|accept|conclude|imply|show|prove|follow|hold)|no (?:way|chance|reason)|` +
	`(?:wrong|mistaken?|error|fallacy) to (?:say|claim|think|believe|conclude)) that\b[^,;]*[0-9\x01][^,;]*$|` +
	`^(?:(?:so|thus|hence|now|then|therefore|but|and),? )*(?:we (?:have|get|find|are left with) |there are )?(?:the )?` +
	`(?:(?:two|three|four|several|some|many|possible|other|remaining) )*candidates?(?: values| answers)?(?::| are) |` +
	`^[^0-9\x01]*[0-9\x01][0-9.,/\x01]*[^0-9\x01]*\b(?:is|was) (?:wrong|incorrect|false|invalid|mistaken)[.!]*$|` +
	`^(?:in no (?:case|way|event)|under no circumstances?|by no means|on no account|hardly|at no (?:time|point)) ` +
	`[^,;]*[0-9\x01][^,;]*$`)

// disbelieved reports whether the last clause of a sentence doubts or denies its value.
func disbelieved(s string) bool {
	return undecided.MatchString(wording.Lower(masked(s))) || isContraryToFact(wording.Lower(s))
}

// conditional matches a value that would hold, and its condition.
var conditional = lazy(`\bwould (?:be|have been) (?:exactly |about )?(\$[^$]+\$|[$€£]?[-−]?[0-9][0-9.,/]*%?)` +
	`[^,;0-9]*? (?:if|had|were) ([^,;]*)$`)

// ownSlip matches a condition on the solution rather than on the matter of the question: if we had used another sign.
var ownSlip = lazy(`\banswer\b|^(?:we|i|you|one) (?:had|used|took|have)\b|\bsigns?\b`)

// isContraryToFact reports whether a sentence gives a value only under a condition on the value or on the solution.
// Other conditions belong to the question: it would be 250 dollars if there were no tax.
func isContraryToFact(s string) bool {
	m := conditional.FindStringSubmatch(s)
	return m != nil && (ownSlip.MatchString(m[2]) || strings.Contains(" "+m[2]+" ", " "+m[1]+" "))
}

// onlyOne matches what remains of several candidates: only $3$ works.
var onlyOne = lazy(`(?i)(?:^|[;,.] )(?:(?:and|but|so|of (?:these|which|them)),? )?only (\$[^$]+\$|[-−]?[0-9][0-9.,/]*) ` +
	`(?:works?|fits?|remains?|holds?|survives?|satisfies|is (?:valid|possible|admissible|positive|left|allowed))\b[^0-9$]*$`)

// restated matches what leads to the same value in another form: 4^3, i.e., 64.
var restated = lazy(`, (?:i\.e\.,?|that is,|in other words,|(?:or )?equivalently,?) `)

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
	if !hasValue(s) {
		return false
	}
	s = Statement(s)
	return !strings.ContainsAny(s, "=≡") && !strings.Contains(s, "\\equiv") && !isSentence(s) &&
		strings.Count(s, "$")%2 == 0 && readable(s) && !hasUnknownWords(s)
}

// valueAside matches what may follow a value in its sentence: a reason, an apposition, the end of the solution.
var valueAside = lazy(`,? (?:since|because) |(?:,| [—–-]) an? [a-z]{2,}[^0-9$\\]*$|` +
	`,? (?:and (?:so )?we(?: are|'re) done|as (?:desired|required|claimed|needed|wanted|was to be shown))[.!]*$`)

// settledReason matches a reason that may deny other things: since the other coins are not needed.
var settledReason = lazy(`^,? (?:since|because) (?:the |any |all |no |every )?(?:other|others|larger|smaller|` +
	`remaining|rest|[a-z]+ [a-z]+ (?:is|are|does|do) not)\b[^0-9$\\]*$`)

// bracketAside matches words between brackets at the end of a text, ofAside those that leave the value before them as
// it is: (total), (not 14, since both ends count), (rounded to two places).
var (
	bracketAside = lazy(`^(.*[^ ]) \(([A-Za-z][^()]*)\)[ .!*]*$`)
	ofAside      = lazy(`(?i)^(?:(?:not|rather than|instead of) (?:[-−€£]?[0-9][^$\\]*|\$[^$]+\$)|` +
		`see (?:above|below|(?:the|my|our) [a-z]+|[a-z]+ [0-9]+)|(?:since|because|as|which) [^$\\]*|` +
		`(?:rounded|correct|to) [a-z ]*(?:[0-9]+ )?(?:decimal )?[a-z]+|(?:in )?base (?:10|ten)|exact(?:ly)?|only|final)$`)
)

// calculationAfter matches a number after a word and, between brackets, the calculation that gives it: 42 (20 + 22).
var calculationAfter = lazy(`^(.*[a-z,:=] [$€£]?[0-9][0-9.,]*(?: [a-z]+)?) \([$€£0-9.,]+(?: ?[-+*/×÷−] ?[$€£0-9.,]+)+\)([.!]?)$`)

// withoutCalculation drops such a calculation.
func withoutCalculation(s string) string {
	if !strings.Contains(s, "(") {
		return s
	}
	return calculationAfter.ReplaceAllString(s, "$1$2")
}

// withoutBrackets drops such words after a value.
func withoutBrackets(s string) string {
	m := bracketAside.FindStringSubmatch(s)
	if m == nil || !isValue(m[1]) {
		return s
	}
	word := wording.Lower(m[2])
	words := strings.FieldsFunc(word, notLetter)
	if v, n := wording.Numeral(words); n == len(words) && v != nil && v.RatString() == Statement(m[1]) ||
		wording.QuantityOf(word).Known && wording.IsDigit(m[1][len(m[1])-1]) || slices.Contains(wording.Tails, word) ||
		ofAside.MatchString(m[2]) && !takesBack.MatchString(m[2]) {
		return m[1]
	}
	return s
}

// withoutAside drops it if the text before it is a value by itself.
func withoutAside(s string) string {
	if t := withoutBrackets(s); t != s {
		return t
	}
	m := valueAside.FindStringIndex(s)
	if m == nil || wording.Unsettled(s[m[0]:]) && !settledReason.MatchString(s[m[0]:]) {
		return s
	}
	t := Statement(opening.ReplaceAllString(Statement(s[:m[0]]), ""))
	if !isValue(t) {
		return s
	}
	return s[:m[0]]
}

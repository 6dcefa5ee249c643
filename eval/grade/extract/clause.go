package extract

import (
	"slices"
	"strings"

	"exp/eval/grade/wording"
)

// sentenceValue returns the value of the last clause that has one, with its unit. The rest of the sentence does not
// matter unless it continues the value: "12 squared", "12 or 13". open says that a clause names a value and leaves
// it open.
func sentenceValue(s string) (value string, open bool) {
	if t := listAside.ReplaceAllString(s, ""); t != s && hasValue(t) {
		s = t
	}
	if m := attained.FindStringIndex(masked(s)); m != nil && hasValue(s[:m[0]]) {
		s = s[:m[0]]
	}
	if v := enumeration(s); v != "" {
		return v, false
	}
	if v := plainFormula(s); v != "" {
		return v, false
	}
	if m := someOf.FindStringSubmatch(s); m != nil {
		return m[1], false
	}
	hidden := strings.TrimRight(masked(s), ". ")
	if k := strings.LastIndex(hidden, "("); k > 0 && strings.HasSuffix(hidden, ")") &&
		len(strings.Fields(s[k:])) > 2 { // an aside
		s = strings.TrimSpace(s[:k])
	}
	ends := slices.DeleteFunc(clauseEnds.FindAllStringIndex(maskedBounds(s), -1), func(m []int) bool {
		return strings.TrimSpace(s[m[0]:m[1]]) == "giving" && afterGiving.MatchString(s[:m[0]])
	})
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
		if decided && i > 0 && restating.MatchString(s[from-2:]) {
			if other, _ := sentenceValue(s[:ends[i-1][0]]); sameDimension(other, t) {
				return other + " or " + t, false // 1.5 hours, i.e. 90 minutes
			}
		}
		if decided && t != "" && i > 0 && strings.HasPrefix(s[from-2:], ", or ") && !strings.Contains(clause, "=") {
			if calculating.MatchString(s[:ends[i-1][0]]) {
				return t, false // four times 9, or 36
			}
			other, _ := sentenceValue(s[:ends[i-1][0]])
			switch {
			case other != "" && !strings.ContainsAny(other, "0123456789$\\"):
				return t, false // three quarters of an hour, or 45 minutes
			case other != "":
				return other + " or " + t, false // the same in other words, or another value
			}
			return "", true
		}
		secondary := subordinate.MatchString(clause) ||
			apiece.MatchString(clause) && (verbEnd(clause) == 0 || strings.Contains(clause, " of w"))
		if decided && !isName(t) && (i == 0 || !secondary) {
			return t, t == ""
		}
		if name == "" {
			name = t
		}
	}
	if name == "" && !strings.ContainsAny(s, "0123456789$\\") {
		name, _ = numberInWords(s)
	}
	return name, false
}

// restating matches the start of a clause that gives a quantity in other units.
var restating = lazy(`^, (?:i\.e\.|ie|that is|in other words|equivalently|which is)[ ,]`)

// unitAtEnd matches the unit of a value, unitsWithin all of them.
var (
	unitAtEnd   = lazy(`\\text\{ ?([^{}]*)\}$`)
	unitsWithin = lazy(`\\text\{[^{}]*\}`)
)

// sameDimension reports whether two values have units of measure that convert.
func sameDimension(a, b string) bool {
	m, n := unitAtEnd.FindStringSubmatch(a), unitAtEnd.FindStringSubmatch(b)
	if m == nil || n == nil {
		return false
	}
	if strings.Contains(unitsWithin.ReplaceAllString(a+b, ""), "\\") {
		return false
	}
	q, r := wording.QuantityOf(m[1]), wording.QuantityOf(n[1])
	return q.Known && r.Known && q.Measured && r.Measured && q.Dim == r.Dim
}

// rejected matches a clause that takes back the value before it.
var rejected = lazy(`(?i)^(?:which|that|but(?: (?:this|that|it|which))?|and (?:this|that|it)) ` +
	`(?:(?:(?:does|do|did|can|could|is|was|would)(?: ?not|n't|not|n’t)|cannot) (?:be )?(?:[a-z]+ )?` +
	`(?:fit|work|hold|satisfy|equal|match|agree|apply|possible|valid|right|correct|true|allowed|acceptable|admissible|` +
	`answer|solution|happen|occur|in (?:the|our) (?:domain|range)|positive|integer)|fails?|contradicts?|violates?|` +
	`is (?:too|impossible|wrong|incorrect|absurd|a contradiction|invalid|false|extraneous|rejected|` +
	`discarded|excluded|spurious)|we (?:refute|reject|discard|exclude|dismiss|rule out))\b`)

// attained matches what begins the place of an extremum, which may be several equations.
var attained = lazy(`,? (?:which (?:occurs?|happens|is (?:attained|achieved|reached))|attained|achieved|` +
	`occurring|occurs|happens|is (?:attained|achieved|reached)) (?:when|at|for|if|by)\b`)

// listAside matches a list between brackets.
var listAside = lazy(` \((?:[^()$,]*\$[^$]*\$[^()$,]*,)+[^()$]*\$[^$]*\$[^()$]*\)`)

// bounds matches several inequalities that commas join: $x \ge 0$, $x \ne 1$.
var bounds = lazy(`\$[^$]*(?:<|>|\\[gl]e|\\ne)[^$]*\$(?:, (?:and )?\$[^$]*(?:<|>|\\[gl]e|\\ne)[^$]*\$)+`)

// maskedBounds is masked with joined inequalities as one formula.
func maskedBounds(s string) string {
	b := []byte(masked(s))
	for _, m := range bounds.FindAllStringIndex(s, -1) {
		for i := m[0]; i < m[1]; i++ {
			b[i] = 1
		}
	}
	return string(b)
}

// someOf matches a sentence about some of a number of things: 27 of the 50 students play football.
var someOf = lazy(`^([0-9][0-9,]*) (?:out )?of (?:the |these |his |her |its |their |all )?` +
	`[0-9][0-9,]* [a-z]+ [a-z][^0-9]*$`)

// circumstance matches a condition on people or things, which the question sets: if she works 10 hours. A condition
// on a variable, or an even number, sets a case.
var circumstance = lazy(`^if (?:he|she|they|there|no|nobody|it|we|you|his|her|their|the|each|every|all|both) ` +
	`(?:(?:[a-z'-]{2,}|a|[$]?[0-9][0-9.,]*%?)[ ,.]*)+$`)

// afterGiving matches what makes "giving" no consequence: after giving 4 apples to Tom.
var afterGiving = lazy(`(?i)\b(after|before|by|for|of|without|when|while)$`)

// subordinate matches the start of a clause that says where or why rather than what.
var subordinate = lazy(`(?i)^(attained|achieved|reached|obtained|occurring|when|where|independent|with|` +
	`without|including|excluding|compared|after|before|since|because|while|whereas|assuming|given|although|even|if|as|that (?:every|each|the|he|she|they|it|we|all|no|there)|` +
	`which (?:occurs?|happens|includes?|contains?|is (?:attained|achieved|reached))|(?:which|that) is (?:about|approximately|roughly|around|nearly|almost|close to)) `)

// calculating matches a calculation in words.
var calculating = lazy(`\b(?:times|plus|minus|divided|multiplied|half|twice|double|percent of|% of)\b`)

// apiece matches an apposition about one of several: 64 in total, 16 kilograms each.
var apiece = lazy(`(?i)\b(?:each|apiece)[.!]?$|^[0-9]+ of (?:whom|which|them)\b`)

// clauseValue returns the value that a clause states. decided is false if it states none, or only denies one. An
// empty value with decided true means that the clause leaves the value open.
func clauseValue(clause string) (value string, decided bool) {
	clause = strings.TrimPrefix(clause, "or ") // or 60/5 = 12 eggs
	clause = strings.TrimPrefix(clause, "but ")
	clause = relative.ReplaceAllString(clause, "")
	if m := laterTime.FindStringSubmatch(clause); m != nil {
		clause = m[1]
	}
	if m := replacing.FindStringSubmatch(clause); m != nil && hasValue(m[1]) {
		clause = m[1]
	}
	v, ok := choiceOfSpan(clause, ungoverned(clause, mainSpans(clause)))
	if !ok {
		return "", false
	}
	before := times.ReplaceAllString(withoutOthers(wording.Lower(clause[:v.start])), "$1 ")
	after := wording.Lower(strings.Trim(wording.WithoutFonts(clause[v.end:]), " .*!"))
	if strings.HasPrefix(after, "of the ") {
		before = missed.ReplaceAllString(before, "$1 ")
	}
	if denied(before) && !calculation.MatchString(clause) {
		return "", false
	}
	next := strings.Fields(after)
	switch {
	case stated.MatchString(before) && !wording.Uncertain(before) && !(len(next) > 1 && next[0] == "and" &&
		strings.ContainsAny(next[1], "0123456789$")), // the sum of 12 and 3
		capable.MatchString(before):
	case partOfPhrase(before), doubted(before), unsettledBefore(before), len(next) > 0 &&
		wording.Unsettled(next[0]) && !circumstance.MatchString(after) && !attributive.MatchString(" "+after),
		len(next) > 1 && (next[0] == "is" || next[0] == "are") && slices.Contains(wording.Negations, next[1]):
		return "", true
	case !strings.Contains(before, "=") && len(next) > 1 && slices.Contains([]string{"more", "less", "fewer",
		"times"}, next[0]) && slices.Contains([]string{"than", "as", "that"}, next[1]) &&
		(!compared.MatchString(after) || amounts.MatchString(pronoun.ReplaceAllString(before, ""))):
		return "", true
	case len(next) > 1 && (next[0] == "to" || next[0] == "and") && strings.ContainsAny(next[1], "0123456789$"):
		return "", true
	}
	if relatedTo.MatchString(after) || continued.MatchString(after) || limited.MatchString(after) ||
		failing.MatchString(after) ||
		anotherFormula.MatchString(clause[v.end:]) ||
		another.MatchString(after) && !(len(next) > 2 && smallerUnit(next[1:], next[0]) != "") {
		return "", true
	}
	if value = Statement(v.text); strings.HasSuffix(before, "negative ") || strings.HasSuffix(before, " is minus ") {
		value = "-" + value
	}
	if strings.HasSuffix(value, "%") {
		return value, true
	}
	next = beforeVerb(next)
	for n := min(len(next), 5); n > 0; n-- {
		unit := strings.Join(next[:n], " ")
		if unit == "in" && len(next) > 1 {
			break // in one case
		}
		if q := wording.QuantityOf(unit); q.Known && !q.Notation {
			value += "\\text{ " + unit + "}"
			return largerUnit(clause[:v.start], unit) + value + smallerUnit(next[n:], unit), true
		}
	}
	return value, true
}

// laterTime matches the second of two times of day: leaves at 7:30 and arrives at 9:00.
var laterTime = lazy(`[0-9]:[0-9]{2}\b.* and ([a-z]+ at [0-9]{1,2}:[0-9]{2}\b.*)$`)

// times matches an adjective between a verb and a count: he was wrong 4 times.
var times = lazy(`\b(was|were|is|are|been) (?:wrong|incorrect|mistaken|right|correct|late) $`)

// missed matches a denied verb before some of several things: Tom did not find 4 of the coins.
var missed = lazy(`\b(did|does|do|has|have|had|will|would)(?: not|n't) [a-z]+ $`)

// relative matches the start of a clause such as "of which 36 are sour", which counts a part.
var relative = lazy(`^of (?:which|whom|these|those|them),? `)

// replacing matches a value and the one that replaces it: not 38 but 36.
var replacing = lazy(`(?:\bnot|n't)(?: [a-z]+)? [$]?[0-9][^ ]*(?: [a-z]+)?,? but (?:rather )?(.*)$`)

// capable matches words that make a bound or a difference the answer: she can buy at most 36; he is taller than her
// by 5.
var capable = lazy(`\bcan [a-z ]*(?:at most|up to) $|\bthan [a-z ]+ by $`)

// compared matches a difference that the sentence states: 36 more than last year. With a number after "than", or a
// variable, it is a step of a calculation.
var compared = lazy(`^(?:more|less|fewer) than [a-z]{3}[^0-9$\\]*$`)

// amounts matches the verb before a difference that does not give the amount: the total is 48 more than before.
var amounts = lazy(`\b(?:is|are|was|were) $`)

// pronoun matches a subject that is the difference: that is 36 more than last year.
var pronoun = lazy(`^(?:that|this|it|which) (?:is|was) $`)

// failing matches words after a value that reject it: 36 does not work.
var failing = lazy(`^(?:[a-z]+ |is divided by [^ ]+ )?(?:is|are) not (?:needed|required|relevant|asked)\b|` +
	`^(?:is (?:too|wrong|incorrect|impossible|false|invalid)|(?:does|can)(?: not|n't|not|n’t)|cannot|fails?|` +
	`(?:do|did|could|would|will)(?: not|n't|n’t) (?:work|fit|hold|satisfy|match|give|lead|divide|yield|be))\b`)

// another matches a second value that "and", or "or" in another language, joins: 36 bottles in one minute and 2160 in
// an hour, 12 o 13.
var another = lazy(`^and [a-z][^0-9]* at [0-9]+:[0-9]|^(?:[a-z][^0-9]* and|(?:` + orAbroad + `)) +(?:[$€£]?[0-9]|\\)`)

// anotherFormula matches a second formula that "and" joins after words about the first.
var anotherFormula = lazy(`^[$)\\]* (?:in|for|when|if|on) [^0-9$,;]* and \$`)

// orAbroad are words for "or".
const orAbroad = `o|u|ou|oder|oppure|или|або|lub|albo|veya|ya da|nebo|vagy|eller|tai|atau|hoặc|sau|या|أو|` +
	`或|或者|または|또는`

// denied reports whether words before a value say that it is not.
func denied(before string) bool {
	before = " " + before
	return strings.Contains(before, " not ") || strings.Contains(before, " cannot ") ||
		strings.Contains(before, "n't ") || deniedAbroad.MatchString(before)
}

// deniedAbroad matches "is not" in other languages: no es, non è.
var deniedAbroad = lazy(`\b(?:no|non) (?:es|son|è|é|era|sono)(?:[^a-z]|$)`)

// continued matches a calculation without a result that a value begins: 48 choose 2 ways, 48 times 47 ways.
var continued = lazy(`^(?:(?:choose|times|multiplied by|divided by|plus|minus) \$?[0-9][^=]*$|` +
	`(?:plus|minus|times) (?:some|an?\b)|` +
	`(?:raised )?to the (?:[a-z0-9]+ )?power\b)`)

// relatedTo matches words that make a value a step of a calculation: 12 more coins than twice the other's.
var relatedTo = lazy(`^(?:more|fewer|less) (?:[a-z]+ )?than (?:twice|half|double|thrice|[a-z]+ times|[0-9$])`)

// limited matches words after a value that make it a bound or turn its sign: 12 at most, 12 degrees below zero.
var limited = lazy(`^(?:[a-z]+ ){0,2}(?:at (?:most|least|minimum|maximum)|or (?:more|less|fewer|so|thereabouts)|` +
	`(?:below|under) (?:zero|freezing|sea level))\b`)

// unsettledBefore reports whether the words before a value keep it from being the answer. Words that compare do so
// only after the verb: the angle between the lines is 12, the sum is between 12 and 14.
func unsettledBefore(before string) bool {
	last := lastWords(before, 4)
	if !wording.Unsettled(last) {
		return false
	}
	from := verbEnd(" " + last)
	return from == 0 || wording.Uncertain(last) || wording.Unsettled((" " + last)[from:])
}

// verbEnd returns the index after the last verb, or 0.
func verbEnd(s string) int {
	from := 0
	s += " "
	for _, w := range verbs {
		if k := strings.LastIndex(s, w); k >= 0 {
			from = max(from, k+len(w)-1)
		}
	}
	return from
}

// lastWords returns the last n words of s.
func lastWords(s string, n int) string {
	f := strings.Fields(s)
	return strings.Join(f[max(0, len(f)-n):], " ")
}

// clauseEnds separate clauses.
var clauseEnds = lazy(`[,;:] | (so|thus|hence|therefore|which means|giving) `)

// lastClause returns the last value of the last clause that has one. It skips clauses that deny a value; if a
// clause leaves the value open, it returns none.
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
		switch {
		case denied(wording.Lower(clause)):
			continue
		case wording.Unsettled(clause), insidePhrase(clause, value), strange(clause, value),
			rangeInChinese.MatchString(clause):
			return s
		}
		return numberWithWords(clause, value)
	}
	return ""
}

// rangeInChinese matches a range or a power: 11到12之间, 2的12次方.
var rangeInChinese = lazy(`[0-9$] ?[到至~～和] ?\$?[0-9.]+\$? ?之间|次方`)

// isAbroad matches "the answer is" in other languages.
var isAbroad = lazy(`^ *\p{L}+(?: \p{L}+){0,2} (?:är|er|je|jest|este|adalah|ist|est|es|és|è|é|là|lautet|beträgt|vastaus on) ` +
	`[$€£]?[-−]?[0-9]|^ *vastaus on `)

// strange reports whether a phrase without a verb has words that may change the value in it.
func strange(phrase, value string) bool {
	low := " " + wording.Lower(phrase)
	if verbEnd(low) > 0 || strings.Contains(phrase, "="+value) || isAbroad.MatchString(low) {
		return false
	}
	words := strings.FieldsFunc(low, func(r rune) bool { return r < 0x80 && (r < 'a' || r > 'z') })
	if v, n := wording.Numeral(words); n == len(words) && n > 0 && v.RatString() == value { // 57 (fifty-seven)
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		return w[0] < 0x80 && len(w) > 1 && !wording.IsCounted(w) && !wording.Adjectives[w] &&
			!wording.QuantityOf(w).Known
	})
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

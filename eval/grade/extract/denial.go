package extract

import (
	"slices"
	"strings"

	"exp/eval/grade/wording"
)

// Values that a sentence names only to deny them.

// deniedBefore matches words right before a value that deny it: we reject 36, the sum is hardly 36, 答案不是12.
var deniedBefore = lazy(`(?:\b(?:for example|for instance|e\.g\.|such as),?|` +
	`\b(?:such that|never|except|anything but|different from|differs? from|distinct from|unequal to|other than|no longer|far from|` +
	`nothing to do with|unrelated to|` +
	`unlike|(?:wrong|incorrect|false|mistaken) (?:answer|value|result|solution)(?: [a-z]+){0,3} (?:is|was|would be)|(?:answer|solution|result|value|it|this|that) would have been|` + mistaken + `)|` +
	`\b(?:nearly|almost|hardly|barely|scarcely|exceeds?|exceeded|surpass(?:es|ed)?|divides|` +
	`just (?:over|under|above|below)|(?:falls? |is |fell |just )short of|at first (?:sight|glance)(?: [a-z]+)*)|` +
	`\b(?:answer|sum|value|result|total|product|it|this|that) ?(?:≠|\\neq?)|` +
	`^(?:(?:so|thus|hence|therefore|then|and|but|since|because),? )*` +
	`(?:none|neither|nothing|no [a-z]{2,}|not (?:one|all))(?: [a-z]+){0,4} ` +
	`(?:is|are|was|were|be|equals?|gives?|yields?|makes?|=)|` +
	`(?:不是|不为|不為|除了?|非|(?:如果|假如|假设|倘若|若)(?:最终|正确)?的?答案|不等于|不等於|并非|並非|大于|大於|小于|小於|超过|超過|多于|少于|不足|至少|至多|最多|可能|也许|或许|大概)` +
	`(?:是|为|為|等于|有)?) ?\$?$`)

// mistaken matches what a known mistake gives. The error of a measurement is a value like others.
const mistaken = `(?:(?:common|frequent|usual|typical|careless|classic|sign|arithmetic|calculation) )+(?:mistake|error)s? ` +
	`(?:gives?|leads? to|yields?|would (?:be|give))`

// rejectedBefore matches our own words that take a value back, or only try it: we reject 36. What other persons
// reject is the matter of the question: she rejects 5 offers.
var rejectedBefore = lazy(`(?:^(?:(?:so|thus|hence|therefore|then|now|next|first|and|but),? )*|` +
	`\b(?:we|i|one|you|this|that|which|let us|let's|let me) (?:(?:must|can|could|should|may|have to|has to|now|then|also|` +
	`therefore|thus|hence|first) )*|[,;:] )` +
	`(?:(?:(?:reject|discard|exclud|eliminat|dismiss|disregard|avoid)(?:e|es|s|ed|ing)?|` +
	`(?:rul|throw)(?:e|es|s|ed|ing)? out)(?: (?:the|value|root|solution|case|option|[a-z] =))*|` +
	`try|tried|trying) ?\$?$`)

// countedAfter matches a noun in the plural right after a value.
var countedAfter = lazy(`^[$ ]*[a-z]{3,}s\b`)

// countedVerb matches such a noun and the words that call it wrong: 12 apples are wrong. That 4 bulbs were rejected is
// an answer.
var countedVerb = lazy(`^[$ ]*[a-z]{3,}s( (?:are|were) (?:wrong|incorrect)\b)`)

// attributive matches an adjective of a plural noun that is counted: 3 wrong answers.
var attributive = lazy(`^ (?:wrong|incorrect|false|invalid|rejected|excluded|discarded|impossible) [a-z]{3,}s\b|` +
	`^[$ ]*,? ?which (?:is|are) too [a-z]+ to `)

// isDeniedBetween reports whether the words before a value, or those after it, deny it.
func isDeniedBetween(before, after string) bool {
	return deniedBefore.MatchString(before) || negatedBefore.MatchString(before) || failing.MatchString(after) ||
		rejectedBefore.MatchString(before) && !countedAfter.MatchString(after) ||
		!attributive.MatchString(after) && (deniedAfter.MatchString(after) ||
			deniedAfter.MatchString(countedVerb.ReplaceAllString(after, "$1")))
}

// deniedAfter matches words right after a value that deny it: 36 would be too many, 12ではない, 12 °C below zero.
var deniedAfter = lazy(`^[$ ]*(?:(?:,? ?which |,? ?that )?` +
	`(?:is|are|was|were|(?:would|will|must|can|should|may|could|has to) be|seems|looks|has been)` +
	`(?: clearly| obviously| also| far| much| still| simply| therefore| an?)? ` +
	`(?:too|wrong|incorrect|impossible|false|invalid|extraneous|rejected|excluded|discarded|ruled out|absurd|` +
	`mistaken|misleading|trap|distractor|mistake|error|decoy|unacceptable|inadmissible|spurious|out of (?:the )?(?:range|domain|bounds)|a contradiction)\b|` +
	`too (?:many|few|much|low|high|large|` +
	`small|big)\b|contradicts?\b|violates?\b|` +
	`\(?(?:rejected|extraneous|invalid|discarded|excluded|wrong|incorrect|impossible|` +
	`not (?:valid|allowed|possible|accepted))\b|` +
	`(?:is|are|was)(?: ?not|n't) (?:the |our |my |an? )?(?:final |right |correct |valid |true )*` +
	`(?:answer|solution|result|right|correct|possible|valid|true)\b|` +
	`(?:[°a-z]+ ){0,3}(?:below|under) (?:zero|freezing|0|sea level)\b|` +
	`(?:では|じゃ|で)(?:ない|ありません|なく)|不是|不对|不對|[个個元天人种]?(?:以[上下内外]|左右|次方|之间|还是|还|吗|的(?:平方|立方|一半|倒数))|(?:가|이) ?아[니닙닌])`)

// denial is a fast check for both.
var denial = lazy(`(?i)cannot|n't|fail|reject|discard|exclud|eliminat|dismiss|disregard|(?:rul|throw)[a-z]* out|` +
	`nearly|almost|` +
	`hardly|barely|scarcely|exceed|surpass|divides|at first |just |short of|≠|\\ne|\bn(?:one|either|othing|o|ot) |` +
	`[不并並大小至以的吗还除非如假若]|左右|次方|之间|超[过過]|多于|少于|最多|可能|也许|或许|too|wrong|` +
	`incorrect|impossible|false|valid|extraneous|absurd|mistaken|able|missible|spurious|mislead|trap|distractor|decoy|nothing|unrelated|아닙|out of|contradict|violate|` +
	`tr(?:y|ied)|avoid|example|instance|e\.g|such|never|except|anything|differ|distinct|unequal|other|longer|far|unlike|would|` +
	`mistake|error|` +
	`below|under|ない|ありません|なく|아니`)

// withoutDenied drops the clauses of a sentence whose values it denies; empty if no value is left.
func withoutDenied(s string) string {
	if hasDenyingLabel(s) {
		return ""
	}
	if len(s) > maxStatement || !denial.MatchString(s) {
		return s
	}
	ends := append(clauseEnds.FindAllStringIndex(maskedBounds(s), -1), []int{len(s), len(s)})
	var kept strings.Builder
	from, dropped, valued := 0, false, false
	for _, m := range ends {
		clause := s[from:m[0]]
		switch {
		case isDenied(clause):
			dropped = true
		default:
			valued = valued || hasValue(clause)
			kept.WriteString(s[from:m[1]])
		}
		from = m[1]
	}
	switch {
	case !dropped:
		return s
	case !valued:
		return ""
	}
	return kept.String()
}

// denyingLabel matches a label that turns or denies the value after it: The value is negative: 12.
var denyingLabel = lazy(`(?i)(?:^|[.!?] )[^0-9:.$]*\b(?:not (?:the|an?|our|my) (?:[a-z]+ )?(?:answer|solution|result|value)|(?:common|frequent|usual) (?:mistake|error)|` +
	`opposite|not|except|` +
	`never|wrong|incorrect|` +
	`false|rejected|excluded|impossible|candidates?|hint|given|example|guess|assumption): *\**[-−$\\(0-9]|(?:^|[.!?] )[^0-9:.$]*\b(?:negative|minus): *\**[$\\(]*[0-9]`)

// rejectsValue matches a sentence that gives a value that fails, or a day counted from another.
var rejectsValue = lazy(`(?i)[0-9)}$]: *(?:(?:this|it|that) )?(?:fails|does(?: ?not|n't|n’t) work|not (?:valid|possible)|invalid|impossible|` +
	`contradiction|wrong)\b|\bdays? (?:before|after) (?:mon|tues|wednes|thurs|fri|satur|sun)day\.?$`)

// hasDenyingLabel reports whether the last sentence begins with such a label, or gives a quantity derived from the
// answer, or rejects its value.
func hasDenyingLabel(s string) bool {
	end := tail(s, maxStatement)
	return strings.Contains(s, "nswer") && aboutAnswer.MatchString(lastSentence(end)) ||
		rejectsValue.MatchString(lastSentence(end)) ||
		strings.Contains(s, ":") && denyingLabel.MatchString(end) && denyingLabel.MatchString(lastSentence(end))
}

// somethingOf matches words that derive another quantity from the answer after them.
const somethingOf = `\b(?:(?:opposite|negative|reciprocal|inverse|square|cube|root|double|triple|half|third|quarter|` +
	`multiple|factor|part|digits?) of|twice|double|triple|half|thrice) (?:the|our|my) (?:final |correct )?`

// aboutAnswer matches a value of something else about the answer: the opposite of the answer is 12.
var aboutAnswer = lazy(`(?i)` + somethingOf + `answer\b|\banswer (?:squared|cubed|doubled|plus|minus|times|ends|starts|begins)\b`)

// certain matches a "no" that denies nothing.
var certain = lazy(`\bno (?:doubt|matter|wonder)\b`)

// isDenied reports whether a clause has values and denies all of them.
func isDenied(clause string) bool {
	low, some := wording.Lower(clause), false
	if certain.MatchString(low) {
		return false
	}
	list := spans(clause)
	named := !slices.ContainsFunc(list, func(v span) bool { return !v.name }) // the answer is a name
	for _, v := range list {
		if v.name && !named {
			continue
		}
		if !isDeniedBetween(strings.TrimRight(low[:v.start], " "), low[v.end:]) {
			return false
		}
		some = true
	}
	return some
}

// contrast matches a value after the answer that it is not: 36, not 40.
var contrast = lazy(`^(.*[0-9}$)%][^,]{0,20})(?:, (?:and |but )?not |,? rather than |,? instead of |[,，] ?而?不是 ?)` +
	`(?:\$[^$]+\$|[$€£]?[-−]?[0-9][0-9.,/%]*\$?)(?: [a-z]+)?([.!。]?)$`)

// withoutContrast drops such a value, and one before the answer: Not 40, but 36.
func withoutContrast(s string) string {
	if m := contrast.FindStringSubmatch(s); m != nil && !denied(wording.Lower(m[1])) {
		s = m[1] + m[2]
	}
	if m := correction.FindStringSubmatch(s); m != nil {
		return m[1] // not 96 but 95
	}
	return s
}

// withdrawal matches words that replace the value before them: 36 ... wait, 37.
var withdrawal = lazy(`(?i)(?:\.{2,}|…|[,;—–]|--+| -) *(?:(?:wait|no|sorry|hmm+|oops|` +
	`nope)\b *(?:[,.:!—–-]|$)|` +
	`(?:actually|correction|scratch that|make that|i mean|or rather)\b[,:]? *[^a-z]*[0-9])`)

// withoutWithdrawn returns what replaces a value that the sentence withdraws; empty if nothing does.
func withoutWithdrawn(s string) string {
	list := withdrawal.FindAllStringIndex(tailless(s), -1)
	if list == nil || !hasValue(s[:list[0][0]]) {
		return s
	}
	last := list[len(list)-1]
	rest := s[last[0]:]
	if !hasValue(rest) {
		return ""
	}
	return strings.TrimLeft(withdrawn.ReplaceAllString(rest, ""), " ,:.!—–-")
}

// withdrawn matches the words of a withdrawal.
var withdrawn = lazy(`(?i)^[^a-z0-9]*(?:wait|no|sorry|hmm+|oops|nope|actually|correction|` +
	`scratch that|make that|` +
	`i mean|or rather)\b`)

// aboutOthers matches a negation inside a phrase about other things: the probability that it is not red is 36, that it
// does not is 36.
var aboutOthers = lazy(`\b(?:(?:that|which|who|whose|where) (?:[a-z]+ ){0,4}` +
	`(?:(?:is|are|was|were|do|does|did|has|have|can|could|will)(?: not|n't)|cannot) |(?:of|for) not )((?:[a-z]+ ){0,7})` +
	`(?:is|are|was|were|equals|=) `)

// counting matches what a number counts, before its verb: the number of incorrect answers is 3.
var counting = lazy(`\bnumber of (?:[a-z]+-)?(?:[a-z]+ ){1,3}(?:(?:who|that|which) [a-z]+ neither )?(is|are|was|equals|=) `)

// opinion matches words that carry a negation over to what follows: does not mean that it is 36.
var opinion = lazy(`\b(?:that|think|say|believe|mean|imply|know|see|follow|seem|true|the case|` +
	`correct|since|because|` +
	`so|when|and|but)\b`)

// withoutOthers drops such a phrase from the words before a value.
func withoutOthers(before string) string {
	before = counting.ReplaceAllString(before, "number $1 ")
	m := aboutOthers.FindStringSubmatchIndex(before)
	if m == nil || opinion.MatchString(before[m[2]:m[3]]) {
		return before
	}
	return before[:m[0]] + before[m[3]:]
}

// isOpen reports whether the words around the last formula of a text deny it, or derive something else from it.
func isOpen(s, formula string) bool {
	k := strings.LastIndex(s, formula)
	if k < 0 {
		return false
	}
	low := wording.Lower(masked(s))
	before := strings.TrimRight(low[:k], " $\\([\x01")
	after := strings.TrimLeft(low[k+len(formula):], " $\\)]\x01")
	return negatedBefore.MatchString(before) || relatedBefore.MatchString(before) || failing.MatchString(after) ||
		increased.MatchString(after)
}

// relatedBefore matches words before a formula that turn it into another value: twice $x$, is at least $x$, might be
// $x$, between $x$ and $y$.
var relatedBefore = lazy(`\b(?:(?:the |an? )?(?:twice|thrice|double|triple|half|(?:half|negative|opposite|` +
	`reciprocal|inverse|square|cube|square root|root|multiple|factor|divisor|third|quarter|complement|part) of|` +
	`close to|near)|(?:could|might|may)(?: [a-z]+)? be|` +
	`(?:is|are|be)(?: strictly| certainly)? (?:at (?:least|most)|(?:less|greater|more|fewer|smaller|larger|bigger) than)|` +
	`between [^a-z]* and)$`)

// negatedBefore matches a negation right before a formula: the derivative is not $2x$.
var negatedBefore = lazy(`(?:\bnot|n't|\bcannot|\bnever|\bunlikely|\bnicht|\bniet|\bpas|(?:^| )(?:не|(?:no|non) (?:es|è|é)))` +
	`(?: possibly| really| ever)?(?: to)?(?: be| equal| be equal to| equal to| given by)?$`)

// increased matches a calculation without numbers after a formula.
var increased = lazy(`^(?:plus|minus|times) (?:some|an?\b)`)

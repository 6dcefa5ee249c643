package extract

import (
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
var circumstances = lazy(` (?:after|before|when|while|because|since|until|once|to make|in order to|` +
	`by the time|assuming|given that|provided|if|out of|(?:in|within|over|during) (?:the (?:first|last|next) )?[0-9][0-9.]* ` +
	`(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)\b) ?`)

// purpose matches what a clause says the value is for: to finish the book in 2 weeks. After other words, "to" leads to
// the value: it comes to exactly 12.
var purpose = lazy(` to ([a-z]{2,}) `)

// moreTo matches an amount missing for a purpose, whatever the verb: 18 more shells to have 50.
var moreTo = lazy(` (?:more|another)(?: [a-z]+){0,2} to `)

// noPurpose are words after "to" that begin no purpose.
var noPurpose = []string{"the", "an", "about", "just", "exactly", "only", "be", "around", "approximately", "roughly",
	"nearly", "at", "one", "two", "three", "his", "her", "its", "their"}

// yielding are verbs after "to" that lead to the result of an instruction: divide 108 by 3 to get 36.
var yielding = []string{"get", "give", "obtain", "find", "yield", "make"}

// instruction matches the start of one.
var instruction = lazy(`^(?:(?:now|then|so|next|finally|we|you|can|must|just|simply)[, ]+)*(?:divide|add|multiply|` +
	`subtract|sum|combine|square|double|take|use|plug|substitute|solve|simplify|factor|expand|evaluate|compute)\b`)

// obliged matches the verb whose object begins with "to": she needs to read 27 pages.
var obliged = lazy(`\b(?:needs?|needed|has|have|had|wants?|wanted|going|able|ought|used|plans?|hopes?|` +
	`continues?|starts?|begins?|decides?|decided|managed|manages|get|gets)$`)

// atName matches the place of an extremum: at x = 1.
var atName = lazy(`^ (?:at|for|when|if|where) \$?\\?\(? ?\(?[a-z](?:, ?[a-z]\))? ?=`)

// atPlace matches the start of such a place.
var atPlace = lazy(` (?:at|for) [$a-z(\\]`)

// circumstancesAt returns where the circumstances of a clause begin, -1 if it gives none.
func circumstancesAt(clause string) int {
	hidden := wording.Lower(masked(clause))
	from := -1
	if m := circumstances.FindStringIndex(hidden); m != nil {
		from = m[0]
	}
	for _, m := range purpose.FindAllStringSubmatchIndex(hidden, -1) {
		if (from < 0 || m[0] < from) && !slices.Contains(noPurpose, hidden[m[2]:m[3]]) &&
			!obliged.MatchString(hidden[:m[0]]) &&
			!(slices.Contains(yielding, hidden[m[2]:m[3]]) && instruction.MatchString(hidden)) {
			from = m[0]
		}
	}
	if m := moreTo.FindStringIndex(hidden); m != nil && (from < 0 || m[1]-4 < from) {
		from = m[1] - len(" to ")
	}
	for _, m := range atPlace.FindAllStringIndex(clause, -1) {
		if (from < 0 || m[0] < from) && atName.MatchString(clause[m[0]:]) {
			from = m[0]
		}
	}
	return from
}

// mainSpans returns the values of a clause before its circumstances, or all if those before have none.
func mainSpans(clause string) []span {
	list := spans(clause)
	from := circumstancesAt(clause)
	if from < 0 {
		return list
	}
	if strings.Contains(clause[from:], "=") && !strings.Contains(clause[:from], "=") &&
		!atName.MatchString(clause[from:]) {
		return list // the circumstances show the result
	}
	n := 0
	for n < len(list) && list[n].start < from {
		n++
	}
	low := wording.Lower(clause)
	given := func(v span) bool { return v.name || definite.MatchString(low[:v.start]) }
	if n == 0 || !slices.ContainsFunc(list[:n], func(v span) bool { return !given(v) }) {
		return list
	}
	return list[:n]
}

// verbs stand before the value of a clause.
var verbs = []string{" is ", " are ", " equals ", " = ", " be ", " gives ", " give ", " get ", " have ", " gets ",
	" has ", " had ",
	" makes ", " made ", " costs ", " cost ", " earns ", " earned ", " needs ", " needed ", " takes ", " take ",
	" took ", " scored ", " sold ", " sells ", " pays ",
	" paid ", " spends ", " spent ", " saves ", " saved ", " contains ", " receives ", " received ", " uses ",
	" used ",
	" weighs ", " was ", " were ", " reads ", " runs ", " travels ", " covers ", " bought ", " buys ", " eats ",
	" ate ",
	" wins ", " won ", " leaves ", " leaving ", " remain ", " yields ", " find ", " obtain ", " got ", " multiply ",
	" multiplies ", " comes ", " come ", " amounts ", " amount ", " equal ", " make ", " making ", " gave ",
	" own ", " owns ",
	" holds ", " hold ", " measures ", " totals ", " paying ", " score ", " earn ", " sell ", " spend ", " travel ",
	" drives ", " drove ", " cover ", " covered ", " read ", " walks ", " walked ", " ran ", " holding "}

// choiceOfSpan picks the value of a clause: the first after its last verb, else the last formula, else the last
// number. Names count only if there is nothing else.
func choiceOfSpan(clause string, list []span) (span, bool) {
	if len(list) == 0 {
		return span{}, false
	}
	hidden, verb := wording.Lower(masked(clause)), -1
	if end := list[len(list)-1].end; end < len(hidden) { // verbs after the last value have none
		hidden = hidden[:end]
	}
	for _, w := range verbs {
		if k := strings.LastIndex(hidden, w); k > verb {
			verb = k
		}
	}
	if k := strings.LastIndexByte(hidden, '='); k >= 0 && resultSign.MatchString(hidden[k:]) &&
		(k > verb || !assigned.MatchString(hidden[:k])) {
		verb = k // 4+5=9 points in the 40 minutes
	}
	if verb < 0 {
		verb = unlistedVerb(hidden, list)
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

// assigned matches what stands before the equals sign of a name.
var assigned = lazy(`(?:^|[ (])[a-z] ?$`)

// unlistedVerb returns the index of a word before a value that ends as verbs do: lays 64 eggs.
func unlistedVerb(clause string, list []span) int {
	for _, v := range list {
		if v.name || v.start > len(clause) {
			continue
		}
		m := inflected.FindStringSubmatchIndex(clause[:v.start])
		if m != nil && !slices.Contains(noVerbs, clause[m[2]:m[3]]) {
			return m[2]
		}
	}
	return -1
}

// inflected matches a last word in -s or -ed.
var inflected = lazy(`[a-z] ([a-z]+(?:s|ed)) $`)

// noVerbs are words in -s and -ed before a number that are not verbs.
var noVerbs = []string{"its", "his", "this", "as", "plus", "minus", "times", "less", "unless", "these", "those",
	"others",
	"perhaps", "thus", "is", "was", "across", "besides", "divided", "multiplied", "increased", "decreased"}

// resultSign matches an equals sign before a number.
var resultSign = lazy(`^= ?[$€£]?[-−]?[0-9.]`)

// step matches what joins the numbers of a calculation.
var step = lazy(`^[-+*/×÷·x=()−–$ ]*$`)

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
		if m := rootCall.FindString(clause[i:]); m != "" && (i == 0 || clause[i-1] == ' ') {
			list = append(list, span{i, i + len(m), m, false})
			i += len(m)
			continue
		}
		if m := pair.FindString(clause[i:]); m != "" {
			list = append(list, span{i, i + len(m), m, false})
			i += len(m)
			continue
		}
		if n := len(plainRelation.FindString(clause[i:])); n > 0 && (i == 0 || clause[i-1] == ' ') {
			list = append(list, span{i, i + n, strings.TrimRight(clause[i:i+n], " ."), false})
			i += n
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

// pair matches the coordinates of a point, or an interval, in prose.
var pair = lazy(`^[(\[][-−]?(?:[0-9][0-9./]*|∞)(?:, ?[-−+]?(?:[0-9][0-9./]*|∞))+[)\]]`)

// rootCall matches a root in the notation of programs.
var rootCall = lazy(`^[-−]?(?:[0-9]+ ?\*? ?)?sqrt\([^()]*\)(?: ?/ ?[0-9]+)?`)

// plainRelation matches an inequality without delimiters.
var plainRelation = lazy(`^(?:` + bound + ` ?(?:<=?|≤|>=?|≥) ?)?[a-z] ?(?:<=?|≤|>=?|≥|≠) ?` + bound)

// bound is a number in an inequality.
const bound = `[-−]?[0-9]+(?:[./][0-9]+)?`

// isName reports whether a formula is a variable or the letters of points.
func isName(s string) bool {
	return s != "" && len(s) < 12 && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && r != ' ' && r != '\\' && r != '_' && r != '{' && r != '}'
	}) < 0 && !strings.Contains(s, "text") && !strings.Contains(s, "infty") && !strings.Contains(s, "pi")
}

// lastSide returns the right side of the last of several equals signs: the others are steps.
func lastSide(s string) string {
	if k := strings.LastIndex(s, "\\equiv"); k >= 0 && !strings.Contains(s[k:], ",") {
		if strings.Contains(s[k:], "mod") {
			return s[k:] // the modulus belongs to the sign
		}
		return strings.TrimSpace(s[k+len("\\equiv"):])
	}
	if k := strings.LastIndex(s, "="); k >= 0 && strings.Count(s, "=") > 1 && !joined.MatchString(s) &&
		!strings.ContainsAny(s[k:], ",<>") {
		if j := strings.Index(s, ","); j < 0 || j > k {
			return strings.TrimSpace(s[k+1:])
		}
	}
	return s
}

// joined matches what joins equations: or, and, in words or signs.
var joined = lazy(`(?:\b|\\l)(?:or|and)\b|\\vee\b|\\wedge\b|[∨∧]`)

// plainValue matches a number in prose, with currency, fraction and per cent sign, or a time of day.
var plainValue = lazy(`^(?:[0-9]+(?::| : )[0-9]+(?:(?::| : )[0-9]+)?|[-−]?(?:[0-9]+(?:/[0-9]+)?)?√(?:[0-9]+|\([^()]*\))(?:/[0-9]+)?|[0-9]{1,2}:[0-9]{2}(?i: ?[ap]\.?m\b\.?)?|[$€£] ?[0-9]{1,3}(?: [0-9]{3})+\b|(?:[$€£¥] ?)?[-−]?(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)` +
	`(?: ?/ ?[0-9]+|(?: [0-9]+/[0-9]+))?(?: ?\\?%|°(?:[CF]\b)?)?(?: ?(?:π|pi\b))?)`)

// factorial matches the exclamation mark of a factorial, which more follows: 8! ways.
var factorial = lazy(`^! ?[a-z=+*/×·-]`)

// numberAt returns the length of the number at clause[i:], 0 if it is part of a name.
func numberAt(clause string, i int, money bool) int {
	c := clause[i]
	if !wording.IsDigit(c) && c != '-' && c != '.' && c != '$' && c < 0x80 || c == '$' && !money ||
		i > 0 && (wording.IsLetter(clause[i-1]) || wording.IsDigit(clause[i-1]) || clause[i-1] == '.') {
		return 0
	}
	n := len(plainValue.FindString(clause[i:]))
	if n > 0 && factorial.MatchString(clause[i+n:]) {
		n++
	}
	if rest := clause[i+n:]; n > 0 && rest != "" && (wording.IsLetter(rest[0]) ||
		len(rest) > 1 && rest[0] == '-' && wording.IsLetter(rest[1])) {
		return 0 // 4th, 8-digit
	}
	return n
}

// beforeVerb returns the words up to a form of "be", which does not belong to a unit.
func beforeVerb(words []string) []string {
	k := slices.IndexFunc(words, func(w string) bool {
		return slices.Contains([]string{"is", "are", "was", "were"}, w)
	})
	if k < 0 {
		return words
	}
	return words[:k]
}

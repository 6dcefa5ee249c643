package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"exp/eval/grade/wording"
)

// Which sentence at the end of a text gives its answer.

// backEnd ends a verdict on what went before, or leads to its reason: "That is wrong for odd n" takes nothing back.
const backEnd = `(?:["')*]*\s*$|[.!?,;:]| [—–-]| (?:so|because|since|but|and|as|either|after)\b)`

// takesBack matches a sentence that takes back the one before it: That is wrong. No, because … Wait, I forgot …
var takesBack = lazy(`(?i)^[^a-z]*(?:(?:nope|wait|hmm+|oops|hold on|hang on)\b|` +
	`(?:no|wrong|incorrect|sorry)(?:[.,!?:;—–-]|\s*$| (?:wait|because|that|this|it|the|i|my|we|sorry)\b| [-−—–$\\0-9])|` +
	`scrap that\b|correction:|` +
	`(?:actually|correction|on second thought|on reflection),? (?:it|this|that|no|wait|i (?:made|was|forgot|missed)|` +
	`the (?:correct |right |final |real )?(?:answer|result|value))\b|` +
	`not (?:quite|right|correct|necessarily|exactly)\b|but (?:that|this|it|wait)\b|` +
	`(?:but )?i(?:'m not| am not| doubt| do not| don't) ?(?:sure|think|believe|it|that)?\b|` +
	`(?:but )?(?:that|this|which|it)(?: [a-z]+){0,2}? ?(?:is|was|seems|looks|must be|'s)(?: [a-z]+)? ?` +
	`(?:too(?: [a-z]+)?|wrong|incorrect|off|mistaken|absurd)` + backEnd + `|` +
	`(?:but )?(?:that|this|which)(?: [a-z]+){0,2}? ?(?:is|was|seems|looks|must be|'s)(?: [a-z]+)? ?` +
	`(?:impossible|false)` + backEnd + `|` +
	`(?:but )?(?:that|this|which|it)(?: [a-z]+){0,2}? ?(?:(?:is|was|can|could|would|does|did)(?:n't| ?not| never)|can't) ` +
	`(?:[a-z]+ ){0,2}(?:right|correct|answer|work|be|valid|it|hold|enough)` + backEnd + `|` +
	`(?:but )?(?:that|this|which)(?: [a-z]+){0,2}? ?(?:(?:is|was|can|could|would|does|did)(?:n't| ?not| never)|can't) ` +
	`(?:[a-z]+ ){0,2}(?:true|possible)` + backEnd + `)`)

// courtesy matches a line that only takes leave.
var courtesy = lazy(`(?i)\b(?:hope (?:this|that|it)|let me know|feel free|thank|happy to help|good luck|` +
	`any (?:other |more |further )?questions|anything else)`)

// calculation matches a calculation with its result.
var calculation = lazy(`[-+*/×÷] ?[$€£]?[0-9][0-9.,]*[a-z /]*= ?[$€£]?[-−]?[0-9.]`)

// sentenceEnds matches the end of a sentence that another follows.
var sentenceEnds = lazy(`(?:(?:[.!?。]["'*)]*\s+["'*(]*|\x01|\\end\{[a-z]+\*?\})[A-Z$\\∴→]|` +
	`[.!?。]["'*)]*\s+(?:[*]{2}\x01|[0-9]))`)

// title matches an abbreviation whose full stop ends no sentence.
var title = lazy(`\b(?:Mr|Mrs|Ms|Dr|St|Prof|No|vs|approx|etc|e\.g|i\.e)$`)

var (
	// abbreviated matches an abbreviation before a number, mostly of a unit: 7 ft. 2 in., No. 5.
	abbreviated = lazy(`(?i)(?:[0-9$] ?(?:ft|in|yds?|mi|h|hrs?|mins?|m|s|secs?|lbs?|oz|gal|qt|pt|cups?|[cmk]m|[mk]?g|` +
		`m?l|cu|sq)|\b(?:no|nos|approx|ca|fig|eq|ex|ch|vol|sec|p|pp|vs|etc|e\.g|i\.e|cf|jan|feb|mar|apr|jun|jul|aug|sept?|` +
		`oct|nov|dec))$`)
	// wordsAfterNumber matches a number at the start of a sentence, verbAfterNumber one that a verb follows soon.
	wordsAfterNumber = lazy(`^[0-9][0-9.,/%]* [a-z]{2,}`)
	verbAfterNumber  = lazy(`^[0-9][0-9.,/%]* (?:[a-z]+ ){0,3}(?:is|are|was|were|would|does|did|do|has|have|had|` +
		`will|can|cannot|could|should|might|must|seems?|looks?)\b`)
)

// endsBeforeNumber reports whether a full stop between two texts, the second with a number at its start, ends a
// sentence. It does not after an abbreviation or the number of a point: 7 ft. 2 in., 1. 5 apples.
func endsBeforeNumber(before, after string) bool {
	if abbreviated.MatchString(before[max(0, len(before)-20):]) {
		return false
	}
	if after = after[:min(len(after), 100)]; wording.AllDigits(strings.TrimSpace(before)) {
		return verbAfterNumber.MatchString(after)
	}
	return wordsAfterNumber.MatchString(after)
}

// sentencesOf splits a text into sentences with their signs.
func sentencesOf(s string) []string {
	hidden := masked(s)
	var list []string
	from, at := 0, 0
	for at < len(s) {
		m := sentenceEnds.FindStringIndex(hidden[at:])
		if m == nil {
			break
		}
		if title.MatchString(hidden[from : at+m[0]]) { // Mr. Tan
			at += m[1]
			continue
		}
		k := at + m[1]
		if wording.IsDigit(hidden[k-1]) && !endsBeforeNumber(hidden[from:at+m[0]], hidden[k-1:]) {
			at = k
			continue
		}
		_, n := utf8.DecodeLastRuneInString(hidden[:k])
		for k -= n; k > from && strings.IndexByte("\"'*(", s[k-1]) >= 0; k-- {
		}
		list = append(list, strings.TrimSpace(s[from:k]))
		from, at = k, k
	}
	return append(list, strings.TrimSpace(s[from:]))
}

// isQuestion reports whether a sentence asks.
func isQuestion(s string) bool {
	return strings.HasSuffix(strings.TrimRight(s, " *\"')"), "?")
}

// hasValue reports whether a sentence has a number, a formula or a number in words.
func hasValue(s string) bool {
	if strings.ContainsAny(s, "0123456789$\\") {
		return true
	}
	_, ok := numberInWords(s)
	return ok
}

// finalSentence returns the sentence at the end of a text that gives its answer; empty if that sentence asks, or
// the next takes it back.
func finalSentence(s string) string {
	list := sentencesOf(s)
	for n := len(list) - 1; n > 0 && addsOnly(list[n], list[n-1]); n-- {
		list = list[:n]
	}
	const most = 3 // sentences without a value after the one with it
	for i := len(list) - 1; i >= 0 && i >= len(list)-1-most; i-- {
		switch t := list[i]; {
		case isQuestion(t):
			return ""
		case rejects(t), !hasValue(t) && !leavesIt(t), hasValue(t) && !asserts(t) && !recalled.MatchString(t):
			return ""
		case hasValue(t):
			if i+1 < len(list) && takesBack.MatchString(list[i+1]) ||
				i > 0 && isQuestion(list[i-1]) && takesBack.MatchString(t) {
				if m := instead.FindStringSubmatch(t); m != nil {
					return m[1]
				}
				return ""
			}
			return t
		}
	}
	return list[len(list)-1]
}

// recalled matches a sentence that recalls the question and answers it: The question asks for the sum, so 42.
var recalled = lazy(`(?i)\basks? (?:for|about|us|how|what)\b.*(?:, so|:|, which is) (?:the answer is )?[$−-]?[0-9\\][^ ]*$`)

// remark matches the start of a sentence after the answer: To check, we see that …
var remark = lazy(`(?i)^\(?(?:to (?:check|verify|double-check)|check(?:ing)?\b|note\b|notice\b|see if\b|` +
	`as (?:an? )?(?:extra|additional|further|exercise)|alternatively|remark|this (?:matches|agrees)|` +
	`(?:we|you) can (?:also |even )?(?:check|verify)|it is (?:also )?easy to (?:check|verify))`)

// unfit matches words that say an answer does not do, opposing those that lead to another answer.
var (
	unfit = lazy(`\b(?:(?:not|n't) (?:work|right|correct|satisf|hold|fit|possible|equal|match|valid)|` +
		`fails?\b|wrong|incorrect|contradict|impossible)`)
	opposing = lazy(`\b(?:however|but|instead|actually|answer|should)\b`)
)

// isRemark reports whether a sentence only adds something to an answer before it, and does not take it back.
func isRemark(s string) bool {
	low := wording.Lower(s)
	return isAdded(s) && !takesBack.MatchString(s) && !unfit.MatchString(low) &&
		(!opposing.MatchString(low) || praise.MatchString(s))
}

// isAdded reports whether a sentence stands between brackets or begins as a remark.
func isAdded(s string) bool {
	inside := strings.HasPrefix(s, "(") && strings.HasSuffix(strings.TrimRight(s, "."), ")")
	return inside || remark.MatchString(s) || praise.MatchString(s)
}

// praise matches a sentence that calls what precedes it the answer, or ends the solution.
var praise = lazy(`(?i)^(?:and |so )?(?:(?:this|that)(?: is|'s) (?:the|our|my|your) (?:[a-z]+ )?` +
	`(?:answer|result|solution)|(?:we are|we're) done|done)[.!]*$`)

// addsOnly reports whether a sentence leaves the answer of the one before it as it is.
func addsOnly(s, before string) bool {
	switch {
	case affirmed.MatchString(before) && strings.HasPrefix(s, "For "): // Yes. For example, …
		return true
	case !hasValue(before):
		return otherOptions.MatchString(s) && chosen(before) != ""
	}
	return isRemark(s) || otherOptions.MatchString(s) && chosen(before) != "" || isAboutOthers(s, before) &&
		(withoutDenied(s) == "" || isAdded(s) && unfit.MatchString(wording.Lower(s)) &&
			!opposing.MatchString(wording.Lower(s)))
}

// isAboutOthers reports whether a sentence has values, and none that the one before it has: It is easy to see that 16
// is impossible.
func isAboutOthers(s, before string) bool {
	list, named := spans(s), spans(before)
	return len(list) > 0 && !takesBack.MatchString(s) && !slices.ContainsFunc(list, func(v span) bool {
		t := Statement(v.text)
		return slices.ContainsFunc(named, func(w span) bool {
			u := Statement(w.text)
			return u == t || strings.HasSuffix(strings.ReplaceAll(u, " ", ""), "="+t)
		})
	})
}

// rejects reports whether the last clause of a sentence takes its value back: 12, which does not fit.
func rejects(s string) bool {
	k := strings.LastIndex(masked(s), ", ")
	return k > 0 && rejected.MatchString(s[k+2:]) && !hasValue(s[k:])
}

// instead matches an answer after "no": No: it is 36.
var instead = lazy(`^(?:No|Nope)[,:;.!—-]+ (?:it|that|this) is ([$€£]?[-−]?[0-9][^ ]*)$`)

// standsBack reports whether an answer phrase asks, or what follows its sentence takes it back.
func standsBack(after string) bool {
	if k := strings.IndexByte(after, '\n'); k > 0 && strings.TrimSpace(after[:k]) != "" {
		after = after[:k]
	}
	list := sentencesOf(tailless(after))
	return isQuestion(list[0]) || rejects(list[0]) || len(list) > 1 && takesBack.MatchString(list[1]) &&
		!truthValue.MatchString(list[0])
}

// tailless cuts a text off after some hundred bytes.
func tailless(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	k := most
	for k > 0 && !utf8.RuneStart(s[k]) {
		k--
	}
	return s[:k]
}

// marker matches what begins a heading, a point of a list or a quotation: "## ", "3. ", "- ", "Step 3: ".
var marker = lazy(`^(?:[-*•>+] +|#{1,6} +|\(?[0-9]{1,2}[.)] +(?:[A-Za-z*$])|(?:\*\*)?[Ss]tep [0-9]+[:.)]+(?:\*\*)? *)`)

// withoutMarker drops the marker of a point of a list.
func withoutMarker(s string) string {
	for range 2 {
		m := marker.FindString(s)
		if m == "" {
			break
		}
		n := len(m)
		if last := m[n-1]; wording.IsLetter(last) || last == '*' && !strings.HasSuffix(m, "**") || last == '$' {
			n-- // the first character of the text
		}
		s = s[n:]
	}
	return s
}

// ended matches the signs of a finished proof.
var ended = lazy(`(?:\s*(?:\$?\\(?:blacksquare|qed|square|Box|checkmark)\$?|[∎□■✓✔✅☑]|Q\.?E\.?D\.?|[:;]-?\)))+\.?\s*$`)

// withoutOrnament drops proof marks and pictures, but no units, from the end of a text.
func withoutOrnament(s string) string {
	const most = 100 // bytes of marks
	s = strings.TrimSpace(s)
	end := tail(s, most)
	s = s[:len(s)-len(end)] + ended.ReplaceAllString(end, "")
	return strings.TrimRightFunc(s, func(r rune) bool {
		picture := unicode.Is(unicode.So, r) && !strings.ContainsRune("°℃℉❌✗✘❎🚫⛔👎", r)
		return picture || r == 0xfe0f || r == 0x200d || unicode.IsSpace(r)
	})
}

// short are contractions, written out.
var short = strings.NewReplacer("It's ", "It is ", "it's ", "it is ", "That's ", "That is ", "that's ", "that is ",
	"There's ", "There is ", "there's ", "there is ", "isn't ", "is not ", "aren't ", "are not ", "can't ", "cannot ",
	"He's ", "He is ", "he's ", "he is ", "She's ", "She is ", "she's ", "she is ",
	"It’s ", "It is ", "it’s ", "it is ", "That’s ", "That is ", "that’s ", "that is ", "isn’t ", "is not ")

// givenBy returns the answer that the sentence at the end gives, or an empty text.
func givenBy(s string) string {
	switch {
	case s == "":
		return ""
	case falls.MatchString(s) && !wording.Unsettled(lastPart(s)):
		return falls.FindStringSubmatch(s)[1]
	case label.MatchString(s):
		return reduce(label.ReplaceAllString(s, "$1"))
	case labelledFormula(s) != "":
		return labelledFormula(s)
	case chosen(s) != "":
		return chosen(s)
	case concluding.MatchString(s) && isValue(concluding.ReplaceAllString(s, "")):
		return reduce(concluding.ReplaceAllString(s, ""))
	case quality.MatchString(s):
		return said(quality.FindStringSubmatch(s)[1])
	case hasValue(s):
		t := reduce(s)
		if described.MatchString(s) && (isName(t) || strings.HasPrefix(t, "$") && strings.Count(t, "$") == 2) {
			return said(s) // $f$ is an even function
		}
		return t
	case affirmed.MatchString(s):
		return affirmed.FindStringSubmatch(s)[1]
	}
	return said(s)
}

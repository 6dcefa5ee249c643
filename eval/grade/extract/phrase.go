package extract

import (
	"slices"
	"strings"

	"exp/eval/grade/wording"
)

// phrases introduce an answer, in lower case. "a:", "ans:" and "ans." count only at the start of a line, "answer"
// without a colon only as a heading.
var phrases = []string{"answer is", "answers are", "answer:**", "answer**:", "answer**", "answer\n", "answer:",
	"answer :", "answer =", "answer equals", "answer would be", "answer must be", "answer to the problem is", "####",
	"answer__:", "answer →", "answer ->", "answer —", "answer –", "ans.", "答案是", "答案为", "答案:",
	"答案：", "答案】", "故选:", "故选：", "故选", "所以选", "因此选", "本题选", "应选", "正确选项是", "正确选项为", "a:", "ans:"}

// answerPhrase takes the text after the last phrase that has any after it.
func answerPhrase(s string) (Found, bool) {
	end := len(s)
	for range 6 {
		start, after := lastPhrase(s[:end])
		if start < 0 {
			break
		}
		if standsBack(s[after:]) || isSupposed(s[:start], s[start:after]) ||
			noAnswer.MatchString(tail(s[:start], 40)) {
			end = start
			continue
		}
		if t := reduceMarked(firstValue(sentence(s[after:]))); t != "" && !doubted(s[:start]) {
			f := Found{Text: t, How: "answer phrase", Sure: true}
			n := strings.TrimSuffix(t, "!")
			if n != t && wording.AllDigits(n) && !formulaEnd.MatchString(s[after:]) {
				f.Also = n // the answer is 15!
			}
			return f, true
		}
		end = start
	}
	return Found{}, false
}

// formulaEnd matches what shows that an exclamation mark is a factorial sign: the end of a formula or a full stop.
var formulaEnd = lazy(`!\s*(?:\.|\$|\\\)|\\\])`)

// firstValue returns the first sentence of a marked answer if it is the answer and the next only adds to it:
// 12. (A typo says 13.), 12. 3 of them are red.
func firstValue(s string) string {
	if m := valueThenClause.FindStringSubmatch(s); m != nil && !wording.Unsettled(m[2]) &&
		!strings.Contains(m[2], "nswer") && !denied(wording.Lower(m[2])) {
		return m[1]
	}
	list := sentencesOf(tailless(s))
	if len(list) < 2 || list[1] == "" {
		return s
	}
	first, next := Statement(list[0]), list[1]
	_, letter := ChoiceIn(first)
	switch {
	case next[0] == '(' && isValue(first),
		answerInWords.MatchString(first) && hasValue(next) && concluded(next) == "",
		wording.IsDigit(next[0]) && (isValue(first) || letter || nameOnly.MatchString(first)) && !isValue(next) &&
			!strings.Contains(next, "=") && concluded(next) == "":
		return list[0]
	}
	return s
}

// valueThenClause matches a value and a clause about it: 12; we checked it for n = 3.
var valueThenClause = lazy(`^(\$[^$\n]+\$|[-−€£]*[0-9][0-9.,/]*%?); ((?:we|i|this|all|the other|note|as|since|because) ` +
	`[^\n]*)`)

var (
	// answerInWords matches answers without a value.
	answerInWords = lazy(`(?i)^(?:none|unknown|undefined|nothing|nobody|infinit(?:y|e)|impossible|indeterminate|` +
		`inconclusive|no (?:real |such |integer )?(?:solutions?|answer|value|number|limit)|(?:it )?(?:does not|doesn't) exist|dne|` +
		`(?:it )?(?:cannot|can't) be determined|not defined|(?:the )?empty set|(?:i )?(?:do not|don't) know)$`)
	// nameOnly matches a name.
	nameOnly = lazy(`^[A-Z][a-z]+$`)
)

// noAnswer matches words before an answer phrase that make it name none: No answer equals 36, the wrong answer is 36.
var noAnswer = lazy(`(?i)\b(?:no|not an?|not the|wrong|incorrect|false|neither)(?: (?:other|` +
	`final|correct|` +
	`right|possible))* $|\b(?:not|n't|never|cannot) (?:think|believe|say|mean|claim|imply|true|correct|right|` +
	`the case|certain|` +
	`sure)(?: that)?(?: (?:the|our|my|final|correct))* $|` + somethingOf + `$`)

// isSupposed reports whether an answer phrase is hypothetical: If x were 3, the answer would be …; Suppose the
// answer is …
func isSupposed(before, phrase string) bool {
	before = " " + wording.Lower(before[strings.LastIndexAny(before, ".!?\n")+1:])
	if strings.HasSuffix(wording.Lower(phrase), "would be") && strings.Contains(before, " if ") {
		return true
	}
	return supposition.MatchString(before)
}

// supposition matches what makes the answer after it an assumption.
var supposition = lazy(
	`\b(?:suppose|supposing|assume|assuming|if|whether|imagine|pretend|say)(?: that)?(?: (?:the|our|my|final|` +
		`correct))* $|(?:如果|假如|假设|倘若|若)(?:最终|正确)?的?$`)

// doubted reports whether the words before an answer phrase take it back: I doubt the answer is, half the answer is.
func doubted(before string) bool {
	before = certain.ReplaceAllString(wording.Lower(tail(before, maxStatement)), "")
	words := strings.FieldsFunc((lastWords(before[strings.LastIndexAny(before, ".!?\n:")+1:], 5)),
		notLetter)
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"doubt", "nobody", "half", "twice", "unlikely", "whether"}, w)
	})
}

// lastPhrase finds the last phrase in one pass from the end.
func lastPhrase(s string) (start, after int) {
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case 'a', 'A':
			if i+2 >= len(s) || (s[i+1]|0x20 != 'n' || s[i+2]|0x20 != 's') && s[i+1] != ':' {
				continue // most positions; |0x20 is lower case
			}
		case '#', "答"[0], "故"[0], "因"[0]: // also 所, 正, 本; 应
		default:
			continue
		}
		best := 0
		for _, p := range phrases {
			if len(p) <= best || len(s)-i < len(p) || wording.Lower(s[i:i+len(p)]) != p {
				continue
			}
			start := true
			if n := i + len(p); n < len(s) && wording.IsLetter(p[len(p)-1]) &&
				(wording.IsLetter(s[n]) || s[n] == '\'') {
				continue // answer isn't
			}
			switch p {
			case "a:", "ans:", "ans.":
				start = i == 0 || s[i-1] == '\n'
			case "answer\n": // a heading
				start = strings.HasPrefix(strings.TrimLeft(s[strings.LastIndexByte(s[:i], '\n')+1:], " "), "#")
			}
			if start {
				best = len(p)
			}
		}
		if best > 0 {
			return i, i + best
		}
	}
	return -1, 0
}

// lastIndex is strings.LastIndex with a fast check for texts without sub.
func lastIndex(s, sub string) int {
	if !strings.Contains(s, sub) {
		return -1
	}
	return strings.LastIndex(s, sub)
}

// interjected matches an adverb between commas.
var interjected = lazy(`^, (?:again|therefore|thus|hence|then|of course|indeed|as before|once again|finally), `)

// roughly matches an adverb between brackets.
var roughly = lazy(`^\((?:approximately|about|roughly|exactly)\) `)

// bullets matches the points of a list, or a quotation, after a line that ends.
var bullets = lazy(`^[ *:_]*\n\s*((?:[-*•>] [^\n]+(?:\n|$))+)`)

// bulleted returns the points of a list that begins the text with commas between them, else the text.
func bulleted(s string) string {
	if !strings.HasPrefix(strings.TrimLeft(s, " *:_"), "\n") {
		return s
	}
	m := bullets.FindStringSubmatch(tailless(s))
	if m == nil {
		return s
	}
	var points []string
	for _, line := range strings.Split(strings.TrimSpace(m[1]), "\n") {
		_, point, _ := strings.Cut(line, " ")
		points = append(points, Statement(point))
	}
	return strings.Join(points, ", ")
}

// loneBold matches the end of an emphasis whose beginning is cut off, before other words.
var loneBold = lazy(`^([^*\n]*[^*\s])(\*\*?) [^*\n]*(?:\n|$)`)

// sentence returns what follows an answer phrase: the first nonblank line or a displayed formula, up to "I
// hope it is correct".
func sentence(s string) string {
	s = bulleted(s)
	if t := strings.TrimLeft(s, " \t\r\n*:：→}"); strings.HasPrefix(t, "_") {
		s = strings.TrimRight(t, " ._\n")
	}
	bare := strings.TrimLeft(s, " \t\r\n*:：_→—–}")
	if m := loneBold.FindStringSubmatch(bare); m != nil &&
		(m[2] == "**" || strings.HasSuffix(s[:len(s)-len(bare)], "*")) {
		bare = m[1] + bare[len(m[1])+len(m[2]):] // **5** apples
	}
	s = bare
	s = strings.TrimLeft(strings.TrimPrefix(s, "..."), " ")
	s = interjected.ReplaceAllString(s, "")
	s = roughly.ReplaceAllString(s, "")
	if len(s) > maxStatement {
		s = s[:maxStatement]
	}
	for _, d := range [][2]string{{"$$", "$$"}, {"\\[", "\\]"}} {
		if after, ok := strings.CutPrefix(s, d[0]); ok {
			if k := strings.Index(after, d[1]); k >= 0 {
				return after[:k]
			}
		}
	}
	if strings.HasPrefix(s, "\\begin{align") && strings.Contains(s, "\\end{align") {
		return lastRow(s[:strings.Index(s, "\\end{align")] + "\\end{")
	}
	if strings.HasPrefix(s, "\\begin") {
		return s
	}
	if k := strings.Index(s, "I hope"); k >= 0 {
		s = s[:k]
	}
	s = strings.TrimSpace(s)
	if k := strings.IndexByte(s, '\n'); k >= 0 {
		line := strings.TrimSpace(s[:k])
		if line == "\\(" || line == "$" || strings.HasSuffix(line, "\\\\") ||
			strings.Count(line, "{") > strings.Count(line, "}") {
			return s
		}
		s = line
	}
	return withoutOrnament(s)
}

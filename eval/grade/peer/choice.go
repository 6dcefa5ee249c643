package peer

import (
	"unicode"
	"unicode/utf8"

	"exp/eval/grade"
	"exp/eval/grade/pattern"
)

// gpqaAnswer is simple-evals' ANSWER_PATTERN_MULTICHOICE (common.py), which verl's recipe r1 uses, too.
var gpqaAnswer = pattern.New(`(?i)Answer[ \t]*:[ \t]*\$?([A-D])\$?`)

// GPQA grades as simple-evals does for GPQA and MMLU: the first "Answer:" with one of four letters. It also finds a
// letter in lower case, which is then wrong, and the A of "Answer: Actually, …".
func GPQA(gold, response string) grade.Verdict {
	m := gpqaAnswer.FindStringSubmatch(response)
	if m == nil {
		return verdict(false, "", `no "Answer:" with a letter`)
	}
	return verdict(m[1] == gold, m[1], equalText(m[1] == gold))
}

// Patterns of MMLU-Pro's evaluate_from_local.py, in the order in which it tries them. \s is Python's.
var (
	mmluProAnswer = pattern.New(`answer is \(?([A-J])\)?`)
	mmluProLabel  = pattern.New(`.*[aA]nswer:[\s\v\x1c-\x1f\x{85}\p{Z}]*([A-J])`)
)

// MMLUPro grades as the script of MMLU-Pro does (evaluate_from_local.py): the letter after the first "answer is", the
// letter after the last "answer:" of the first line that has one, or the last letter that stands alone. Without any
// the script draws an option; here the response is wrong.
func MMLUPro(gold, response string) grade.Verdict {
	for _, p := range []*pattern.Pattern{mmluProAnswer, mmluProLabel} {
		if m := p.FindStringSubmatch(response); m != nil {
			return verdict(m[1] == gold, m[1], equalText(m[1] == gold))
		}
	}
	letter := lastLoneLetter(response)
	if letter == "" {
		return verdict(false, "", "no letter from A to J")
	}
	return verdict(letter == gold, letter, equalText(letter == gold))
}

// lastLoneLetter returns the last letter from A to J between characters that are not of a word, or "".
func lastLoneLetter(s string) string {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < 'A' || s[i] > 'J' {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+1:])
		if (i == 0 || !isPythonWord(before)) && (i+1 == len(s) || !isPythonWord(after)) {
			return s[i : i+1]
		}
	}
	return ""
}

// isPythonWord reports whether Python's \w matches a character.
func isPythonWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

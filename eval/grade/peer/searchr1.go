package peer

import (
	"slices"
	"strings"

	"exp/eval/grade"
	"exp/eval/grade/pattern"
)

var (
	searchAnswer   = pattern.New(`(?s)<answer>(.*?)</answer>`)
	searchArticles = pattern.New(`[\p{L}\p{N}_]+`)
)

// asciiPunctuation is Python's string.punctuation.
const asciiPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// NormalizeEM is normalize_answer of the SQuAD kind: lower case, no ASCII punctuation, no articles, single
// spaces.
func NormalizeEM(s string) string {
	s = pythonLower(s)
	s = strings.Map(func(r rune) rune {
		if r < 128 && strings.ContainsRune(asciiPunctuation, r) {
			return -1
		}
		return r
	}, s)
	s = searchArticles.ReplaceAllStringFunc(s, func(w string) string {
		if w == "a" || w == "an" || w == "the" {
			return " "
		}
		return w
	})
	return strings.Join(strings.FieldsFunc(s, isPythonSpace), " ")
}

// SearchR1 is compute_score of verl's search_r1_like_qa_em.py: the last answer must be one of the targets.
// There a response with more than ten opening or closing tags scores a quarter; it still counts as right.
func SearchR1(targets []string, response string) grade.Verdict {
	all := searchAnswer.FindAllStringSubmatch(response, -1)
	if len(all) == 0 {
		return verdict(false, "", "no <answer>")
	}
	answer := strings.TrimFunc(all[len(all)-1][1], isPythonSpace)
	norm := NormalizeEM(answer)
	correct := slices.ContainsFunc(targets, func(t string) bool { return NormalizeEM(t) == norm })
	return verdict(correct, answer, equalText(correct))
}

// SearchR1Score returns the reward: score if right, a quarter of it with too many tags, formatScore for a
// wrong answer, 0 without one.
func SearchR1Score(targets []string, response string, score, formatScore float64) float64 {
	v := SearchR1(targets, response)
	switch {
	case v.Reason == "no <answer>":
		return 0
	case !v.Correct:
		return formatScore
	case strings.Count(response, "<answer>") > 10 || strings.Count(response, "</answer>") > 10:
		return score / 4
	}
	return score
}

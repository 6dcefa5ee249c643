package peer

import (
	"strings"

	"exp/eval/grade"
)

// Geo3K grades as verl's reward_score/geo3k.py does for Geometry3K, with mathruler 0.1.0: the last \boxed{…} of a
// response, or "None", by grade_answer, whose code is rllm's (PrimeAnswer). Unlike Prime it leaves a box in the gold
// answer closed, takes white space off the answer, and reads the last \boxed{ even if it does not close. The form of
// the response counts for verl's score, too (DefaultScore). A response without a box has no answer here, so that none
// votes for "None".
func Geo3K(gold, response string) grade.Verdict {
	box, ok := mathrulerBox(response)
	v := PrimeAnswer(gold, box)
	if !ok {
		v.Extracted = ""
	}
	v.Form = grade.OutOfForm
	if thinksAndBoxes(response) {
		v.Form = grade.InForm
	}
	return v
}

// mathrulerBox is extract_boxed_content of mathruler's grader.py; false without a box, which is "None".
func mathrulerBox(s string) (string, bool) {
	const mark = "\\boxed{"
	at := strings.LastIndex(s, mark)
	if at < 0 {
		return "None", false
	}
	content, depth := s[at+len(mark):], 0
	for i := range len(content) {
		switch content[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return strings.TrimFunc(content[:i], isPythonSpace), true
			}
		}
	}
	return "None", false
}

// thinksAndBoxes is format_reward of geo3k.py: the response matches <think>.*</think>.*\\boxed\{.*\}.* as a whole.
func thinksAndBoxes(s string) bool {
	s, ok := strings.CutPrefix(s, "<think>")
	for _, mark := range []string{"</think>", "\\boxed{", "}"} {
		if ok {
			_, s, ok = strings.Cut(s, mark)
		}
	}
	return ok
}

// geo3kForm is what verl's score gives for the form alone (format_score); the rest is for the answer.
const geo3kForm = 0.1

// geo3kScore is compute_score of geo3k.py.
func geo3kScore(v grade.Verdict) (score float64) {
	if v.Correct {
		score = 1 - geo3kForm
	}
	if v.Form == grade.InForm {
		score += geo3kForm
	}
	return score
}

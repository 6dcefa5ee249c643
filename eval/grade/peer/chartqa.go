package peer

import (
	"math"
	"strings"

	"exp/eval/grade"
)

// ChartQA is relaxed accuracy: relaxed_correctness of Qwen-VL's evaluate_vqa.py, which lmms-eval and VLMEvalKit copy.
// A number is right within 5 % of the gold one, also a year; a text in any case. Per cent is a hundredth on both
// sides, a gold 0 is a text, and so is any number with a comma. The sources compare whole responses, which are to be
// short; here the answer that our own grader finds in a longer one counts, too.
func ChartQA(gold, response string) grade.Verdict {
	said := strings.TrimFunc(response, isPythonSpace)
	if relaxed(said, gold) {
		return verdict(true, said, "within 5 %, or equal text")
	}
	if found := grade.Response(gold, response).Extracted; found != "" {
		said = strings.TrimFunc(found, isPythonSpace)
	}
	if relaxed(said, gold) {
		return verdict(true, said, "within 5 %, or equal text")
	}
	return verdict(false, said, "not within 5 %, and another text")
}

// mostChange is the largest relative difference of a right number.
const mostChange = 0.05

// relaxed is relaxed_correctness.
func relaxed(said, gold string) bool {
	x, ok := chartNumber(said)
	want, ok2 := chartNumber(gold)
	if ok && ok2 && want != 0 {
		return math.Abs(x-want)/math.Abs(want) <= mostChange
	}
	return pythonLower(said) == pythonLower(gold)
}

// chartNumber reads a number, or per cent.
func chartNumber(s string) (float64, bool) {
	if !strings.HasSuffix(s, "%") {
		return pythonFloat(s)
	}
	x, ok := pythonFloat(strings.TrimRight(s, "%"))
	return x / 100, ok
}

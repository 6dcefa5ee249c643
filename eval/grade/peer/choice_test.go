package peer

import "testing"

// The letters that the patterns of simple-evals' common.py and MMLU-Pro's evaluate_from_local.py find by Python 3.11.
// Of 20,000 drawn texts both graders find the same.
func TestChoiceGraders(t *testing.T) {
	for _, tt := range []struct{ response, gpqa, mmluPro string }{
		{"Answer: B", "B", "B"},
		{"answer:B, or not", "B", "B"},
		{"ANSWER :\t$B$", "B", "B"},
		{"Answer: b", "b", ""},
		{"Answer: Actually B", "A", "A"},
		{"Answer: E", "", "E"},
		{"So the answer is (B).", "", "B"},
		{"The answer is B. Answer: C", "C", "B"},
		{"Answer: C\nAnswer: B", "C", "C"},
		{"Answer: C. Answer: B\nAnswer: D", "C", "B"},
		{"Answer:\n\nB", "", "B"},
		{"Answer:\u00a0B", "", "B"},
		{"Answer:\u001cB", "", "B"},
		{"**Answer:** B", "", "B"},
		{"I choose B.", "", "B"},
		{"I choose B, not C or K\u00e9", "", "C"},
		{"A1 B_ \u00e9C D", "", "D"},
		{"The gas is CO.", "", ""},
		{"(J)", "", "J"},
		{"", "", ""},
		{"\u00e9", "", ""},
		{"B\u0301 A\u0301 \u00bd", "", "A"},
		{"Answer: (B)", "", "B"},
		{"the answer is: B", "", "B"},
		{"Answer:\u00a0B or C", "", "B"},
		{"B, then \u00e9C", "", "B"},
		{"\\boxed{B}", "", "B"},
		{"answer is (C) answer is B", "", "C"},
		{"\u2167 B \u2167", "", "B"},
		{"B\u2167", "", ""},
		{"Final answer is b; A", "", "A"},
	} {
		if v := GPQA("B", tt.response); v.Extracted != tt.gpqa || v.Correct != (tt.gpqa == "B") {
			t.Errorf("gpqa of %q: %+v, want %q", tt.response, v, tt.gpqa)
		}
		if v := MMLUPro("B", tt.response); v.Extracted != tt.mmluPro || v.Correct != (tt.mmluPro == "B") {
			t.Errorf("mmlu_pro of %q: %+v, want %q", tt.response, v, tt.mmluPro)
		}
	}
}

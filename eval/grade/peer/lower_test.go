package peer

import "testing"

// TestPythonLower: values from CPython 3.
func TestPythonLower(t *testing.T) {
	for _, tt := range [][2]string{
		{"İstanbul", "i\u0307stanbul"}, {"ΟΔΥΣΣΕΥΣ", "οδυσσευς"}, {"Σ", "σ"}, {"ΑΣ'Α", "ασ'α"}, {"ΑΣ. Β", "ας. β"},
		{"Straße", "straße"}, {"ABC", "abc"}, {"Ǆ", "ǆ"}, {"ΑΣ\u0301", "ας\u0301"},
	} {
		if got := pythonLower(tt[0]); got != tt[1] {
			t.Errorf("%q: %q, want %q", tt[0], got, tt[1])
		}
	}
	if !SearchR1([]string{"i\u0307"}, "<answer>İ</answer>").Correct {
		t.Error("İ is not i with a dot above")
	}
}

// TestPrimeExtract has a case for each branch of rllm's extract_answer and grade_answer_verl.
func TestPrimeExtract(t *testing.T) {
	for _, tt := range []struct {
		gold, response, extracted string
		want                      bool
	}{
		{"5", "\\boxed{5}", "5", true},
		{"\\boxed{5}", "\\boxed{5}", "5", true},           // the gold answer is opened
		{"so \\boxed{5}.", "\\boxed{5}", "5", true},       // and found in a solution
		{"\\boxed 5", "\\boxed{5}", "5", false},           // no brace: no gold answer
		{"\\boxed{5", "\\boxed{5}", "5", false},           // does not close
		{"5", "\\fbox{5}", "", false},                     // nor looked for without a \boxed
		{"5", "\\boxed {5}", "", false},                   // a space before the brace
		{"5", "\\boxed{5} or \\boxed", "", false},         // the last one counts, and it is empty
		{"6", "\\boxed 5 and \\boxed{6}", "6", true},      // the last one
		{"5", "\\boxed} {5}", "", false},                  // a closing brace first
		{"\\frac{1}{2}", "\\boxed{{1}/2}", "{1}/2", true}, // braces inside
		{"", "\\boxed{5}", "", false},
		{"5", "", "", false},
	} {
		if v := Prime(tt.gold, tt.response); v.Correct != tt.want || v.Extracted != tt.extracted {
			t.Errorf("gold %q, response %q: %+v, want %v with %q", tt.gold, tt.response, v, tt.want, tt.extracted)
		}
	}
}

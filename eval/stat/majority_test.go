package stat

import (
	"strings"
	"testing"
)

// sampled reads "a+ b a+ -": answers, + for correct, - for none.
func sampled(text string) (answers []string, correct []bool) {
	for _, w := range strings.Fields(text) {
		a, right := strings.CutSuffix(w, "+")
		if a == "-" {
			a = ""
		}
		answers, correct = append(answers, a), append(correct, right)
	}
	return answers, correct
}

func TestMajorityVote(t *testing.T) {
	tests := []struct {
		samples     string
		value, tied float64
	}{
		{"a+", 1, 0},
		{"a+ b b", 0, 0},
		{"b a+ a+", 1, 0},
		{"a+ b", 1, 1},
		{"b a+", 0, 1},
		{"- - a+", 1, 0}, // no answer does not form a class
		{"- -", 0, 0},
		{"b a+ c b a+", 0, 1}, // b and a twice
		{"c a+ b a+ b c", 0, 1},
		{"a+ b b a", 1, 1}, // the first of a class says whether it is correct
	}
	for _, tt := range tests {
		answers, correct := sampled(tt.samples)
		if got, want := MajorityVote(answers, correct), (Vote{tt.value, tt.tied}); got != want {
			t.Errorf("%q = %+v, want %+v", tt.samples, got, want)
		}
	}
}

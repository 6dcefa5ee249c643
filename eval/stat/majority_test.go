package stat

import (
	"math"
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

// Of equally frequent answers one vote takes the first seen, and the chance over all choices shares: of A A B B, with A
// right, 1 or 0 by the order, and 1/2.
func TestTiesOfMajorities(t *testing.T) {
	for _, tt := range []struct {
		answers []string
		first   float64
	}{{[]string{"A", "A", "B", "B"}, 1}, {[]string{"B", "A", "A", "B"}, 0}} {
		class, correct := make([]int, 4), make([]bool, 4)
		for i, a := range tt.answers {
			if a != "A" {
				class[i] = 1
			}
			correct[i] = a == "A"
		}
		if got := MajorityVote(tt.answers, correct); got != (Vote{tt.first, 1}) {
			t.Errorf("%v: the vote is %+v", tt.answers, got)
		}
		if got := WeightedVote(class, []float64{1, 1, 1, 1}, correct); got != tt.first {
			t.Errorf("%v: the weighted vote is %g", tt.answers, got)
		}
		if got := MajorityOf(class, correct, 4); math.Abs(got-0.5) > 1e-12 {
			t.Errorf("%v: the chance is %g", tt.answers, got)
		}
	}
}

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
		samples             string
		first, share, wrong float64
		tied                float64
	}{
		{"a+", 1, 1, 1, 0},
		{"a+ b b", 0, 0, 0, 0},
		{"b a+ a+", 1, 1, 1, 0},
		{"a+ b", 1, 0.5, 0, 1},
		{"b a+", 0, 0.5, 0, 1},
		{"- - a+", 1, 1, 1, 0}, // no answer is no class
		{"- -", 0, 0, 0, 0},
		{"b a+ c b a+", 0, 0.5, 0, 1}, // b and a twice
		{"c a+ b a+ b c", 0, 1.0 / 3, 0, 1},
	}
	for _, tt := range tests {
		answers, correct := sampled(tt.samples)
		for ties, want := range map[Ties]float64{TiesFirst: tt.first, TiesShare: tt.share, TiesWrong: tt.wrong} {
			if got := MajorityVote(answers, correct, ties); !near(got.Value, want, 1e-15) || got.Tied != tt.tied {
				t.Errorf("%q, ties %s = %+v, want %v, tied %v", tt.samples, ties, got, want, tt.tied)
			}
		}
	}
}

func TestMajAtK(t *testing.T) {
	// Of "a+ a+ b c": one sample is right half of the time. Of three, aab, aac: right;
	// abc twice: all three tie.
	answers, correct := sampled("a+ a+ b c")
	tests := []struct {
		k    int
		ties Ties
		want Vote
	}{
		{1, TiesFirst, Vote{0.5, 0}},
		{3, TiesFirst, Vote{1, 0.5}}, // a comes before b and c
		{3, TiesShare, Vote{(1 + 1 + 2.0/3) / 4, 0.5}},
		{3, TiesWrong, Vote{0.5, 0.5}},
		{4, TiesWrong, Vote{1, 0}},
	}
	for _, tt := range tests {
		got, exact, err := MajAtK(answers, correct, tt.k, tt.ties, 1)
		if err != nil || !exact || !near(got.Value, tt.want.Value, 1e-15) || got.Tied != tt.want.Tied {
			t.Errorf("maj@%d, ties %s = %+v, %v, %v, want %+v", tt.k, tt.ties, got, exact, err, tt.want)
		}
	}
	for _, k := range []int{0, 5} {
		if got, _, err := MajAtK(answers, correct, k, TiesFirst, 1); err == nil {
			t.Errorf("maj@%d = %v, want an error", k, got)
		}
	}
}

// C(40, 20) subsets are too many to visit. Half of the samples are right and the
// others all differ, so that the majority of twenty is right all but surely: one right
// answer against another single one happens with 20·C(20,19)/C(40,20) ≈ 3e-9.
func TestMajAtKDraws(t *testing.T) {
	var answers []string
	var correct []bool
	for i := range 20 {
		answers, correct = append(answers, "a", string(rune('b'+i))), append(correct, true, false)
	}
	got, exact, err := MajAtK(answers, correct, 20, TiesWrong, 7)
	if err != nil || exact || got.Value != 1 {
		t.Errorf("maj@20 = %+v, exact %v, %v, want 1, drawn", got, exact, err)
	}
	again, _, _ := MajAtK(answers, correct, 20, TiesWrong, 7)
	if again != got {
		t.Errorf("drawn again: %+v, want %+v", again, got)
	}
}

// Every subset comes as often as any other: 10 subsets of 2 of 5.
func TestEachSubset(t *testing.T) {
	seen := map[[2]int]int{}
	eachSubset(5, 2, func(s []int) { seen[[2]int{s[0], s[1]}]++ })
	if len(seen) != 10 {
		t.Errorf("%d subsets, want 10: %v", len(seen), seen)
	}
	for s, n := range seen {
		if n != 1 || s[0] >= s[1] {
			t.Errorf("subset %v came %d times", s, n)
		}
	}
}

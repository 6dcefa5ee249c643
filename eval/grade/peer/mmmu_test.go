package peer

import (
	"slices"
	"testing"
)

// The letters that parse_multi_choice_response of MMMU's eval_utils.py and of MMMU-Pro's evaluate.py return under Python
// 3.11 for these four options; "" where they draw one.
func TestMMMU(t *testing.T) {
	options := []string{"Oxygen", "carbon dioxide", "Neon", "<image 1>"}
	for _, tt := range []struct{ response, mmmu, pro string }{
		{"B", "B", "B"},
		{"B.", "B", "B"},
		{"(B)", "B", "B"},
		{"B. carbon dioxide", "", "B"},
		{"Answer: B", "B", "B"},
		{"Answer: B\nAnswer: (C).", "C", "C"},
		{"Answer: B or C", "C", "C"},
		{"Answer: A Neon lamp", "A", "A"},         // Neon has no capital of a letter but its N
		{"Answer: Because A", "A", "A"},           // two letters behind Answer: in Pro, so as MMMU
		{"The answer is (A), not (B).", "B", "B"}, // the last in brackets
		{"A gas. The answer is C", "C", "C"},      // A is alone, too, and the last counts
		{"C is right, and A is not", "A", "A"},
		{"I think it is carbon dioxide, of course", "B", "B"},
		{"carbon dioxide", "", ""}, // two words do not spell an option
		{"CARBON DIOXIDE is what all the plants take up, never Neon", "C", "C"},
		{"DNA and RNA", "", "A"}, // Pro needs no space before a letter
		{"none of them", "", ""},
		{"", "", ""},
		{"E", "", ""},
		{"'B'", "B", "B"},
		{"<image 1> is the one that I would choose", "D", "D"},
	} {
		q := Question{Golds: []string{"B"}, Options: options, Right: 1}
		if v := MMMU(q, tt.response); v.Extracted != tt.mmmu || v.Correct != (tt.mmmu == "B") {
			t.Errorf("mmmu of %q: %+v, want %q", tt.response, v, tt.mmmu)
		}
		if v := MMMUPro(q, tt.response); v.Extracted != tt.pro || v.Correct != (tt.pro == "B") {
			t.Errorf("mmmu_pro of %q: %+v, want %q", tt.response, v, tt.pro)
		}
	}
	if v := MMMU(Question{Golds: []string{"K"}, Options: make([]string, 12), Right: 10}, "It is (K)"); !v.Correct {
		t.Errorf("the eleventh option: %+v", v)
	}
	if v := MMMUPro(bare("B"), "Answer: (B)"); !v.Correct {
		t.Errorf("without options: %+v", v)
	}
}

// Whether eval_open of MMMU's eval_utils.py accepts what parse_open_response reads, under Python 3.11.
func TestMMMUOpen(t *testing.T) {
	for _, tt := range []struct {
		response, gold string
		want           bool
	}{
		{"251", "251", true},
		{"The total is 253.75 dollars.", "253.75", true},
		{"The total is 253.754 dollars", "253.75", true}, // two decimals
		{"So the answer is 2,000,000", "2000000", true},
		{"about 1.2e3", "1200", true},
		{"3.14, or 5", "3", true},              // 3.14 has a comma behind it, and 3 ends a word
		{"x = 3.14, y = 5", "3", false},        // only what follows the last sign counts
		{"the answer is 10 or 12", "12", true}, // any number counts
		{"It could be an embryonic stage", "embryonic", true},
		{"Tampa is in Florida", "Florida", true},
		{"transformation", "Transformation", true},
		{"so it is c", "C", true},
		{"so it is abc", "C", false}, // a character needs a space next to it
		{"so it is c or d", "C", true},
		{"MgS", "$MgS$", false},
		{"4. Then 5", "4", true},
		{"0.3\nTherefore it is 0.4", "0.3", false}, // the first line has no indicator
		{"-120", "-120", true},
		{"5-120", "-120", true}, // the minus belongs to the number
		{"12abc", "12", false},
		{"", "1", false},
		{"nan", "nan", false},
	} {
		if v := mmmuOpen([]string{tt.gold}, tt.response); v.Correct != tt.want {
			t.Errorf("%q against %q: %+v", tt.response, tt.gold, v)
		}
	}
	if v := MMMU(Question{Golds: []string{"$MgS$", "MgS"}, Right: -1}, "MgS"); !v.Correct {
		t.Errorf("the second gold answer: %+v", v)
	}
	for text, want := range map[string][]string{
		"3.14, .5 1e5 12,345 7-8 1.5e-3 2.e4": {"12,345", "1e5", "1.5e-3", "3", ".5", "5", "345", "7", "-8", "1", "-3", "2", "4"},
		"x2y 3z -.5.":                         {"-.5"},
		"1,234,567a 12,34":                    {"1,234", "34"},
	} {
		if got := mmmuNumbers(text); !slices.Equal(got, want) {
			t.Errorf("numbers of %q: %q, want %q", text, got, want)
		}
	}
}

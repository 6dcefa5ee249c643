package task

import (
	"testing"

	"exp/eval/layout"
	"exp/train/rollout"
)

// Where completions give their answer, form by form; what comes before it is kept.
func TestAnswerPlace(t *testing.T) {
	math := func(grader string) Config { return Config{Kind: "math", Math: Math{Grader: grader}} }
	for _, tt := range []struct {
		name        string
		config      Config
		source      string
		text        string
		kept, close string // kept "none": no place
	}{
		{"box", math("exp"), "", `so \boxed{12} apples`, `so \boxed{`, "}"},
		{"last box", math("prime"), "", `\boxed{1}, no: \boxed{ 2}`, `\boxed{1}, no: \boxed{ `, "}"},
		{"open box", math("math_reward"), "", `x = \boxed{1`, `x = \boxed{`, "}"},
		{"tag", math("exp"), "", "think\n<answer>\n 12 </answer>", "think\n<answer>\n ", " </answer>"},
		{"box in a tag", math("exp_strict"), "", `<answer> \boxed{12} </answer>`, `<answer> \boxed{`, "}"},
		{"tag after a box", math("exp"), "", `\boxed{1} <answer>2`, `\boxed{1} <answer>`, " </answer>"},
		{"mark", math("gsm8k_strict"), "", "2+2=4 #### 4", "2+2=4 ####", ""},
		{"label", math("math_dapo"), "", "so\nAnswer: 4", "so\nAnswer:", ""},
		{"box for a grader of labels", math("math_dapo"), "", `\boxed{4}`, `\boxed{`, "}"},
		{"a grader that reads no box", math("math_dapo_original"), "", `\boxed{4}`, "none", ""},
		{"a grader that reads tags", math("search_r1_em"), "", `\boxed{4} <answer>Oslo`, `\boxed{4} <answer>`, " </answer>"},
		{"a grader of shares", math("anls"), "", `Answer: a <answer>b`, `Answer: a <answer>`, " </answer>"},
		{"by source", math("verl"), "openai/gsm8k", `\boxed{4} #### 5`, `\boxed{4} ####`, ""},
		{"by another source", math("verl"), "lighteval/MATH", `#### 5 \boxed{4}`, `#### 5 \boxed{`, "}"},
		{"words", Config{Kind: "words"}, "", "5+3=8\n#### 8", "5+3=8\n####", ""},
		{"words, without space", Config{Kind: "words"}, "", "####8", "####", ""},
		{"words, not a line's start", Config{Kind: "words"}, "", "5+3=8 #### 8", "none", ""},
		{"stories", Config{Kind: "stories"}, "", "#### 1\n#### 2\nx", "#### 1\n####", ""},
		{"no answer", math("exp"), "", "I do not know", "none", ""},
		{"empty", Config{Kind: "words"}, "", "", "none", ""},
	} {
		p := &rollout.Problem{ID: "p"}
		if err := layout.SetFacts(p, []string{"4"}, tt.source); err != nil {
			t.Fatal(err)
		}
		x, ok := AnswerPlace(tt.config, p, tt.text)
		if ok != (tt.kept != "none") || ok && (tt.text[:x.Start] != tt.kept || x.Close != tt.close) {
			t.Errorf("%s: got %q, close %q, %v", tt.name, tt.text[:x.Start], x.Close, ok)
		}
		text, bare := WithoutReasoning(tt.config, p)
		again, ok := AnswerPlace(tt.config, p, text)
		if !ok || again != bare || bare.Start != len(text) {
			t.Errorf("%s: without reasoning it begins %q, with place %+v, but %+v is found", tt.name, text, bare, again)
		}
	}
}

func TestReferenceAnswer(t *testing.T) {
	if got := ReferenceAnswer(&rollout.Problem{Answer: " 12\n"}); got != "12" {
		t.Errorf("got %q", got)
	}
}

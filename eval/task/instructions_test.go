package task

import (
	"context"
	"strings"
	"testing"

	"exp/eval/grade/instruct"
	"exp/train/rollout"
)

func TestInstructions(t *testing.T) {
	p := rollout.Problem{ID: "p", Prompt: "Write.", Data: []byte(`{"instructions":[{"id":"punctuation:no_comma"},
		{"id":"length_constraints:number_words","args":{"num_words":3,"relation":"at least"}},
		{"id":"startend:quotation"}]}`)}
	for _, tt := range []struct {
		rules   instruct.Rules
		partial bool
		text    string
		reward  float64
		answer  string
		reason  string
	}{
		{"", false, `"one two three"`, 2, "punctuation:no_comma length_constraints:number_words startend:quotation",
			"follows 3 of 3"},
		{"", false, "one, two", -1, "", "follows 0 of 3; not punctuation:no_comma, length_constraints:number_words, " +
			"startend:quotation"},
		{"", false, "one two three", 0.5, "punctuation:no_comma length_constraints:number_words",
			"follows 2 of 3; not startend:quotation"}, // reward.format
		{"", true, "one two three", 1, "punctuation:no_comma length_constraints:number_words",
			"follows 2 of 3; not startend:quotation"},
		{"", true, "one, two", -1, "", "follows 0 of 3; not punctuation:no_comma, length_constraints:number_words, " +
			"startend:quotation"},
		{instruct.Strict, false, "Sure, here:\n\"one two three\"", 0.5, "length_constraints:number_words",
			"follows 1 of 3; not punctuation:no_comma, startend:quotation"},
		{instruct.Loose, false, "Sure, here:\n\"one two three\"", 2,
			"punctuation:no_comma length_constraints:number_words startend:quotation", "follows 3 of 3"},
		{"", false, "<think>well, hm</think>\n\"one two three\"", 2,
			"punctuation:no_comma length_constraints:number_words startend:quotation", "follows 3 of 3"},
		{"", true, "<think>\"one two three\"", -1, "", "follows 0 of 3; not punctuation:no_comma, " +
			"length_constraints:number_words, startend:quotation"}, // it is still thinking
		{"", false, "", -1, "", "follows 0 of 3; not punctuation:no_comma, length_constraints:number_words, " +
			"startend:quotation"},
	} {
		task, err := New(Config{Kind: "instructions", Reward: Reward{Correct: 2, Wrong: -1, Format: 0.5},
			Instructions: Instructions{Rules: tt.rules, Partial: tt.partial}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := task.Grade(context.Background(), &p, &rollout.Completion{Text: tt.text})
		if err != nil {
			t.Fatal(err)
		}
		if v.Status != rollout.Graded || v.Reward != tt.reward || v.Correct != (tt.reward == 2) || v.Answer != tt.answer ||
			v.Reason != tt.reason {
			t.Errorf("%+v: %+v", tt, v)
		}
	}
}

// Blank lines between thinking and the answer belong to neither. An answer without thinking keeps its blank lines.
func TestBlankLinesAfterThinking(t *testing.T) {
	task, err := New(Config{Kind: "instructions"})
	if err != nil {
		t.Fatal(err)
	}
	p := rollout.Problem{ID: "p", Prompt: "Write.", Data: []byte(`{"instructions":[{"id":"format:no_whitespace"}]}`)}
	for text, want := range map[string]bool{"<think>a b</think>\n\nnoon": true, "</think> noon": true, "noon": true,
		"\n\nnoon": false, "<think>a b</think>\n\nat noon": false, "<think>a b</think>noon\n": false} {
		v, err := task.Grade(context.Background(), &p, &rollout.Completion{Text: text})
		if err != nil || v.Correct != want {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

func TestBadInstructions(t *testing.T) {
	if _, err := New(Config{Kind: "instructions", Instructions: Instructions{Rules: "lax"}}); err == nil ||
		!strings.Contains(err.Error(), `task.instructions.rules: "lax" is neither strict nor loose`) {
		t.Error(err)
	}
	task, err := New(Config{Kind: "instructions"})
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{
		``:                                    "no instructions (data.instructions)",
		`{"instructions":[{"id":"no:such"}]}`: `unknown instruction "no:such"`,
		`{"instructions":7}`:                  "problem p: data:",
	} {
		p := rollout.Problem{ID: "p", Prompt: "Write.", Data: []byte(data)}
		if err := task.check(&p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", data, err, want)
		}
		if _, err := task.Grade(context.Background(), &p, &rollout.Completion{Text: "x"}); err == nil {
			t.Errorf("%s: graded", data)
		}
	}
}

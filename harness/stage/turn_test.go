package stage

import (
	"context"
	"slices"
	"testing"

	"exp/eval/grade/extract"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// heard remembers the text that it is to grade.
type heard struct{ text string }

func (h *heard) Grade(_ context.Context, _ *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	h.text = c.Text
	return rollout.Verdict{}, nil
}

// A completion is graded up to the first special token of the tokenizer, which has no text if it was sampled.
func TestTurnGrader(t *testing.T) {
	tok, err := tokenizer.Train(slices.Values([]string{"the answer is 9 no 8"}),
		tokenizer.TrainOptions{VocabSize: 270, Special: []string{"[STOP]", "<answer>", "</think>", "[/THINK]", "<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|return|>"}})
	if err != nil {
		t.Fatal(err)
	}
	ids := func(text string) []int32 {
		list, err := tok.Encode(text, tokenizer.Options{Added: true})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, tt := range []struct{ name, sampled, text, want string }{
		{"none", "the answer is 9", "the answer is 9", "the answer is 9"},
		{"sampled", "the answer is 9[STOP] no 8", "the answer is 9 no 8", "the answer is 9"},
		{"first", "[STOP]the answer is 9", "the answer is 9", "the answer is 9"},
		{"behind a stop string", "the answer is 9 no[STOP]", "the answer is", "the answer is"},
		{"spelled out", "", "the answer is 9[STOP] no 8", "the answer is 9"},
		{"after thinking", "no 8</think>the answer is 9", "no 8the answer is 9", "the answer is 9"},
		{"in the final channel", "<|channel|>analysis<|message|>no 8<|end|><|start|>assistant<|channel|>final<|message|>" +
			"the answer is 9<|return|>", "analysisno 8assistantfinalthe answer is 9", "the answer is 9"},
		{"in no final channel", "<|channel|>analysis<|message|>no 8<|end|>", "analysisno 8", ""},
		{"in a final channel of another turn", "<|channel|>final<|message|>9<|end|><|start|>user<|message|>no 8<|end|>" +
			"<|start|>assistant<|channel|>final<|message|>8", "final9userno 8assistantfinal8", "9"},
		{"thoughts spelled out", "", "no 8[/THINK]the answer is 9", "no 8[/THINK]the answer is 9"},
		{"of the answer", "", "the <answer>9</answer>", "the <answer>9</answer>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h heard
			g := newTurnGrader(tok, tokenizer.SpecialTexts(tok), &h)
			g.turns = extract.NewTurns(tokenizer.SpecialTexts(tok))
			c := rollout.Completion{Tokens: ids(tt.sampled), Text: tt.text}
			if _, err := g.Grade(t.Context(), nil, &c); err != nil || h.text != tt.want || c.Text != tt.text {
				t.Errorf("graded %q of %q, %v; want %q", h.text, c.Text, err, tt.want)
			}
		})
	}
}

// Blank lines behind a special </think> belong to neither; others are the answer's own.
func TestBlankLinesBehindThinking(t *testing.T) {
	tok, err := tokenizer.Train(slices.Values([]string{"the answer is 9 no 8"}),
		tokenizer.TrainOptions{VocabSize: 270, Special: []string{"</think>", "[STOP]"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ sampled, text, want string }{
		{"no 8</think>\n\n the answer [STOP]no 8", "no 8\n\n the answer no 8", "the answer "},
		{"no 8</think>\n the answer\n", "no 8\n the answer\n", "the answer\n"},
		{"\n the answer[STOP]", "\n the answer", "\n the answer"},
	} {
		tokens, err := tok.Encode(tt.sampled, tokenizer.Options{Added: true})
		if err != nil {
			t.Fatal(err)
		}
		g := newTurnGrader(tok, tokenizer.SpecialTexts(tok), nil)
		if got := g.answer(&rollout.Completion{Tokens: tokens, Text: tt.text}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.sampled, got, tt.want)
		}
	}
}

// A run's own data and suites are graded so.
func TestEvaluationsInTurns(t *testing.T) {
	e := &Env{Prompter: mustPrompter(t, prompttest.ModelFolder(t, false, nil), nil), Config: &config.Resolved{},
		Suites: []Suite{{Name: "suite", Graders: []string{"ifeval"}}}}
	e.Config.Run.Task.Kind, e.Config.Run.Task.Instructions.Rules = "instructions", "strict"
	tokens, err := e.Prompter.Tokenizer.Encode("none,", tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	end, _ := e.Prompter.Vocabulary().TokenID("<|im_end|>")
	comma := len(tokens) - 1
	c := rollout.Completion{Tokens: slices.Concat(tokens[:comma], []int32{end}, tokens[comma:]), Text: "none,"}
	p := rollout.Problem{ID: "p", Prompt: "?", Data: []byte(`{"instructions":[{"id":"punctuation:no_comma"}]}`)}
	for _, label := range []string{"test", "suite"} {
		g, done, err := e.grader(t.Context(), label, "ifeval", true)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := g.Grade(t.Context(), &p, &c); err != nil || !v.Correct {
			t.Errorf("%s: %+v, %v: the comma stands after the end", label, v, err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}

// Graders of mathematics read a turn, which may end where its text says so; graders of instructions read all that was
// sampled before a special token; others read everything.
func TestGradersInTurns(t *testing.T) {
	e := &Env{Prompter: mustPrompter(t, prompttest.ModelFolder(t, false, nil), nil)}
	v := e.Prompter.Vocabulary()
	const text = "User: hi\n\nUser: 9"
	tokens, err := e.Prompter.Tokenizer.Encode(text, tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	end, _ := v.TokenID("<|im_end|>")
	c := rollout.Completion{Tokens: append(append(slices.Clone(tokens), end), tokens...), Text: text + text}
	for name, want := range map[string]string{"exp": "User: hi\n", "ifeval": text, "ifeval_loose": text,
		"instructions": text, "math_dapo": text + text, "countdown": text + text} {
		var h heard
		g, err := e.inTurns(name, &h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Grade(t.Context(), nil, &c); err != nil || h.text != want {
			t.Errorf("%s reads %q, %v; want %q", name, h.text, err, want)
		}
	}
}

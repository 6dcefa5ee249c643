package prompt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
)

func labelledIn(t *testing.T, lines ...string) []layout.Labelled {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := layout.LabelledAnswers(rows.Read(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Answers are counted by label; long ones and pairs of equal ones are left out.
func TestAnswers(t *testing.T) {
	list := labelledIn(t, `{"prompt": "1+1=", "completion": "2", "label": true}`, `{"prompt": "1+1=", "completion": "three", "label": false}`,
		`{"prompt": "1+1=", "completion": "twenty", "label": true}`, `{"prompt": "1+1=", "chosen": "4", "rejected": "3"}`,
		`{"prompt": "1+1=", "chosen": "2", "rejected": "2"}`)
	p := mustPrompter(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) {
		c.Prefer.MaxTokens, c.Prefer.ChosenWeight, c.Prefer.RejectedWeight, c.Prefer.AnswersPerStep = 10, 1, 1, 4
	})
	out, plan, err := p.Answers(context.Background(), list)
	// With the prompt of 4 tokens and the token that ends an answer: 6, 10, 11, 6 and 6.
	want := AnswerPlan{Chosen: 2, Rejected: 2, Tokens: 28, Learned: 2 + 6 + 2 + 2, Longest: 10, Same: 2, Long: 1}
	const line = "4 answers, 2 good and 2 bad, of up to 10 tokens; 43 % of all 28 are learned, the answers'; " +
		"2 left out, as both answers of a pair are the same; 1 longer than prefer.max_tokens left out"
	if got := plan.String(); err != nil || got != want.String() || got != line {
		t.Errorf("%v: %s\nwant %s", err, got, line)
	}
	for i, kept := range []bool{true, true, false, true, true, false, false} {
		if (out[i] != nil) != kept {
			t.Errorf("answer %d: kept %v", i, out[i] != nil)
		}
	}
	for _, positions := range []int{10, 0} { // 0: the model does not say
		if err := p.CheckAnswers(list, positions); err != nil {
			t.Error(err)
		}
	}
	if got := p.Plan().Answers; got == nil || fmt.Sprint(got.Good, got.Bad) != "[{false 1+1=} {true 2</s>}] [{false 1+1=} {true three</s>}]" {
		t.Errorf("the first ones are %v and %v", got.Good, got.Bad)
	}
	if err := p.CheckAnswers(list, 9); err == nil || !strings.Contains(err.Error(), "answers.jsonl:2: an answer with its prompt has 10 tokens, the model has 9 positions") {
		t.Errorf("too long: %v", err)
	}
	if err := p.CheckAnswers(list[:2], 10); err == nil || !strings.Contains(err.Error(), "has 2 answers to learn from, prefer.answers_per_step asks for 4") {
		t.Errorf("too few: %v", err)
	}
}

// By hand: 30 good and 10 bad answers need chosen_weight 1/3 to 4/9, or rejected_weight 3/1.33 to 3.
func TestAnswerAdvice(t *testing.T) {
	for _, tt := range []struct {
		good, bad        int
		chosen, rejected float64
		want             string
	}{
		{10, 10, 1, 1, ""}, {13, 10, 1, 1, ""}, {9, 10, 1, 1, ""}, {30, 10, 1, 3, ""}, {30, 10, 0.4, 1, ""}, {10, 40, 5, 1, ""},
		{30, 10, 1, 1, "prefer.chosen_weight (1) × 30 good answers is 3.00 times prefer.rejected_weight (1) × 10 bad ones; the paper of KTO recommends " +
			"1 to 1.33: chosen_weight from 0.33 to 0.44, or rejected_weight from 2.25 to 3.00"},
		{10, 30, 1, 1, "is 0.33 times"}, {10, 10, 2, 1, "is 2.00 times"}, {0, 5, 1, 1, "no answer is good"}, {5, 0, 1, 1, "no answer is bad"},
	} {
		got := (&AnswerPlan{Chosen: tt.good, Rejected: tt.bad, ChosenWeight: tt.chosen, RejectedWeight: tt.rejected}).Advice()
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// What tools say within an answer is context, of pairs and of single answers.
func TestToolsInAnswers(t *testing.T) {
	const ask = `{"role": "user", "content": "6*7?"}`
	const calls = `{"role": "assistant", "content": "I ask."}, {"role": "tool", "content": "42, says the tool"}, {"role": "assistant", "content": "So 42."}`
	p := mustPrompter(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), nil)
	for name, row := range map[string]string{
		"with a prompt": `{"prompt": [` + ask + `], "chosen": [` + calls + `], "rejected": [{"role": "assistant", "content": "41"}]}`,
		"whole":         `{"chosen": [` + ask + `, ` + calls + `], "rejected": [` + ask + `, {"role": "assistant", "content": "41"}]}`,
	} {
		path := filepath.Join(t.TempDir(), "pairs.jsonl")
		if err := os.WriteFile(path, []byte(row), 0o644); err != nil {
			t.Fatal(err)
		}
		list, err := layout.Pairs(rows.Read(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		pairs, plan, err := p.Pairs(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		checkToolTurn(t, name, p.parts(&list[0].Chosen, pairs[0].Chosen))
		if own := len("I ask.") + 1 + len("So 42.") + 1 + len("41") + 1; plan.Learned != own {
			t.Errorf("%s: %d tokens learned, want %d", name, plan.Learned, own)
		}
	}
	list := labelledIn(t, `{"prompt": [`+ask+`], "completion": [`+calls+`], "label": false}`)
	out, _, err := p.Answers(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	checkToolTurn(t, "single", p.parts(&list[0].Answer, out[0]))
}

// checkToolTurn says that the parts of an answer with a tool's turn learn the assistant's two, and nothing else.
func checkToolTurn(t *testing.T, name string, parts []ConversationPart) {
	t.Helper()
	var learned, read string
	for _, x := range parts {
		if x.Learned {
			learned += "[" + x.Text + "]"
		} else {
			read += x.Text
		}
	}
	if strings.Contains(learned, "tool") || !strings.HasPrefix(learned, "[I ask.") || !strings.Contains(learned, "[So 42.") || !strings.Contains(read, "42, says the tool") {
		t.Errorf("%s: learned %q, read %q", name, learned, read)
	}
}

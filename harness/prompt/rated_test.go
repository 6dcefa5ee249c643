package prompt

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

func ratedIn(t *testing.T, lines ...string) []layout.Pair {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := layout.RatedPairs(rows.Read(path))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A reward model reads the whole chat as the template writes it, or text and end token; both sides share all tokens
// that they begin with. It is what it reads of a completion later.
func TestRatedPairs(t *testing.T) {
	const chat = `{"prompt": [{"role": "user", "content": "6*7?"}], "chosen": [{"role": "assistant", "content": "42"}], "rejected": [{"role": "assistant", "content": "43."}]}`
	const text = `{"prompt": "6*7=", "chosen": "42", "rejected": "4"}`
	chats := map[string]string{"chat_template.jinja": prompttest.ChatML}
	for _, tt := range []struct {
		name, row                string
		files                    map[string]string
		set                      func(c *config.Run)
		begins, chosen, rejected string
		end                      int32
	}{
		{"chat", chat, chats, nil, "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n4", "2<|im_end|>\n", "3.<|im_end|>\n", '\n'},
		{"system", chat, chats, func(c *config.Run) { c.Data.System = "S" }, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n6*7?<|im_end|>\n<|im_start|>assistant\n4", "2<|im_end|>\n", "3.<|im_end|>\n", '\n'},
		{"text", text, nil, nil, "6*7=4", "2</s>", "</s>", 257},
		{"whole texts", `{"chosen": "It is 6*7: 42", "rejected": "It is 6*7: 5"}`, nil, nil, "It is 6*7: ", "42</s>", "5</s>", 257},
	} {
		p, err := prompterOf(t, prompttest.ModelFolder(t, false, tt.files), tt.set)
		if err != nil {
			t.Fatal(err)
		}
		list := ratedIn(t, tt.row)
		got, plan, err := p.RatedPairs(context.Background(), list)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if plan.Begins != tt.begins || plan.Chosen != tt.chosen || plan.Rejected != tt.rejected || plan.Pairs != 1 {
			t.Errorf("%s: %+v", tt.name, plan)
		}
		if n := len(got[0].Prompt) + len(got[0].Chosen) + len(got[0].Rejected); plan.Tokens != n || plan.Longest != got[0].longest() {
			t.Errorf("%s: %d tokens, up to %d, want %d", tt.name, plan.Tokens, plan.Longest, n)
		}
		if end, err := p.RatedEnd(); err != nil || end != tt.end {
			t.Errorf("%s: it ends with %d, %v, want %d", tt.name, end, err, tt.end)
		}
		later, err := p.RatedText("6*7=42")
		if tt.files != nil {
			q := &rollout.Problem{Prompt: "6*7?"}
			asked, _ := p.Chat(q)
			later, err = p.RatedChat(append(slices.Clone(asked), rollout.Message{Role: "assistant", Content: "42"}), q)
		}
		if whole := slices.Concat(got[0].Prompt, got[0].Chosen); tt.name != "whole texts" && (err != nil || !slices.Equal(later, whole)) {
			t.Errorf("%s: a completion is read as %q, %v", tt.name, p.written(later), err)
		}
	}
}

// Pairs that cannot be told apart, or are too long, are left out and counted; others that do not fit are errors.
func TestRatedPairsLeftOut(t *testing.T) {
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) {
		c.RewardModel = config.RewardTraining{Source: "train", Val: "val", MaxTokens: 12, PairsPerStep: 2}
	})
	if err != nil {
		t.Fatal(err)
	}
	list := ratedIn(t, `{"prompt": "a", "chosen": "b", "rejected": "c", "margin": 2}`, `{"prompt": "a", "chosen": "b", "rejected": "b"}`,
		`{"prompt": "a", "chosen": "b", "rejected": "more than twelve"}`, `{"prompt": "a", "chosen": "12345678", "rejected": "c"}`)
	_, plan, err := p.RatedPairs(context.Background(), list)
	if want := "2 pairs of up to 10 tokens a side, 17 in all; 1 with a margin; 1 left out, as both answers are the same; 1 longer than reward_model.max_tokens left out"; err != nil || plan.String() != want {
		t.Errorf("%s, %v; want %s", &plan, err, want)
	}
	if err := p.CheckRated(list, 10, false); err != nil || p.Plan().Rated.Pairs != 2 || p.Plan().HeldOut != nil {
		t.Errorf("%v, plan %+v", err, p.Plan())
	}
	for want, f := range map[string]func() error{
		"pairs.jsonl:4: an answer with its prompt has 10 tokens, the model has 9 positions; reward_model.max_tokens: 9": func() error { return p.CheckRated(list, 9, false) },
		"train has 1 pair; 1 longer than": func() error {
			return p.CheckRated(ratedIn(t, `{"prompt": "a", "chosen": "b", "rejected": "c"}`, `{"prompt": "a", "chosen": "b", "rejected": "more than twelve"}`), 0, false)
		},
		"val has 0 pairs": func() error { return p.CheckRated(list[1:2], 0, true) },
		"begin with different tokens": func() error {
			return p.CheckRated([]layout.Pair{{Chosen: layout.Conversation{Problem: rollout.Problem{Target: "a"}}, Rejected: layout.Conversation{Problem: rollout.Problem{Target: "b"}}}}, 0, false)
		},
		"the run has no chat template, which": func() error {
			return p.CheckRated(ratedIn(t, `{"prompt": [{"role": "user", "content": "?"}], "chosen": [{"role": "assistant", "content": "a"}], "rejected": [{"role": "assistant", "content": "b"}]}`), 0, false)
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p, err = prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.RatedPairs(context.Background(), list); err == nil || !strings.Contains(err.Error(), "pairs.jsonl:1: chosen: its texts have no roles") {
		t.Errorf("texts for a run with a template: %v", err)
	}
}

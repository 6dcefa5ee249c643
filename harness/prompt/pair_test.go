package prompt

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// The longer answer of a pair counts, whichever it is.
func TestPairs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	const text = `{"prompt": "1+1=", "chosen": "2", "rejected": "three"}
{"prompt": "1+1=", "chosen": "two", "rejected": "3"}
{"prompt": "1+1=", "chosen": "2", "rejected": "twenty"}
{"prompt": "1+1=", "chosen": "2", "rejected": "2"}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := layout.Pairs(rows.Read(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := mustPrompter(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) { c.Prefer.MaxTokens = 10 })
	pairs, plan, err := p.Pairs(context.Background(), list)
	// With the prompt of 4 tokens and the token that ends an answer, the sides have 6 and 10, 8 and 6, 6 and 11.
	want := PairPlan{Pairs: 2, Tokens: 4 + 2 + 6 + 4 + 4 + 2, Learned: 2 + 6 + 4 + 2, Longest: 10, Same: 1, Long: 1}
	if got := plan.String(); err != nil || got != want.String() || pairs[0] == nil || pairs[1] == nil || pairs[2] != nil || pairs[3] != nil {
		t.Errorf("%v: %s\nwant %s", err, got, want.String())
	}
}

// The model learns the assistant's tokens, and not what tools write in between.
func TestLearnedTokens(t *testing.T) {
	p := mustPrompter(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": prompttest.ChatML}), nil)
	list := conversationsIn(t, textChat)
	out, plan, err := p.Conversations(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	own := len("42") + 1 + len("So 42.") + 1 // with the tokens that end them
	if all := len(out[0].Tokens); plan.Learned != own || plan.Tokens != len(out[0].Prompt)+all || all <= own {
		t.Errorf("%+v of %d tokens, want %d learned", plan, all, own)
	}
}

// Prompts of just the longest length are not too long.
func TestFitting(t *testing.T) {
	p := mustPrompter(t, prompttest.ModelFolder(t, false, nil), func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.FilterOverlong = 4, true })
	kept, err := p.Fitting([]rollout.Problem{{ID: "a", Prompt: "123"}, {ID: "b", Prompt: "1234"}, {ID: "c", Prompt: "12345"}})
	if err != nil || len(kept) != 2 || kept[0].ID != "a" || kept[1].ID != "b" {
		t.Errorf("%v, %v", kept, err)
	}
}

// A request adds variables to the run's, and replaces variables of the same name.
func TestWithVars(t *testing.T) {
	p := mustPrompter(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": "{{ a }} {{ b }} {{ c }}"}),
		func(c *config.Run) { c.Data.TemplateVars = map[string]any{"a": "own", "b": "own"} })
	q, err := p.WithVars(map[string]any{"b": "given", "c": "given"})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := q.EncodeChat([]rollout.Message{{Role: "user", Content: "x"}}, nil, true)
	if got := prompttest.Written(ids); err != nil || got != "own given given" {
		t.Errorf("%q, %v", got, err)
	}
	if ids, err = p.EncodeChat([]rollout.Message{{Role: "user", Content: "x"}}, nil, true); err != nil || prompttest.Written(ids) != "own own " {
		t.Errorf("the run's own: %q, %v", prompttest.Written(ids), err)
	}
}

// Prompts that differ in nothing but their tools have ids of their own.
func TestToolsInCache(t *testing.T) {
	p := mustPrompter(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": "{{ tools[0].name }} {{ messages[0].content }}"}), nil)
	for range 2 {
		for _, name := range []string{"one", "two"} {
			ids, err := p.Encode(&rollout.Problem{Prompt: "hi", Tools: json.RawMessage(`[{"name": "` + name + `"}]`)})
			if got := prompttest.Written(ids); err != nil || got != name+" hi" {
				t.Errorf("%q, %v; want %s hi", got, err, name)
			}
		}
	}
}

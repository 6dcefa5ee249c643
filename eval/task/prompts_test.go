package task

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Prompts are read with and without an answer, of whatever type.
func TestPrompts(t *testing.T) {
	task, err := New(Config{Kind: "prompts"})
	if err != nil {
		t.Fatal(err)
	}
	type problem struct{ ID, Prompt, Answer, Target, Data string }
	for name, tt := range map[string]struct {
		text string
		from Source
		want []problem
		err  error
	}{
		"a prompt": {`{"prompt": "Be kind."}
{"prompt": "Be brief.", "answer": ""}
{"prompt": "Be kind."}`, Source{}, []problem{{ID: "0", Prompt: "Be kind."}, {ID: "1", Prompt: "Be brief."}}, nil},
		"answers of some": {`{"prompt": "Name a city.", "answer": {"in": "Norway"}, "id": "n"}
{"prompt": "Name a river.", "answer": null}
{"prompt": "6*7?", "answer": ["42", "42.0"]}`, Source{}, []problem{{ID: "n", Prompt: "Name a city.", Answer: `{"in": "Norway"}`},
			{ID: "1", Prompt: "Name a river."}, {ID: "2", Prompt: "6*7?", Answer: "42", Data: `{"answers":["42.0"]}`}}, nil},
		"an instruction": {`{"instruction": "Translate.", "extra": 1}`, Source{Keep: []string{"extra"}},
			[]problem{{ID: "0", Prompt: "Translate.", Data: `{"columns":{"extra":1}}`}}, nil},
		"a column": {`{"text": "Hello", "prompt": "no"}`, Source{PromptKey: "text"}, []problem{{ID: "0", Prompt: "Hello"}}, nil},
		"verl's": {`{"data_source": "hh", "prompt": [{"role": "user", "content": "Hi"}], "ability": "alignment",
"reward_model": {"style": "model", "ground_truth": "Hello."}, "extra_info": {"index": 5}}`, Source{},
			[]problem{{ID: "5", Prompt: "Hi", Answer: "Hello.", Data: `{"source":"hh"}`}}, nil},
		"verl's without an answer": {`{"data_source": "hh", "prompt": [{"role": "user", "content": "Hi"}], "extra_info": {"index": 5}}`,
			Source{}, []problem{{ID: "5", Prompt: "Hi", Data: `{"source":"hh"}`}}, nil},
		"a chat that ends with an answer": {`{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}`,
			Source{}, []problem{{ID: "0", Prompt: "Hi", Target: "Hello"}}, nil},
		"no prompt":     {`{"words": "Hi"}`, Source{}, nil, errors.New("")},
		"a lost column": {`{"prompt": "Hi"}`, Source{PromptKey: "text"}, nil, rows.ErrMissing},
	} {
		path := filepath.Join(t.TempDir(), "prompts.jsonl")
		if name[0] == 'v' {
			path = path[:len(path)-1]
		}
		if err := os.WriteFile(path, []byte(tt.text), 0o666); err != nil {
			t.Fatal(err)
		}
		tt.from.Path = path
		list, _, err := tt.from.Read(task)
		if (err == nil) != (tt.err == nil) || errors.Is(tt.err, rows.ErrMissing) && !errors.Is(err, rows.ErrMissing) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []problem
		for _, p := range list {
			got = append(got, problem{p.ID, p.Prompt, p.Answer, p.Target, string(p.Data)})
			if err := task.check(&p); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := task.Grade(t.Context(), &rollout.Problem{}, &rollout.Completion{}); !errors.Is(err, errNoGrader) {
		t.Errorf("graded: %v", err)
	}
}

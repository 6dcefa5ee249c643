package stage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

// verlPrompts is testdata/verl/prompts.json. The parquet files next to it have our own
// problems in the layouts of FlowRL's data, written by the libraries of its preprocessing:
// math_train as DAPO-Math-17k (each row three times, pandas), math_validation as AIME 2024,
// 2025 and GPQA in a row (indices restart, data sets twice; datasets), code_train as
// DeepCoder in shards (one without any reference), chats with messages in another column.
// The prompts are verl's: datasets.load_dataset, tokenizer.apply_chat_template with the
// generation prompt, then the cuts of RLHFDataset and postprocess_data.
type verlPrompts struct {
	Limit int `json:"limit"`
	Files []struct {
		Task      string       `json:"task"`
		Path      string       `json:"path"`
		PromptKey string       `json:"prompt_key"`
		Take      int          `json:"take"`
		Drawn     []int        `json:"drawn"` // prompts of the rows that default_rng(11) takes
		Prompts   []verlPrompt `json:"prompts"`
	} `json:"files"`
}

// verlPrompt is the prompt of the first of equal rows.
type verlPrompt struct {
	Row         int               `json:"row"`
	Text        string            `json:"text"`
	IDs         []int32           `json:"ids"`
	Cut         map[string]string `json:"cut"` // SHA-256 of the ids, 32 bits each, little-endian, by data.truncate
	ThinkingOff string            `json:"thinking_off"`
	Overlong    bool              `json:"overlong"`
}

func readVerlPrompts(t *testing.T) (all verlPrompts) {
	t.Helper()
	b, err := os.ReadFile("testdata/verl/prompts.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// FlowRL's data sets go from parquet to the peers' prompts, text and ids, whatever the
// treatment of long ones.
func TestVerlPrompts(t *testing.T) {
	model := prompttest.QwenTokenizer(t)
	all := readVerlPrompts(t)
	thinking := prompttest.DataPath(t, "chat_templates/qwen3.jinja")
	open := func(set func(d *config.Data)) *prompt.Prompter {
		t.Helper()
		p, err := prompterOf(t, model, func(c *config.Run) {
			c.Data.MaxPromptTokens = 2048
			set(&c.Data)
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	whole := open(func(*config.Data) {})
	off := open(func(d *config.Data) {
		d.Chat, d.TemplateVars = thinking, map[string]any{"enable_thinking": false}
	})
	filter := open(func(d *config.Data) { d.MaxPromptTokens, d.FilterOverlong = all.Limit, true })
	cuts := map[string]*prompt.Prompter{}
	for _, mode := range []string{"left", "right", "middle"} {
		cuts[mode] = open(func(d *config.Data) { d.MaxPromptTokens, d.Truncate = all.Limit, mode })
	}
	for _, f := range all.Files {
		t.Run(f.Path, func(t *testing.T) {
			problems := verlProblems(t, f.Task, task.Source{Path: f.Path, PromptKey: f.PromptKey})
			if len(problems) != len(f.Prompts) {
				t.Fatalf("%d problems, want %d", len(problems), len(f.Prompts))
			}
			kept := []rollout.Problem{}
			for i, want := range f.Prompts {
				q := &problems[i]
				text, err := whole.Text(q)
				if err != nil || text != want.Text {
					t.Errorf("row %d, %v (-want +got):\n%s", want.Row, err, cmp.Diff(want.Text, text))
				}
				ids, err := whole.Encode(q)
				if err != nil || !slices.Equal(ids, want.IDs) {
					t.Errorf("row %d: ids %v, %v, want %v", want.Row, ids, err, want.IDs)
				}
				sameIDs(t, off, q, want.ThinkingOff)
				for mode, p := range cuts {
					sameIDs(t, p, q, want.Cut[mode])
				}
				if !want.Overlong {
					kept = append(kept, *q)
				}
			}
			got, err := filter.Fitting(problems)
			if diff := cmp.Diff(kept, got); err != nil || diff != "" {
				t.Errorf("filter_overlong, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// sameIDs compares the digest of a prompt's ids.
func sameIDs(t *testing.T, p *prompt.Prompter, q *rollout.Problem, want string) {
	t.Helper()
	ids, err := p.Encode(q)
	if got := ident.SumLE(ids).String(); err != nil || got != want {
		t.Errorf("problem %s, truncate %s, template %s: %d ids with digest %s, %v, want %s", q.ID, p.Plan().Truncate, p.Plan().Template,
			len(ids), got, err, want)
	}
}

// verlProblems reads a file of testdata/verl, or several.
func verlProblems(t *testing.T, kind string, s task.Source) []rollout.Problem {
	t.Helper()
	m, err := task.New(task.Config{Kind: kind, Math: task.Math{Grader: "math_dapo_original"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Path = filepath.Join("testdata/verl", s.Path)
	problems, _, err := s.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, p := range problems {
		if ids[p.ID] {
			t.Errorf("two problems have the id %s", p.ID)
		}
		ids[p.ID] = true
	}
	return problems
}

// data.*.max_samples takes the rows that verl's takes from the same files, in its order.
func TestVerlMaxSamples(t *testing.T) {
	for _, f := range readVerlPrompts(t).Files {
		s := task.Source{Path: f.Path, PromptKey: f.PromptKey}
		problems := verlProblems(t, f.Task, s)
		var want, got []string
		for _, i := range f.Drawn {
			want = append(want, problems[i].Prompt)
		}
		s.MaxRows, s.Drawn, s.Seed = f.Take, true, 11
		for _, p := range verlProblems(t, f.Task, s) {
			got = append(got, p.Prompt)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Path, diff)
		}
	}
}

// A row that the template cannot render is an error. verl drops it with the long ones.
func TestFilterTellsOfBrokenRows(t *testing.T) {
	refuses := map[string]string{"chat_template.jinja": "{% if 'bad' in messages[0].content %}{{ raise_exception('no such role') }}{% endif %}{{ messages[0].content }}"}
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, refuses), func(c *config.Run) { c.Data.FilterOverlong, c.Data.MaxPromptTokens = true, 5 })
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Fitting([]rollout.Problem{{ID: "1", Prompt: "good"}, {ID: "2", Prompt: "a bad one"}})
	if err == nil || !strings.HasPrefix(err.Error(), "problem 2: ") || !strings.Contains(err.Error(), "no such role") {
		t.Errorf("%v", err)
	}
}

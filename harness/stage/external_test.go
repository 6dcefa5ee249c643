package stage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/stage"
)

// Fine-tuning needs a target of every training problem, demonstrations of one at least.
func TestTargetsOfProblems(t *testing.T) {
	without, with := `{"problem": "1+1?", "answer": "2"}`, `{"problem": "2+2?", "answer": "4", "target": "4"}`
	for name, tt := range map[string]struct {
		rows, sets []string
		want       string // "": nothing is wrong
	}{
		"fine-tuning":        {[]string{with, without}, []string{"sft={steps: 1, problems_per_step: 1}", "algo.kind=grpo"}, "has no target for sft"},
		"none demonstrated":  {[]string{without}, []string{"sft={steps: 0}", "algo.kind=luffy"}, "no problem has a target for algo.demonstrations"},
		"one demonstrated":   {[]string{without, with}, []string{"sft={steps: 0}", "algo.kind=luffy"}, ""},
		"nothing needs them": {[]string{without}, []string{"sft={steps: 0}", "algo.kind=grpo"}, ""},
	} {
		path := filepath.Join(t.TempDir(), "p.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(tt.rows, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
		data := "{source: " + path + ", size: 0}"
		sets := append([]string{"task={kind: math}", "reward={correct: 1, wrong: 0}", "train={steps: 1, prompts_per_step: 1, prompts_per_update: 1}",
			"eval.online.problems=1", "data={train: " + data + ", val: " + data + ", test: " + data + "}", "tokenizer.kind=char"}, tt.sets...)
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: sets})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = stage.Externals(r)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Layers without an adapter must be layers, and leave some.
func TestExcludedLayers(t *testing.T) {
	for _, tt := range []struct{ exclude, want string }{
		{"[down_proj]", ""},
		{"[down]", `the model has no linear layer "down" that could have an adapter; there are q_proj`},
		{"[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]",
			"train.lora.exclude lists every linear layer that could have an adapter: q_proj"},
	} {
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml",
			Sets: []string{"train.lora={rank: 2, exclude: " + tt.exclude + "}"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = stage.Externals(r)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.exclude, err, tt.want)
		}
	}
}

// The digest of a run's data holds whether or not its problems keep their options apart, which earlier versions did not.
func TestDigestOfChoices(t *testing.T) {
	digest := func(more string) ident.Digest {
		t.Helper()
		data := filepath.Join(t.TempDir(), "data.jsonl")
		row := `{"id":"a","prompt":"Gas?\n\nA) air\nB) stone","answer":"A"` + more + "}\n"
		if err := os.WriteFile(data, []byte(row), 0o644); err != nil {
			t.Fatal(err)
		}
		split := "{source: " + data + ", size: 1}"
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"task={kind: math}",
			"reward={correct: 1, wrong: 0}", "train={steps: 1, prompts_per_step: 1, prompts_per_update: 1}", "eval.online.problems=1",
			"data={train: " + split + ", val: " + split + ", test: " + split + "}", "tokenizer.kind=char", "sft.steps=0"}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := stage.Externals(r)
		if err != nil {
			t.Fatal(err)
		}
		return x.Data["train"]
	}
	plain := digest("")
	if got := digest(`,"multiple_choice":{"question":"Gas?","options":["air","stone"],"right":0}`); got != plain || got.IsZero() {
		t.Errorf("%s, want %s", got.Short(), plain.Short())
	}
	// options that the prompt does not show are all that tells problems apart
	hidden := func(option string) ident.Digest {
		return digest(`,"multiple_choice":{"question":"","options":["` + option + `","stone"],"right":0}`)
	}
	if a, b := hidden("vapour"), hidden("steam"); a == b || a == plain {
		t.Errorf("hidden options: %s and %s", a.Short(), b.Short())
	}
}

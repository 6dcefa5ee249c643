package run

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
)

// A run on prompts with instructions that a program can check: training is rewarded by the share that a completion
// follows, and is right with all of them; so are the final scores.
func TestInstructionsRun(t *testing.T) {
	l := newLab(t)
	data := filepath.Join(t.TempDir(), "instructions.jsonl")
	var rows strings.Builder
	for i := range 8 {
		fmt.Fprintf(&rows, `{"key": %d, "prompt": "Many letters (%d).", "instruction_id_list": ["punctuation:no_comma", `+
			`"keywords:letter_frequency"], "kwargs": [{}, {"letter": "e", "let_frequency": 1, "let_relation": "at least"}]}`+
			"\n", i, i)
	}
	if err := os.WriteFile(data, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	sets := []string{"name=instructions", "task={kind: instructions, instructions: {partial: true}}", "tokenizer.kind=byte",
		"sft.steps=0", "train.steps=2", "algo.kind=grpo", "model.arch.max_positions=128", "data.max_prompt_tokens=64",
		"rollout.max_new_tokens=64", "store.samples.train=all", "reward={correct: 1, wrong: -1}"}
	for _, split := range []string{"train", "val", "test"} {
		sets = append(sets, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	p := l.plan(0, sets...)
	for _, s := range p.Stages { // special tokens end the graded text
		if s.Kind == config.EvalScore && s.Outside[stage.RoleTokenizer].IsZero() {
			t.Errorf("%s does not depend on the tokenizer: %v", s.Label, s.Outside)
		}
	}
	res, _ := l.execute(p)
	seen := map[float64]int{} // rewards
	for _, scope := range []string{"train", "eval"} {
		samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: scope})
		if err != nil || len(samples) == 0 {
			t.Fatalf("%s: %d samples, %v", scope, len(samples), err)
		}
		packs := l.db.Blobs.NewPackReader()
		for _, s := range samples {
			var kept keptSample
			if err := packs.Read(s.Ref, &kept); err != nil {
				t.Fatal(err)
			}
			follows := 0
			if strings.TrimSpace(kept.Text) != "" && !strings.Contains(kept.Text, ",") {
				follows++
			}
			if strings.ContainsAny(kept.Text, "eE") {
				follows++
			}
			want := float64(follows) - 1
			if v := s.Verdict; v == nil || v.Correct != (follows == 2) || v.Reward != want ||
				!strings.HasPrefix(v.Reason, fmt.Sprintf("follows %d of 2", follows)) {
				t.Fatalf("%s: %q: verdict %+v, want the reward %v", scope, kept.Text, v, want)
			}
			seen[want]++
		}
		packs.Close()
	}
	if len(seen) < 2 {
		t.Errorf("rewards do not differ: %v", seen)
	}
	evals, err := l.db.Evals(t.Context(), res.Run.ID)
	values := map[string]float64{}
	for _, e := range evals {
		values[e.Metric] = e.Value
	}
	if v, ok := values["pass@1"]; err != nil || !ok || math.IsNaN(v) {
		t.Errorf("final scores %v, %v", values, err)
	}
}

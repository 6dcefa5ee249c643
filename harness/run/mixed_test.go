package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
)

// A run on problems of three kinds: the program scores chats alone, the verdicts on the others pay reward.correct and
// reward.wrong, and each kind has metrics of its own. Micro-batches change no bit.
func TestMixedRun(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	var rows, chats strings.Builder
	for i := range 4 {
		fmt.Fprintf(&rows, `{"data_source": "sums", "id": "m%d", "prompt": "Sum %d", "answer": "%d"}`+"\n", i, i, i)
		fmt.Fprintf(&rows, `{"data_source": "if_letters", "id": "i%d", "prompt": "Letters %d", "instruction_id_list": `+
			`["keywords:letter_frequency"], "kwargs": [{"letter": "e", "let_frequency": 1, "let_relation": "at least"}]}`+
			"\n", i, i)
		fmt.Fprintf(&chats, `{"prompt": "Say %d"}`+"\n", i)
	}
	for name, text := range map[string]string{"rows.jsonl": rows.String(), "chats.jsonl": chats.String(),
		"reward.sh": echo} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sets := []string{"name=mixed", `task={kind: mixed, mixed: {kinds: {sums: math, "if_*": instructions, ` +
		`chats.jsonl: prompts}}, prompts: {pass: 0.5}, math: {grader: exp}}`, "tokenizer.kind=byte", "sft.steps=0",
		"train={steps: 2, prompts_per_step: 12, prompts_per_update: 6}", "algo.kind=grpo",
		"model.arch.max_positions=128", "data.max_prompt_tokens=64",
		"reward={kind: command, command: [sh, " + dir + "/reward.sh, " + seen + "], correct: 3, wrong: -2}",
		"store.samples.train=all", "eval.online.problems=0"}
	for _, split := range []string{"train", "val", "test"} {
		sets = append(sets, fmt.Sprintf("data.%s={source: %s/rows.jsonl, more: [%s/chats.jsonl], size: 0}", split, dir, dir))
	}
	p := l.plan(0, sets...)
	res, q := l.execute(p)
	counts := map[string]map[float64]int{} // of rewards, by the first letter of the problem's id
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
			kind, v, right := s.Item[:1], s.Verdict, strings.ContainsAny(kept.Text, "eE")
			rewards := map[bool]float64{true: 3, false: -2}
			switch kind {
			case "m":
				right = v.Correct // by the grader of mathematics, which has tests of its own
			case "i":
			default:
				right, rewards = strings.ContainsAny(kept.Text, "GHIJKLMN"), map[bool]float64{true: 1, false: 0.25}
				kind = "chat"
			}
			if !v.Graded || v.Correct != right || v.Reward != rewards[right] {
				t.Fatalf("%s: %s: %q: verdict %+v", scope, s.Item, kept.Text, v)
			}
			if counts[kind] == nil {
				counts[kind] = map[float64]int{}
			}
			counts[kind][v.Reward]++
		}
		packs.Close()
	}
	if len(counts) != 3 || len(counts["i"]) != 2 || len(counts["chat"]) != 2 {
		t.Errorf("rewards %v", counts)
	}
	told, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(told), "Say 3|") || strings.Contains(string(told), "Sum") {
		t.Errorf("the program saw other kinds than chats, or none: %v", err)
	}
	names := func(pattern string) (list []string) {
		curves, err := l.db.Metrics(t.Context(), res.Run.ID, pattern, 0, 9)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range curves {
			if !slices.Contains(list, c.Name) {
				list = append(list, c.Name)
			}
		}
		return list
	}
	have := slices.Concat(names("train/*"), names("val/*"))
	for _, kind := range []string{"math", "instructions", "prompts"} {
		for _, name := range []string{"train/accuracy/", "train/score/", "val/pass@1/", "val/reward_mean/"} {
			if !slices.Contains(have, name+kind) {
				t.Errorf("no metric %s%s among %q", name, kind, have)
			}
		}
	}
	evals, err := l.db.Evals(t.Context(), res.Run.ID)
	values := map[string]float64{}
	for _, e := range evals {
		values[e.Metric] = e.Value
	}
	if v := values["pass@1"]; err != nil || v != (values["pass@1/math"]+values["pass@1/instructions"]+
		values["pass@1/prompts"])/3 || values["score_mean"] != values["reward_mean/prompts"] ||
		values["reward_mean/instructions"] != -2+5*values["pass@1/instructions"] {
		t.Errorf("final scores %v, %v", values, err)
	}
	if len(q.warnings) != 2 { // data.test and data.val are data.train
		t.Errorf("warnings: %q", q.warnings)
	}

	scorer := func(more ...string) store.Scorer {
		p := l.plan(0, append(sets, more...)...)
		return (&execution{p: p, done: make([]store.Stage, len(p.Stages))}).scorer("test")
	}
	if a, b, c := scorer(), scorer(), scorer("task.math.grader=math_dapo"); a != b || a == c || a.Digest.IsZero() {
		t.Errorf("scorers %v, %v and, with another grader of mathematics, %v", a, b, c)
	}

	if err := os.Remove(seen); err != nil { // it is an argument of the program, so its content counts
		t.Fatal(err)
	}
	other := newLab(t) // nothing is cached
	small, _ := other.execute(other.plan(0, append(sets, "compute.micro_batch_tokens=160")...))
	if small.Run.RID != res.Run.RID || small.Run.Chain != res.Run.Chain || res.Run.Chain.IsZero() {
		t.Errorf("micro-batches changed the chain: %v and %v", small.Run.Chain.Short(), res.Run.Chain.Short())
	}
}

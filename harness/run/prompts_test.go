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
	"exp/harness/plan"
)

// echo is a reward program in sh: the score is 1 for a completion that holds one of the letters G to N and 0.25 for another; the answer is
// its first byte. It gives verdicts only on prompts that begin with "Say". It appends each prompt and gold answer
// that it sees to a file.
const echo = `#!/bin/sh
while IFS= read -r row; do
	id=${row#*\"id\":\"}; id=${id%%\"*}
	prompt=${row#*\"prompt\":\"}; prompt=${prompt%%\",*}
	gold=${row#*\"gold\":\"}; gold=${gold%%\",*}
	text=${row#*\"response\":\"}; text=${text%%\",\"turns*}
	printf '%s|%s\n' "$prompt" "$gold" >> "$1"
	score=0.25 right=false
	case $text in *[GHIJKLMN]*) score=1 right=true;; esac
	case $prompt in Say*) said="\"correct\": $right, ";; *) said=;; esac
	echo "{\"id\": \"$id\", $said\"answer\": [7], \"score\": $score}"
done
`

// promptsRun plans a run on prompts, some with an answer, of a random model of bytes; alone only evaluates.
func promptsRun(l *lab, seen string, alone bool, sets ...string) *plan.Run {
	l.t.Helper()
	dir := filepath.Dir(seen)
	var rows strings.Builder
	for i := range 12 {
		fmt.Fprintf(&rows, `{"prompt": "Say %d"}`+"\n", i)
		fmt.Fprintf(&rows, `{"prompt": [{"role": "user", "content": "Sum %d"}], "answer": {"is": %d}, "style": "dry"}`+"\n", i, i)
	}
	data, program := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "reward.sh")
	for name, text := range map[string]string{data: rows.String(), program: echo} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			l.t.Fatal(err)
		}
	}
	all := []string{"name=prompts", "task={kind: prompts, prompts: {pass: 0.5}}", "tokenizer.kind=byte", "sft.steps=0",
		"train.steps=2", "algo.kind=grpo", "model.arch.max_positions=128", "data.max_prompt_tokens=64", "data.keep=[style]",
		"reward={kind: command, command: [sh, " + program + ", " + seen + "]}", "store.samples.train=all"}
	for _, split := range []string{"train", "val", "test"} {
		all = append(all, fmt.Sprintf("data.%s={source: %s, size: 0}", split, data))
	}
	if alone {
		all = all[:len(all)-3]
		all = append(all, "data={train: {source: none, size: 0}, val: {source: none, size: 0}, test: {source: "+data+", size: 0}}",
			"eval.online.every_steps=0")
	}
	return l.plan(0, append(all, sets...)...)
}

// A run on prompts without gold answers: the reward gives verdicts, in training, in validation and in the final
// scores.
func TestPromptsRun(t *testing.T) {
	l := newLab(t)
	seen := filepath.Join(t.TempDir(), "seen")
	p := promptsRun(l, seen, false)
	res, q := l.execute(p)
	if len(q.warnings) != 2 { // data.test and data.val are data.train
		t.Errorf("warnings: %q", q.warnings)
	}
	right := map[string]int{}
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
			v, want := s.Verdict, strings.ContainsAny(kept.Text, "GHIJKLMN")
			if v == nil || !v.Graded || v.Correct != want || v.Answer != "[7]" || v.Reward != map[bool]float64{true: 1, false: 0.25}[want] {
				t.Fatalf("%s: %q: verdict %+v", scope, kept.Text, v)
			}
			if want {
				right[scope]++
			}
		}
		packs.Close()
	}
	if right["train"] == 0 || right["eval"] == 0 {
		t.Fatalf("nothing right to be seen: %v", right)
	}
	told, err := os.ReadFile(seen)
	for _, want := range []string{"Say 3|\n", `Sum 3|{\"is\": 3}` + "\n"} {
		if !strings.Contains(string(told), want) {
			t.Errorf("the program never saw %q, %v", want, err)
		}
	}
	curves, err := l.db.Metrics(t.Context(), res.Run.ID, "val/*", 0, 9)
	if err != nil || len(curves) == 0 {
		t.Errorf("validation: %d curves, %v", len(curves), err)
	}
	evals, err := l.db.Evals(t.Context(), res.Run.ID)
	values := map[string]float64{}
	for _, e := range evals {
		values[e.Metric] = e.Value
	}
	if v := values["score_mean"]; err != nil || v < 0.25 || v > 1 || math.Abs(v-0.25-0.75*values["pass@1"]) > 1e-9 {
		t.Errorf("final scores %v, %v", values, err)
	}

	// Another program would score them again.
	for i, s := range p.Stages {
		if _, ok := p.Params(i)["reward.command"]; s.Kind == config.EvalScore &&
			(!ok || s.Outside["reward/command"] != p.External.Reward["reward/command"] || s.Outside["code of the reward"].IsZero()) {
			t.Errorf("eval.score depends on %v and %v", s.Outside, p.Params(i))
		}
	}

	// The reward is how the final scores are measured; its parts are not.
	p = promptsRun(l, seen, false) // the file of what was seen, an argument, is another one now
	had := p.RID
	protocol, err := p.Protocol("test")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"task.prompts.pass=0.2", "reward.components=[score]"} {
		other := promptsRun(l, seen, false, set)
		if d, err := other.Protocol("test"); err != nil || other.RID == had || (d == protocol) != strings.HasPrefix(set, "reward") {
			t.Errorf("%s: the same run %v, the same protocol %v, %v", set, other.RID == had, d == protocol, err)
		}
	}
}

// Weights are scored by a program without training, which is tried before they are sampled.
func TestPromptsEvaluated(t *testing.T) {
	l := newLab(t)
	seen := filepath.Join(t.TempDir(), "seen")
	res, _ := l.execute(promptsRun(l, seen, true, "train.steps=0"))
	if evals, err := l.db.Evals(t.Context(), res.Run.ID); err != nil || len(evals) == 0 {
		t.Errorf("%d final scores, %v", len(evals), err)
	}
}

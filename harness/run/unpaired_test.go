package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
)

// labelledFile writes single answers to sums as chats, twice as many bad ones as good ones; the last is a long one.
func labelledFile(t *testing.T, wrong int) string {
	t.Helper()
	var b strings.Builder
	for i := range 13 {
		answer := fmt.Sprint(i + 1)
		good := i%3 == 0
		if !good {
			answer = fmt.Sprint(i + 1 + wrong)
		}
		if i == 12 {
			answer = strings.Repeat("1", 100)
		}
		fmt.Fprintf(&b, `{"prompt": [{"role": "user", "content": "%d+1?"}], "completion": [{"role": "assistant", "content": %q}], "label": %v}`+"\n",
			i%9, answer, good)
	}
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// unpairedRun plans a run that learns from single answers.
func unpairedRun(l *lab, file string, sets ...string) *plan.Run {
	l.t.Helper()
	return chatRun(l, testTemplate, append([]string{"train.steps=1", "prefer={steps: 20, loss: kto, answers_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}",
		"prefer.source=" + file}, sets...)...)
}

// A run learns from single answers, counts them, and says that bad ones outnumber good ones. A file of pairs is two
// answers a row.
func TestUnpairedRun(t *testing.T) {
	l := newLab(t)
	file := labelledFile(t, 1)
	p := unpairedRun(l, file, onlyTuned()...)
	// <user>0+1?\n<assistant>, then 1■; four have two digits.
	const line = "12 answers, 4 good and 8 bad, of up to 25 tokens; 10 % of all 292 are learned, the answers'; 1 longer than prefer.max_tokens left out"
	got := p.External.Prompter.Plan().Answers
	if got.String() != line {
		t.Errorf("the plan says %q, want %q", got, line)
	}
	if parts := fmt.Sprint(got.Good, got.Bad); parts != "[{false <user>0+1?\n<assistant>} {true 1<|endoftext|>}] [{false <user>1+1?\n<assistant>} {true 3<|endoftext|>}]" {
		t.Errorf("the first answers are %s", parts)
	}
	if advice := got.Advice(); !strings.Contains(advice, "chosen_weight from 2.00 to 2.67, or rejected_weight from 0.38 to 0.50") {
		t.Errorf("advice %q", advice)
	}
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init prefer merge eval.gen[test] eval.score[test]" {
		t.Errorf("stages %s", got)
	}
	l.checkRoles(res.Run.ID, config.SFT, config.RewardModel, config.Train, config.PassRate, config.Select)
	var result map[string]any
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "prefer").Result, &result); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"answers": 12, "chosen": 4, "rejected": 8, "tokens": 292, "learned_tokens": 28, "same": 0, "long": 1} {
		if result[name] != want {
			t.Errorf("%s: %v, want %v", name, result[name], want)
		}
	}
	if loss, _ := result["prefer/loss"].(float64); !(loss > 0 && loss < 1) {
		t.Errorf("loss %v", result["prefer/loss"])
	}
	said := strings.Join(q.warnings, "\n")
	for _, want := range []string{"prefer.source: 12 answers", "the paper of KTO recommends 1 to 1.33"} {
		if !strings.Contains(said, want) {
			t.Errorf("nobody says %q: %q", want, said)
		}
	}
	for _, x := range []*plan.Run{unpairedRun(l, labelledFile(t, 2), onlyTuned()...), unpairedRun(l, file, append(onlyTuned(), "prefer.chosen_weight=2")...),
		unpairedRun(l, file, append(onlyTuned(), "prefer.loss=apo_zero_unpaired")...)} {
		if x.RID == res.Run.RID {
			t.Error("another file or setting is the same run")
		}
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("repeating it: %+v", v)
	}

	pairs := unpairedRun(l, pairFile(t, 1), append(onlyTuned(), "prefer.steps=4", "prefer.loss=apo_zero_unpaired")...)
	if got := pairs.External.Prompter.Plan().Answers; got.Chosen != 9 || got.Rejected != 8 || got.Same != 2 || got.Long != 1 || got.Advice() != "" {
		t.Errorf("a file of pairs: %s, %q", got, got.Advice())
	}
	if asPairs := preferRun(l, pairFile(t, 1), onlyTuned()...); asPairs.External.Data["pairs"] == pairs.External.Data["pairs"] {
		t.Error("pairs and the answers in them are the same input")
	}
	l.execute(pairs)
}

// A stage that breaks continues from its checkpoint to the same weights.
func TestUnpairedResumes(t *testing.T) {
	l := newLab(t)
	file := labelledFile(t, 1)
	res, _ := l.execute(unpairedRun(l, file, onlyTuned()...))
	other := newLab(t)
	good := other.be
	other.be = &breaking{Backend: good, at: 9}
	p := unpairedRun(other, file, append(onlyTuned(), "checkpoint.every_steps=5")...)
	if _, err := other.try(context.Background(), p, &quiet{}); err == nil {
		t.Fatal("the device did not break")
	}
	counted := &breaking{Backend: good, at: 1 << 30}
	other.be = counted
	again, _ := other.execute(p)
	if counted.updates != 20-5 {
		t.Errorf("%d updates after the checkpoint of step 5", counted.updates)
	}
	sameOutputs(t, other.outputs(again.Run.ID), l.outputs(res.Run.ID))
}

// What an answer lacks is found before any work, with its line.
func TestUnpairedErrorsInPlan(t *testing.T) {
	l := newLab(t)
	file := labelledFile(t, 1)
	unlabelled := filepath.Join(t.TempDir(), "unlabelled.jsonl")
	if err := os.WriteFile(unlabelled, []byte(`{"prompt": "?", "completion": "a"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"prefer.max_tokens=0":         file + ":13: an answer with its prompt has 123 tokens, the model has 100 positions; prefer.max_tokens: 100 leaves such answers out",
		"prefer.answers_per_step=13":  file + " has 12 answers to learn from (0 of pairs with the same answers and 1 longer than prefer.max_tokens are left out), prefer.answers_per_step asks for 13",
		"data.chat=none":              file + ":1: the run has no chat template",
		"prefer.source=" + unlabelled: unlabelled + ":1: no labelled answer: looked for the columns prompt, completion and label, or chosen and rejected; label is missing",
	} {
		sets := append([]string{"name=x", "task={kind: math, math: {grader: math_dapo}}", "tokenizer.kind=byte", "reward={correct: 1, wrong: -1}", "sft.steps=0",
			"model.arch.max_positions=100", "data={max_prompt_tokens: 64, test: {source: none, size: 0}}", "data.chat=" + chatFile(t), "eval.final.suites=[]",
			"prefer={steps: 1, loss: kto, answers_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}", "prefer.source=" + file}, onlyTuned()...)
		_, err := plan.New(smoke(t, append(sets, set)...), 0, l.be.Class(), l.sources)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}

// The recipe tells right sums from wrong ones, with all weights or adapters, in the memory that the plan says.
func TestUnpairedRecipe(t *testing.T) {
	for _, sets := range [][]string{nil, {"compute={micro_batch_tokens: 90, recompute: true}", "model.dtype=bf16", "prefer.steps=10"}, {"prefer={lora: {rank: 8}, steps: 5}"}} {
		got, use := unpairedRecipe(t, "cpu", sets...)
		if margin, _ := got["prefer/margin"].(float64); sets == nil && margin < 0.5 {
			t.Errorf("margin %v", got["prefer/margin"])
		}
		t.Logf("%q: margin %v, peak %d, planned %d", sets, got["prefer/margin"], use.Peak, use.Planned)
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.05*planned && planned <= 1.2*p) {
			t.Errorf("%q: peak %d, planned %d: %.3f times", sets, use.Peak, use.Planned, p/planned)
		}
	}
}

// unpairedRecipe is preferRecipe of single answers.
func unpairedRecipe(t *testing.T, on string, sets ...string) (got map[string]any, use memoryUse) {
	t.Helper()
	got, use, _ = runPreferring(t, "kto_cpu.yaml", on, append(sets, "prefer.source=../../configs/preferences/labelled_sums.jsonl")...)
	return got, use
}

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/plan"
	"exp/harness/stage"
)

// pairFile writes pairs of sums as chats; the ninth pair has equal answers, the tenth a long one.
func pairFile(t *testing.T, wrong int) string {
	t.Helper()
	var b strings.Builder
	for i := range 10 {
		answer, other := fmt.Sprint(i+1), fmt.Sprint(i+1+wrong)
		switch i {
		case 8:
			other = answer
		case 9:
			other = strings.Repeat("1", 100)
		}
		fmt.Fprintf(&b, `{"prompt": [{"role": "user", "content": "%d+1?"}], "chosen": [{"role": "assistant", "content": %q}], `+
			`"rejected": [{"role": "assistant", "content": %q}]}`+"\n", i, answer, other)
	}
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// preferRun plans a run that learns from preferences.
func preferRun(l *lab, file string, sets ...string) *plan.Run {
	l.t.Helper()
	return chatRun(l, testTemplate, append([]string{"train.steps=1", "prefer={steps: 20, pairs_per_step: 4, max_tokens: 60, sft_weight: 1, optim: {lr: 0.01}}",
		"prefer.source=" + file}, sets...)...)
}

// onlyTuned are settings of a run that ends after fine-tuning.
func onlyTuned() []string {
	return []string{"train.steps=0", "data.train={source: none, size: 0}", "data.val={source: none, size: 0}", "eval.online.every_steps=0"}
}

// A run learns from pairs, counts them and the pairs left out, and starts RL from the result.
func TestPreferRun(t *testing.T) {
	l := newLab(t)
	file := pairFile(t, 1)
	p := preferRun(l, file)
	// <user>0+1?\n<assistant>, then 1■ against 2■; the eighth is 8■ against 9■.
	const prompt, own = 11 + 11, 2
	const line = "8 pairs of up to 24 tokens a side; 15 % of all 208 are learned, the answers'; 1 left out, as both answers are the same; " +
		"1 longer than prefer.max_tokens left out"
	if got := p.External.Prompter.Plan().Prefer.String(); got != line {
		t.Errorf("the plan says %q, want %q", got, line)
	}
	parts := p.External.Prompter.Plan().Prefer
	if got := fmt.Sprint(parts.Chosen, parts.Rejected); got != "[{false <user>0+1?\n<assistant>} {true 1<|endoftext|>}] [{false <user>0+1?\n<assistant>} {true 2<|endoftext|>}]" {
		t.Errorf("the first pair is %s", got)
	}
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init prefer train merge eval.gen[test@start] eval.score[test@start] eval.gen[test] eval.score[test]" {
		t.Errorf("stages %s", got)
	}
	l.checkRoles(res.Run.ID, config.SFT, config.RewardModel, config.PassRate, config.Select)
	var got map[string]any
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "prefer").Result, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"pairs": 8, "tokens": 8 * (prompt + 2*own), "learned_tokens": 8 * 2 * own, "same": 1, "long": 1} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if nll, _ := got["prefer/nll"].(float64); !(nll > 0 && nll < 3) { // ln 257 = 5.5 at the start
		t.Errorf("negative log-prob %v", nll)
	}
	if !strings.Contains(strings.Join(q.warnings, "\n"), "prefer.source: 8 pairs") {
		t.Errorf("nobody is told of the pairs left out: %q", q.warnings)
	}
	before := l.stageOf(res.Run.ID, "prefer").SID
	other, _ := l.execute(preferRun(l, file, "data.train.size=12"))
	if l.stageOf(other.Run.ID, "prefer").SID != before {
		t.Error("other training problems are another stage")
	}
	for _, x := range []*plan.Run{preferRun(l, pairFile(t, 2)), preferRun(l, file, "prefer.beta=0.2")} {
		if x.RID == res.Run.RID {
			t.Error("another file or setting is the same run")
		}
	}
}

// Pairs alone are enough, verify repeats the stage, and a stage that breaks continues from its checkpoint to the same
// weights.
func TestPreferOnly(t *testing.T) {
	l := newLab(t)
	file := pairFile(t, 1)
	p := preferRun(l, file, onlyTuned()...)
	res, q := l.execute(p)
	if got := executedStages(q); got != "prepare init prefer merge eval.gen[test] eval.score[test]" {
		t.Errorf("stages %s", got)
	}
	if _, err := os.Stat(filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir, "model.safetensors")); err != nil {
		t.Error(err)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("repeating it: %+v", v)
	}
	other := newLab(t)
	good := other.be
	other.be = &breaking{Backend: good, at: 9}
	p = preferRun(other, file, append(onlyTuned(), "checkpoint.every_steps=5")...)
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

// What a pair lacks is found before any work, with its line.
func TestPreferErrorsInPlan(t *testing.T) {
	l := newLab(t)
	file := pairFile(t, 1)
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte(`{"prompt": "?", "chosen": "a"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"prefer.max_tokens=0":      file + ":10: an answer with its prompt has 123 tokens, the model has 100 positions; prefer.max_tokens: 100 leaves such pairs out",
		"prefer.pairs_per_step=9":  file + " has 8 pairs to learn from (1 with the same answers and 1 longer than prefer.max_tokens are left out), prefer.pairs_per_step asks for 9",
		"data.chat=none":           file + ":1: chosen: the run has no chat template",
		"prefer.source=" + broken:  broken + ":1: no pair: looked for the columns chosen and rejected; rejected is missing",
		"prefer.source=gone.jsonl": "no such file",
	} {
		sets := append([]string{"name=x", "task={kind: math, math: {grader: math_dapo}}", "tokenizer.kind=byte", "reward={correct: 1, wrong: -1}", "sft.steps=0",
			"model.arch.max_positions=100", "data={max_prompt_tokens: 64, test: {source: none, size: 0}}", "data.chat=" + chatFile(t), "eval.final.suites=[]",
			"prefer={steps: 1, pairs_per_step: 4, max_tokens: 60, optim: {lr: 0.01}}", "prefer.source=" + file}, onlyTuned()...)
		_, err := plan.New(smoke(t, append(sets, set)...), 0, l.be.Class(), l.sources)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
	err := RequireFiles(smoke(t, "prefer={steps: 1, source: nowhere.jsonl, optim: {lr: 0.1}}"))
	if err == nil || !strings.Contains(err.Error(), "prefer.source: nowhere.jsonl cannot be read") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// preferRecipe runs the recipe on a device and returns the result of its stage, its use of memory and all outputs.
func preferRecipe(t *testing.T, on string, sets ...string) (got map[string]any, use memoryUse, outputs map[string]ident.Digest) {
	t.Helper()
	return runPreferring(t, "prefer_cpu.yaml", on, append(sets, "prefer.source=../../configs/preferences/sums.jsonl")...)
}

// runPreferring is preferRecipe of a file.
func runPreferring(t *testing.T, file, on string, sets ...string) (got map[string]any, use memoryUse, outputs map[string]ident.Digest) {
	t.Helper()
	r := recipe(t, file, append(sets, "compute.threads=2", "compute.device="+on)...)
	be, err := device.ForRun(&r.Run, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	l := labOn(t, be)
	p, err := plan.New(r, 0, l.be.Class(), l.sources)
	if err != nil {
		t.Fatal(err)
	}
	res, _ := l.execute(p)
	if err := json.Unmarshal(l.stageOf(res.Run.ID, "prefer").Result, &got); err != nil {
		t.Fatal(err)
	}
	return got, l.memoryOf(res.Run.ID)["prefer"], l.outputs(res.Run.ID)
}

// The recipe learns its sums, and the device takes the memory that the plan says.
func TestPreferRecipe(t *testing.T) {
	for _, sets := range [][]string{nil, {"compute={micro_batch_tokens: 90, recompute: true}", "model.dtype=bf16", "prefer.steps=10"},
		{"prefer={loss: orpo, beta: 2}"}, {"prefer={loss: ipo, steps: 10, optim: {kind: sgd, lr: 0.05}}", "model.arch={qkv_bias: true, tie_embeddings: false}"}} {
		got, use, _ := preferRecipe(t, "cpu", sets...)
		if right, _ := got["prefer/accuracy"].(float64); len(sets) < 2 && right < 0.9 {
			t.Errorf("%q: accuracy %v", sets, got["prefer/accuracy"])
		}
		t.Logf("%q: peak %d, planned %d", sets, use.Peak, use.Planned)
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.05*planned && planned <= 1.2*p) {
			t.Errorf("%q: peak %d, planned %d: %.3f times", sets, use.Peak, use.Planned, p/planned)
		}
	}
}

// Folding the adapters of a model that is far smaller than a piece of it takes no more than training.
func TestPreferFoldsInLittleMemory(t *testing.T) {
	_, use, _ := preferRecipe(t, "cpu", "prefer.lora.rank=2", "prefer.steps=2",
		"model.arch={layers: 2, width: 16, heads: 2, kv_heads: 1, head_size: 8, ffn: 32}")
	if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.05*planned && planned <= 1.25*p) {
		t.Errorf("peak %d, planned %d: %.3f times", use.Peak, use.Planned, p/planned)
	}
}

// Adapters learn on frozen weights, in the memory that the plan says, and end up in the weights.
func TestPreferWithAdapters(t *testing.T) {
	for _, sets := range [][]string{{"prefer.lora={rank: 8, alpha: 16}"}, {"prefer.lora={rank: 2, targets: [q_proj, down_proj], dropout: 0.1}", "model.dtype=bf16", "prefer.steps=10"}} {
		got, use, outputs := preferRecipe(t, "cpu", sets...)
		nll, _ := got["prefer/nll"].(float64)
		if limit := map[bool]float64{true: 5, false: 5.4}[len(sets) == 1]; !(nll < limit) { // ln 257 = 5.5 at the start
			t.Errorf("%q: negative log-prob %v", sets, nll)
		}
		var init, learned ident.Digest
		for name, d := range outputs {
			switch {
			case strings.HasPrefix(name, "init") && strings.HasSuffix(name, stage.RoleWeights):
				init = d
			case strings.HasPrefix(name, "prefer") && strings.HasSuffix(name, stage.RoleWeights):
				learned = d
			}
		}
		if init.IsZero() || learned.IsZero() || init == learned {
			t.Errorf("%q: weights %s became %s", sets, init.Short(), learned.Short())
		}
		t.Logf("%q: peak %d, planned %d", sets, use.Peak, use.Planned)
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.05*planned && planned <= 1.2*p) {
			t.Errorf("%q: peak %d, planned %d: %.3f times", sets, use.Peak, use.Planned, p/planned)
		}
	}
	l := newLab(t)
	p := preferRun(l, pairFile(t, 1), append(onlyTuned(), "prefer.lora={rank: 2, dropout: 0.05}")...)
	res, _ := l.execute(p)
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("repeating it: %+v", v)
	}
	if left, err := filepath.Glob(filepath.Join(l.db.RunDir(res.Run.RID), "adapters-*")); len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
	if _, err := plan.New(recipe(t, "prefer_cpu.yaml", "prefer.source=../../configs/preferences/sums.jsonl", "prefer.lora={rank: 2, targets: [out_proj]}"), 0,
		l.be.Class(), l.sources); err == nil || !strings.Contains(err.Error(), `cannot target "out_proj"`) {
		t.Errorf("an unknown target: %v", err)
	}
}

// On the fake driver (make cuda) it has the CPU's bits, in the memory that its plan says.
func TestPreferOnCUDA(t *testing.T) {
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	for _, sets := range [][]string{{"compute.recompute=true"}, {"model.dtype=bf16", "compute.numerics=matrix/16x25", "prefer.loss=hinge"}, {"prefer.lora.rank=4"}} {
		sets = append(sets, "prefer.steps=3")
		_, _, want := preferRecipe(t, "cpu", sets...)
		_, use, got := preferRecipe(t, device.CUDA, sets...)
		if len(want) < 5 || !maps.Equal(got, want) {
			t.Errorf("%q: on the GPU %v, on the CPU %v", sets, got, want)
		}
		t.Logf("%q: peak %d, planned %d", sets, use.Peak, use.Planned)
		if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.02*planned && planned <= 1.2*p) {
			t.Errorf("%q: peak %d, planned %d: %.3f times", sets, use.Peak, use.Planned, p/planned)
		}
	}
}

// After the stage training goes on with adapters on its weights.
func TestAdaptersAfterPrefer(t *testing.T) {
	l := newLab(t)
	res, q := l.execute(preferRun(l, pairFile(t, 1), "train.lora.rank=2", "prefer.steps=2", "eval.final.suites=[]"))
	if got := executedStages(q); got != "prepare init prefer train merge" || res.Run.Steps != 1 {
		t.Errorf("stages %s, %d steps", got, res.Run.Steps)
	}
	if said := strings.Join(q.warnings, "\n"); !strings.Contains(said, "adapters for the weights after prefer") {
		t.Errorf("warnings %s", said)
	}
}

package stage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/checkpoint"
	"exp/train/model"
)

var update = flag.Bool("update", false, "rewrite golden files")

// trial runs stages of smoke_cpu without a store. The chain starts from a fixed run,
// so it changes with results and not with the sources.
type trial struct {
	t   *testing.T
	env stage.Env
	in  stage.Inputs
}

func newTrial(t *testing.T) *trial {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	tr := &trial{t: t, env: stage.Env{Backend: be, Blobs: blob.At(filepath.Join(t.TempDir(), "blobs"))}, in: stage.Inputs{}}
	for _, kind := range []config.Stage{config.Prepare, config.Init, config.SFT} {
		for _, o := range tr.run(kind, tr.in, "sft={steps: 30, problems_per_step: 16, optim: {lr: 3e-3}}").Outputs {
			tr.in[o.Role] = o.Digest
		}
	}
	return tr
}

// run executes a stage of smoke_cpu with some keys changed. Wrong answers in the right
// format are rewarded: the little model gives few others.
func (tr *trial) run(kind config.Stage, in stage.Inputs, sets ...string) *stage.Outcome {
	tr.t.Helper()
	e := tr.env
	e.Dir = tr.t.TempDir()
	if !slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, "reward=") }) {
		sets = append([]string{"reward.format=0.2"}, sets...)
	}
	var err error
	e.Config, err = config.Load(config.Input{File: "../../configs/smoke_cpu.yaml",
		Sets: append([]string{"train.steps=6", "train.optim.lr=5e-3", "eval.online={every_steps: 0}", "checkpoint.every_steps=0"}, sets...)})
	if err != nil {
		tr.t.Fatalf("%v: %v", sets, err)
	}
	out, err := stage.Run(context.Background(), &e, kind, "", in)
	if err != nil {
		tr.t.Fatalf("%v: %s: %v", sets, kind, err)
	}
	return out
}

// chain trains and returns the trajectory chain.
func (tr *trial) chain(sets ...string) string {
	tr.t.Helper()
	in := maps.Clone(tr.in)
	out := tr.run(config.Train, in, sets...)
	summary := out.Summary.(map[string]any)
	for name, v := range summary["final"].(map[string]float64) {
		if strings.HasSuffix(name, "grad_norm") && v == 0 {
			tr.t.Errorf("%v: %s is 0: nothing was learned from", sets, name)
		}
	}
	return summary["chain"].(ident.Digest).String()
}

// teacher writes the folder of a model that is deeper than smoke_cpu's.
func teacher(t *testing.T) string { return folder(t, "LlamaForCausalLM") }

// folder writes the folder of a model that is deeper than smoke_cpu's, of a class that may score.
func folder(t *testing.T, class string) string {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"model.arch.layers=3"}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := prompt.Tokenizer(&r.Run)
	if err != nil {
		t.Fatal(err)
	}
	c := stage.ModelConfig(&r.Run, tok.VocabSize())
	c.InitStd = 0.3
	m, err := model.New(be, c, model.Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(label string) uint64 { return ident.Seed(3, label) })
	var weights bytes.Buffer
	sources := checkpoint.Weights(be, m, checkpoint.Plain)
	if class != "LlamaForCausalLM" {
		score := make([]float32, c.Width)
		for i := range score {
			score[i] = float32(i%5) - 2
		}
		sources = append(sources, checkpoint.Sources(be, []checkpoint.NamedBuffer{{Name: "score.weight", Shape: []int{1, c.Width},
			Data: kernels.Host(score)}})...)
	}
	if err := checkpoint.WriteSafetensors(&weights, sources); err != nil {
		t.Fatal(err)
	}
	files := tok.Files()
	files["model.safetensors"] = weights.Bytes()
	files["config.json"] = fmt.Appendf(nil, `{"architectures": [%q], "num_labels": 1, "model_type": "llama", "vocab_size": %d, "hidden_size": %d,
		"num_hidden_layers": %d, "num_attention_heads": %d, "num_key_value_heads": %d, "head_dim": %d, "intermediate_size": %d,
		"rms_norm_eps": %g, "rope_theta": %g, "max_position_embeddings": %d, "tie_word_embeddings": true}`,
		class, c.Vocab, c.Width, c.Layers, c.Heads, c.KVHeads, c.Head, c.FFN, c.NormEps, c.RopeTheta, c.MaxPositions)
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// trials are the cases of TestAlgorithmsTrain by name: every kind, every variant of
// FlowRL and every rollout correction, as settings of smoke_cpu.
func trials(t *testing.T) map[string][]string {
	cases := map[string][]string{
		"dpo, IPO to old policy":  {"algo={kind: dpo, dpo: {loss: ipo, reference: old}}"},
		"prime after, with dpo":   {"algo={kind: prime, prime: {update: after, loss: dpo, granularity: whole, norm: none, prompts_per_update: 8}}"},
		"dapo by score":           {"algo={kind: dapo, filter_groups: {metric: score}}"},
		"grpo in two epochs":      {"algo={kind: grpo, epochs: 2, kl: {loss_coef: 0.01, loss_estimator: k3+}, entropy_coef: 0.01}"},
		"ppo with KL in reward":   {"algo={kind: ppo, kl: {reward_coef: 0.1, controller: adaptive}}"},
		"rloo with gspo":          {"algo={kind: rloo, loss: gspo}"},
		"grpo two steps stale":    {"rollout.staleness=2", "algo={kind: grpo, rollout_correction: {preset: decoupled_token_is}}"},
		"flowrl stale":            {"rollout.staleness=1"},
		"gdpo with weights":       {"algo={kind: gdpo, gdpo: {weights: [1, 0.25]}}"},
		"grpo with proxies":       {"algo={kind: grpo, variance_proxies: true}"},
		"dapo by final reward":    {"algo={kind: dapo, filter_groups: {metric: seq_final_reward}, kl: {reward_coef: 0.1}}"},
		"flowrl ratio fractions":  {"algo.flowrl.ratio_fractions=true"},
		"pf_ppo by best or worst": {"algo={kind: pf_ppo, pf_ppo: {method: max_min}}"},
		"grpo with a renewed reference": {"algo={kind: grpo, kl: {loss_coef: 0.5}, reference_every: 2, reference_mix: 0.6, " +
			"reference_resets_optimizer: true}"},
		"grpo with a teacher": {"algo={kind: grpo, distill: {coef: 0.5, max: 1}, reference: " + teacher(t) + "}"},
	}
	words := func(path string) []string {
		k, ok := config.Lookup(path)
		if !ok {
			t.Fatalf("no key %s", path)
		}
		return k.Words
	}
	with := map[string]string{ // what a kind wants to be told, or to differ from others here
		"dro":            ", dro: {beta: 0.1}",
		"grpo_std_floor": ", overlong: {buffer: 1, penalty: 0.002}",
		"distill":        ", reference: " + teacher(t),
	}
	for _, kind := range words("algo.kind") {
		cases[kind] = []string{"algo={kind: " + kind + with[kind] + "}"}
		if kind == "spo" {
			cases[kind] = append(cases[kind], "rollout.n=1", "data.train.size=24")
		}
		if kind == "grpo_process" || kind == "pure" {
			cases[kind] = append(cases[kind], "reward={kind: model, weights: "+folder(t, "LlamaForSequenceClassification")+", steps: min, "+
				"split: +, separator: +, credit: "+map[string]string{"pure": "min", "grpo_process": "sum"}[kind]+"}")
		}
		if kind == "gigpo" {
			cases[kind] = append(cases[kind], "rollout.tools={kind: agent, command: ["+os.Args[0]+", agent-program], workers: 2}", "rollout.max_new_tokens=48", "model.arch.max_positions=128")
		}
	}
	for _, preset := range words("algo.flowrl.preset") {
		cases["flowrl "+preset] = []string{"algo.flowrl.preset=" + preset}
	}
	for _, preset := range words("algo.rollout_correction.preset") {
		loss := "ppo"
		if strings.HasPrefix(preset, "bypass_pg") {
			loss = "reinforce"
		}
		cases["correction "+preset] = []string{fmt.Sprintf("algo={kind: grpo, loss: %s, rollout_correction: {preset: %s}}", loss, preset)}
	}
	return cases
}

// TestAlgorithmsTrain: every algorithm trains to the chain that is written down: the
// same samples, rewards, metrics and weights after every step, on every machine of
// the class of numerics.
func TestAlgorithmsTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("trains every algorithm")
	}
	tr := newTrial(t)
	if got := plan.Numerics(tr.env.Backend.Class()); got != "cpu/fma" {
		t.Skipf("no chains are known for %s", got)
	}
	file := filepath.Join("testdata", "algorithms.golden.json")
	got := map[string]string{}
	cases := trials(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		got[name] = tr.chain(cases[name]...)
	}
	if *update {
		b, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(b, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	// One engine leaves rollout correction nothing to do, and some bounds of FlowRL are
	// not reached; but no two kinds are the same thing.
	kinds := map[string]string{}
	for name, chain := range got {
		if strings.HasPrefix(name, "correction ") || strings.HasPrefix(name, "flowrl ") {
			continue
		}
		if other := kinds[chain]; other != "" {
			t.Errorf("%s and %s train alike", name, other)
		}
		kinds[chain] = name
	}
	if got["flowrl"] != got["flowrl recipe"] || got["grpo"] != got["correction disabled"] {
		t.Error("a preset that is the default changes the training")
	}
}

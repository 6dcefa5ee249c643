package forecast

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/kernels"
)

// The smoke run takes 8 problems with 4 completions each in a step.
func TestEstimateSampled(t *testing.T) {
	for _, tt := range []struct {
		set           string
		trained, want int
	}{
		{"algo.kind=grpo", 32, 32},
		{"algo={kind: grpo, filter_groups: {metric: score, max_batches: 3}}", 32, 96},
		{"algo.kind=remax", 32, 40},
		{"rollout={source: recorded, recorded: x.jsonl}", 32, 0},
	} {
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{tt.set}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if e.Completions != tt.trained || e.Sampled != tt.want {
			t.Errorf("%s: %d completions, %d sampled, want %d, %d", tt.set, e.Completions, e.Sampled, tt.trained, tt.want)
		}
		if text := e.Text(""); strings.Contains(text, "(sampled: up to") != (tt.trained != tt.want) {
			t.Errorf("%s: %s", tt.set, text)
		}
	}
}

// The heap has room for the completions of a step twice, and for the step before while it is recorded.
func TestEstimateHeap(t *testing.T) {
	program := func(steps string) int64 {
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{steps, "rollout={n: 4000, max_new_tokens: 6}"}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Program
	}
	const step = 8 * 4000 * (1200 + 24*6)
	if one, more := program("train.steps=1"), program("train.steps=9"); more != one+step {
		t.Errorf("%d bytes for one step, %d for more", one, more)
	}
}

// Two steps ahead wait 2 · 32 completions, of three numbers and some text a token.
func TestEstimateWaiting(t *testing.T) {
	disk := func(sets ...string) (int64, *config.Resolved) {
		r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: append([]string{"checkpoint={every_steps: 1, keep: 3}"}, sets...)})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Disk, r
	}
	fresh, _ := disk()
	stale, r := disk("rollout.staleness=2")
	if got, want := stale-fresh, int64(3*2*32*20*r.Run.Rollout.MaxNewTokens); got != want {
		t.Errorf("%d bytes more, want %d", got, want)
	}
}

// The disk holds the kept checkpoints, by steps or by time, and one if a run saves only when it stops. With the best
// validation's weights, each may hold those of another, and the last ones are a file of their own.
func TestEstimateCheckpoints(t *testing.T) {
	for checkpoints, want := range map[string]int64{
		"every_steps: 2, every_minutes: 0, keep: 3": 3, "every_steps: 0, every_minutes: 15, keep: 3": 3,
		"every_steps: 0, every_minutes: 0, keep: 3": 1,
	} {
		e, err := Of(recipe(t, "smoke_cpu.yaml", "checkpoint={"+checkpoints+"}"), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if one := 12 * int64(e.Parameters+e.Heads); e.checkpoints != want*one {
			t.Errorf("%s: %d bytes of checkpoints, want %d of %d", checkpoints, e.checkpoints, want, one)
		}
		best, err := Of(recipe(t, "smoke_cpu.yaml", "checkpoint={"+checkpoints+"}", "eval.online.best=val/pass@1"), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if got := best.Disk - e.Disk; got != (want+1)*e.trained {
			t.Errorf("%s: %d bytes of best weights, want %d of %d", checkpoints, got, want+1, e.trained)
		}
	}
}

// The store keeps all completions of training, or a share of them: 4 steps of 32 here.
func TestEstimateCompletions(t *testing.T) {
	for share, want := range map[string]int64{"all": 4 * 32 * (24*12 + 160), "sampled(0.25)": 32 * (24*12 + 160), "none": 0} {
		e, err := Of(recipe(t, "smoke_cpu.yaml", "store.samples.train="+share), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if text := e.Text(""); e.CompletionBytes != want || strings.Contains(text, "of completions at full length") != (want > 0) {
			t.Errorf("%s: %d bytes, want %d\n%s", share, e.CompletionBytes, want, text)
		}
	}
}

// One update is not "1 updates".
func TestEstimateOneUpdate(t *testing.T) {
	for prompts, want := range map[string]string{"4": "2 updates", "8": "1 update"} {
		e, err := Of(recipe(t, "smoke_cpu.yaml", "train.prompts_per_update="+prompts), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if text := e.Text(""); !strings.HasSuffix(strings.TrimSpace(text), "tokens, "+want) {
			t.Errorf("%s prompts in an update: %s", prompts, text)
		}
	}
}

// A reward model is part of the memory of training, and only with its kind of reward.
func TestEstimateRewardModel(t *testing.T) {
	folder := func(architecture string, vocab int) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"architectures": [%q],
			"vocab_size": %d, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
			"intermediate_size": 96, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 1e4}`, architecture, vocab), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir, writes := folder("LlamaForSequenceClassification", 50), folder("LlamaForCausalLM", 50)
	scratch := func(sets ...string) int64 { // of the operations, which all models share
		e, err := Of(smoke(t, sets...), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Memory[slices.IndexFunc(e.Memory, func(p Part) bool { return p.Name == string(kernels.ScratchRoom) })].Bytes
	}
	judge := "reward={kind: genrm, weights: " + folder("LlamaForCausalLM", 100000) + ", judge: {template: t, max_tokens: 8, context: 128}}"
	if small, large := scratch(), scratch(judge); large <= small {
		t.Errorf("a judge with many tokens takes %d bytes of scratch memory, a small policy alone %d", large, small)
	}
	for _, tt := range []struct {
		sets  []string
		least int64
	}{
		{nil, 0},
		{[]string{"reward.kind=model", "reward.weights=" + dir}, 4 * (50*64 + 2*(4*64*64+3*64*96))},
		// One that writes also has a layer for its output, and keys and values of five answers.
		{[]string{"reward={kind: genrm, weights: " + writes + ", judge: {template: t, max_tokens: 8, context: 128, sequences: 5}}"},
			4 * (2*50*64 + 2*(4*64*64+3*64*96) + 5*128*2*2*64)},
	} {
		e, err := Of(smoke(t, tt.sets...), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(e.Memory, func(p Part) bool { return p.Name == "reward model" })
		if (i >= 0) != (tt.least > 0) || i >= 0 && e.Memory[i].Bytes < tt.least {
			t.Errorf("%v: %+v, want a reward model of at least %d bytes", tt.sets, e.Memory, tt.least)
		}
	}
}

// A step of an agent whose conversations are all learned has each of them at full length, in tokens and on disk.
func TestEstimateOfConversations(t *testing.T) {
	of := func(sets ...string) Estimate {
		t.Helper()
		e, err := Of(recipe(t, "agent_cpu.yaml", append(sets, "store.samples.train=all")...), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, three := of(), of("rollout.tools.conversations=all", "rollout.tools.max_conversations=3")
	if three.Tokens != 3*one.Tokens || three.CompletionBytes <= 3*one.CompletionBytes || three.CompletionBytes > 5*one.CompletionBytes {
		t.Errorf("%d tokens and %d bytes, of one conversation %d and %d", three.Tokens, three.CompletionBytes, one.Tokens, one.CompletionBytes)
	}
}

package run

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/plan"
)

// A run takes the device memory that its plan says, in fine-tuning and in
// training, with every algorithm, with and without recomputation. The promise is that
// the peak is never above 1.15 times the plan. The test is stricter, so that no part
// can be left out; the plan may be above the peak where sequences are short or the
// instruction set is narrow.
func TestMemoryIsAsPlanned(t *testing.T) {
	few := []string{"sft={steps: 2, problems_per_step: 64, optim: {warmup_steps: 0}}", "train={steps: 1, prompts_per_step: 32, optim: {warmup_steps: 0}}",
		"data={train: {size: 100}, val: {size: 8}, test: {size: 8}}", "eval.online.every_steps=0", "checkpoint.every_steps=0"}
	for _, tt := range []struct {
		file string
		sets []string
		slow bool
	}{
		{"smoke_cpu.yaml", nil, false},
		{"smoke_cpu.yaml", []string{"compute={recompute: true, micro_batch_tokens: 2000}"}, false},
		{"smoke_cpu.yaml", []string{"algo.kind=ppo", "algo.critic.warmup_steps=0", "rollout={max_sequences: 20, page_tokens: 64}"}, false},
		{"smoke_cpu.yaml", []string{"algo.kind=ppo", "algo.critic.warmup_steps=0", "compute.recompute=true", "model.arch={qk_norm: true, qkv_bias: true}"}, false},
		{"smoke_cpu.yaml", []string{"algo.kind=grpo", "model.arch.tie_embeddings=false", "rollout={max_sequences: 3, page_tokens: 16}"}, false},
		{"smoke_cpu.yaml", []string{"algo.kind=grpo", "algo.kl.loss_coef=0.01", "compute={recompute: true, micro_batch_tokens: 90}", "rollout.max_sequences=3"}, false},
		{"smoke_cpu.yaml", []string{"rollout={top_p: 0.9, max_sequences: 64}", "algo.flowrl={use_logz: false, reference: old}"}, false},
		{"smoke_cpu.yaml", []string{"model.dtype=bf16"}, false},
		{"smoke_cpu.yaml", []string{"algo.kind=prime", "algo.prime.prompts_per_update=8"}, false},
		{"smoke_cpu.yaml", []string{"model.dtype=bf16", "algo.kind=ppo", "algo.critic.warmup_steps=0", "compute.recompute=true"}, false},
		{"smoke_cpu.yaml", []string{"algo={kind: grpo, kl: {loss_coef: 0.01}, reference_every: 2}"}, false},
		{"smoke_cpu.yaml", []string{"model.dtype=bf16", "algo.reference_every=2"}, false},
		{"smoke_cpu.yaml", []string{"train.optim.kind=sgd", "sft.optim={kind: sgd, momentum: 0.9}"}, false},
		{"smoke_cpu.yaml", []string{"train.optim.kind=muon", "sft.optim.kind=muon"}, false},
		{"smoke_cpu.yaml", []string{"data.pass_rate={samples: 4, min: 0, max: 1}"}, false},
		{"smoke_cpu.yaml", []string{"data.pass_rate={samples: 4, min: 0, max: 1}",
			"rollout={top_p: 0.9, max_sequences: 20}", "model.dtype=bf16"}, false},
		{"countdown_cpu_flowrl.yaml", few, true},
		{"countdown_cpu_flowrl.yaml", append(few, "model.dtype=bf16"), true},
		{"countdown_cpu_ppo.yaml", append(few, "algo.critic.warmup_steps=0", "compute.recompute=true"), true},
	} {
		if tt.slow && testing.Short() {
			continue
		}
		t.Run(tt.file+" "+strings.Join(tt.sets, " "), func(t *testing.T) {
			for kind, use := range memoryOfRun(t, tt.file, append(slices.Clone(tt.sets), "compute.threads=2")) {
				t.Logf("%s: peak %s, planned %s", kind, quantity.Bytes(use.Peak), quantity.Bytes(use.Planned))
				if p, planned := float64(use.Peak), float64(use.Planned); !(p > 0 && p <= 1.05*planned && planned <= 1.2*p) {
					t.Errorf("%s: peak %s, planned %s: %.2f times", kind, quantity.Bytes(use.Peak), quantity.Bytes(use.Planned), p/planned)
				}
			}
		})
	}
}

// memoryOfRun executes a recipe up to training and returns the recorded memory of the stages that ranks share.
func memoryOfRun(t *testing.T, file string, sets []string) map[string]memoryUse {
	t.Helper()
	r := recipe(t, file, sets...)
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
	l.options.Until = config.Train
	res, _ := l.execute(p)
	out, want := l.memoryOf(res.Run.ID), 2
	if r.Run.Data.PassRate.Samples > 0 {
		want++
	}
	if len(out) != want {
		t.Fatalf("memory is recorded of %v, want sft and train, and of pass_rate if there is one", out)
	}
	return out
}

// memoryOf returns the recorded memory of a run's stages.
func (l *lab) memoryOf(run int64) map[string]memoryUse {
	t := l.t
	t.Helper()
	stages, err := l.db.Stages(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]memoryUse{}
	for _, s := range stages {
		var result struct {
			Memory *memoryUse `json:"memory"`
		}
		if err := json.Unmarshal(s.Result, &result); err != nil {
			t.Fatal(err)
		}
		if result.Memory != nil {
			out[s.Kind] = *result.Memory
		}
	}
	return out
}

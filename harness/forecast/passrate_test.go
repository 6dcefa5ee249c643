package forecast

import (
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/stage"
)

// Measuring pass rates is part of the plan: 4 completions of each of 64 problems, of 24 tokens, and weights with a
// sampler's cache. It needs less than training.
func TestEstimatePassRates(t *testing.T) {
	const large = "train={prompts_per_step: 32, prompts_per_update: 32}" // it needs more memory
	r := recipe(t, "smoke_cpu.yaml", large, "data.pass_rate.samples=4")
	e, err := Of(r, 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	x := e.Rating
	if x == nil || x.Each != 4 || x.Problems != 64 || x.Tokens != 4*64*24 || x.Seconds != 0 {
		t.Fatalf("%+v", x)
	}
	const want = "before   4 completions of every problem, for its pass rate (data.pass_rate.samples): 256 " +
		"completions, up to 6144 tokens"
	if text := e.Text(""); !strings.Contains(text, want) || strings.Contains(text, "in pass_rate") {
		t.Errorf("%s\nwant %s", text, want)
	}
	if n := e.Planned(config.PassRate); n == 0 || n != sumParts(x.Memory) || n >= e.Total() {
		t.Errorf("%d bytes, training %d", n, e.Total())
	}
	without, err := Of(recipe(t, "smoke_cpu.yaml", large), 1).Estimate()
	if err != nil || without.Rating != nil || without.Total() != e.Total() || strings.Contains(without.Text(""),
		"pass rate") {
		t.Errorf("without pass rates: %v, %+v", err, without.Rating)
	}
}

// A file's problems are not counted by the plan, unless rows are drawn from it.
func TestEstimateRatedFile(t *testing.T) {
	for sets, want := range map[string]string{
		"{source: p.jsonl, size: 0}":                    "for its pass rate (data.pass_rate.samples)\n",
		"{source: p.jsonl, size: 0, max_samples: 100}":  "(data.pass_rate.samples): 400 completions, up to",
		"{source: p.jsonl, size: 30, max_samples: 100}": "(data.pass_rate.samples): 120 completions, up to",
	} {
		e, err := Of(recipe(t, "smoke_cpu.yaml", "data.train="+sets, "data.pass_rate.samples=4"), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if text := e.Text("") + "\n"; !strings.Contains(text, want) {
			t.Errorf("%s: %s\nwant %s", sets, text, want)
		}
	}
}

// On GPUs the plan says how long it takes, and all ranks share it, in groups that share products.
func TestEstimatePassRatesOnGPUs(t *testing.T) {
	sets := []string{"data.pass_rate.samples=8", "data.train={size: 1000}", "compute.device=cuda"}
	of := func(ranks int, more ...string) *Rating {
		t.Helper()
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", append(more, sets...)...), ranks).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Rating
	}
	one, eight := of(8, "compute.tensor_parallel=8"), of(8)
	if one.Seconds <= 0 || eight.Seconds <= 0 || !(eight.Seconds < one.Seconds) {
		t.Errorf("%v s in one group of 8, %v s in eight", one.Seconds, eight.Seconds)
	}
	if sumParts(one.Memory) >= sumParts(eight.Memory) {
		t.Errorf("a share of the weights takes %d bytes, all %d", sumParts(one.Memory), sumParts(eight.Memory))
	}
	r := recipe(t, "flowrl_7b_math.yaml", append(sets, "rollout.cache_tokens=4096")...)
	if at := Of(r, 8).Placement(config.PassRate); at == (stage.Placement{}) || at.Moments || at.Sums ||
		at.CacheTokens < 4096 {
		t.Errorf("placement %+v", at)
	}
}

// Ranks that sample in other groups than they learn still make whole groups here.
func TestRanksRatePassRates(t *testing.T) {
	sets := []string{"compute.tensor_parallel=4", "compute.rollout_tensor_parallel=1", "compute.rollout_ranks=1",
		"rollout.staleness=1"}
	if err := CheckRanks(recipe(t, "smoke_cpu.yaml", append(sets, "sft.steps=0",
		"model.arch={heads: 4, kv_heads: 4, head_size: 32, width: 128, ffn: 128}")...), 5); err != nil {
		t.Fatalf("without pass rates: %v", err)
	}
	err := CheckRanks(recipe(t, "smoke_cpu.yaml", append(sets, "sft.steps=0", "data.pass_rate.samples=4")...), 5)
	if err == nil || !strings.Contains(err.Error(), "in measuring pass rates (data.pass_rate.samples) all ranks") {
		t.Errorf("5 ranks in groups of 4: %v", err)
	}
}

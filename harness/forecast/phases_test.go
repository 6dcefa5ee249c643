package forecast

import (
	"math"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
)

// recipe loads a configuration of the repository.
func recipe(t *testing.T, file string, sets ...string) *config.Resolved {
	t.Helper()
	r, err := config.Load(config.Input{File: "../../configs/" + file, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// smoke loads the smoke recipe with settings over it.
func smoke(t *testing.T, sets ...string) *config.Resolved {
	t.Helper()
	return recipe(t, "smoke_cpu.yaml", sets...)
}

// noGPU selects a GPU that no machine has: the plan is for a published one everywhere.
const noGPU = "compute.device=cuda:99"

// The plan of a step on several ranks says what each sends: gradients to their shards and
// parameters from them, and activations where ranks share products.
func TestPhases(t *testing.T) {
	r := recipe(t, "flowrl_7b_math.yaml", "train.slices=8", noGPU)
	e, err := Of(r, 8).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	names, seconds := "", 0.0
	for _, p := range e.Phases {
		names, seconds = names+p.Name+"; ", seconds+p.Seconds
	}
	if want := "sampling; reference log-probs; forward and backward passes; gradients and parameters; "; names != want {
		t.Errorf("phases %s, want %s", names, want)
	}
	const updates = 16
	n := float64(e.Parameters + e.Heads)
	if got, want := float64(e.Phases[3].Sent), updates*2*4*n*7/8; got < want || got > 1.001*want {
		t.Errorf("gradients and parameters take %v bytes, want %v", got, want)
	}
	if e.Phases[1].Sent != 0 || seconds < 60 || seconds > 3600 {
		t.Errorf("phases %+v", e.Phases)
	}
	shared := recipe(t, "flowrl_7b_math.yaml", "compute.tensor_parallel=8", noGPU)
	s, err := Of(shared, 8).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if s.Phases[1].Sent == 0 || s.Total() >= e.Total() {
		t.Errorf("8 ranks that share products send %d bytes and need %d, others %d", s.Phases[1].Sent, s.Total(), e.Total())
	}
	for _, want := range []string{"on each of 8 ranks", "policy: moments of the optimizer", "that a rank sends in a step",
		"400 TFLOP/s", "calculated, not measured"} {
		if text := s.Text(""); !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	alone, err := Of(r, 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(alone.Phases); n != 4 || alone.Phases[2].Seconds < 6*e.Phases[2].Seconds {
		t.Errorf("%d phases of one GPU, passes take %v s", n, alone.Phases)
	}
	for _, want := range []string{"s a step", "in this machine's pinned memory", "disk     up to", "50 GB/s to its host"} {
		if text := alone.Text(""); !strings.Contains(text, want) || strings.Contains(text, "traffic") {
			t.Errorf("the text of one GPU lacks %q or has traffic:\n%s", want, text)
		}
	}
	cpu, err := Of(recipe(t, "countdown_cpu_flowrl.yaml"), 2).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if text := cpu.Text(""); !strings.Contains(text, "exp bench measures this machine") {
		t.Errorf("the text of a CPU:\n%s", text)
	}
}

// Muon exchanges momenta, too, and takes products; SGD without momentum reads and writes no moments.
func TestPhasesOfOptimizers(t *testing.T) {
	const updates = 16
	update := func(ranks int, sets ...string) (Estimate, Phase) {
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", append(sets, "train.slices=8", "compute.offload=none", noGPU)...), ranks).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e, e.Phases[3]
	}
	e, adamw := update(8)
	_, muon := update(8, "train.optim.kind=muon")
	n := float64(e.Parameters + e.Heads)
	if got, want := float64(muon.Sent-adamw.Sent), updates*4*n*7/8; got < want || got > 1.001*want {
		t.Errorf("momenta take %v bytes, want %v", got, want)
	}
	_, adamw = update(1)
	_, muon = update(1, "train.optim.kind=muon")
	// Of 28 layers: 3584 and 512 wide maps of attention, and three between 3584 and 18944.
	products := func(k, l float64) float64 { return 5 * (4*k*k*l + 2*k*k*k) }
	want := updates * 28 * (2*products(3584, 3584) + 2*products(512, 3584) + 3*products(3584, 18944)) / gpuFLOPs
	if got := muon.Seconds - adamw.Seconds; math.Abs(got-want) > 1e-6*want {
		t.Errorf("products take %v s, want %v", got, want)
	}
	_, sgd := update(1, "train.optim.kind=sgd")
	want = updates * 16 * n / gpuMemory // two moments, read and written
	if got := adamw.Seconds - sgd.Seconds; got < want || got > 1.001*want {
		t.Errorf("moments take %v s, want %v", got, want)
	}
}

// Ranks that only sample share the sampling, with caches of their own, while the others share the learning;
// a step takes as long as the slower side.
func TestPhasesAhead(t *testing.T) {
	var before map[string]Phase
	for _, k := range []string{"2", "4", "6"} {
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", "train.slices=8", "rollout.staleness=1",
			"compute.rollout_ranks="+k), 8).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		list, learning := map[string]Phase{}, 0.0
		for _, p := range e.Phases {
			list[p.Name] = p
			if !p.Ahead {
				learning += p.Seconds
			}
		}
		sampling, passes := list["sampling"], list["forward and backward passes"]
		if before != nil && (sampling.Seconds >= before["sampling"].Seconds ||
			passes.Seconds <= before["forward and backward passes"].Seconds) {
			t.Errorf("%s ranks sample in %v s, and the others learn in %v s; with fewer samplers %v", k, sampling.Seconds,
				passes.Seconds, before)
		}
		before = list
		give := list["completions to all ranks"]
		if got, want := give.Sent, int64(4096*8192*20*7); !sampling.Ahead || !give.Ahead || got != want {
			t.Errorf("%s ranks: completions take %d bytes, want %d", k, got, want)
		}
		samplers := float64(k[0] - '0')
		want := 4 * float64(e.Parameters) * samplers / (8 - samplers)
		if got := float64(list["weights to ranks that sample"].Sent); got < want-1 || got > 1.001*want {
			t.Errorf("%s ranks: weights take %v bytes, want %v", k, got, want)
		}
		if _, seconds := e.step(); seconds != max(sampling.Seconds+give.Seconds, learning) {
			t.Errorf("%s ranks: a step takes %v s; sampling %v, learning %v", k, seconds, sampling.Seconds, learning)
		}
		if text := e.Text(""); !strings.Contains(text, "work on sampling and completions to all ranks while the others learn") {
			t.Errorf("the text does not say what overlaps:\n%s", text)
		}
	}
}

// partOf returns a part of a plan's memory.
func partOf(list []Part, name string) int64 {
	for _, p := range list {
		if p.Name == name {
			return p.Bytes
		}
	}
	return 0
}

// Sampling with another T takes a copy of the weights and a cache that are cut by it, and is planned
// with what ranks send for the copy.
func TestPlanOfRolloutTensor(t *testing.T) {
	const copied, cache = "policy: copy of weights for sampling", "key/value cache of the sampler"
	plan := func(sets ...string) Estimate {
		t.Helper()
		e, err := Of(recipe(t, "flowrl_32b_math.yaml", append(sets, noGPU, "rollout.cache_tokens=100000")...), 32).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	same, other := plan(), plan("compute.rollout_tensor_parallel=2")
	if partOf(same.Memory, copied) != 0 || partOf(other.Memory, cache) != 4*partOf(same.Memory, cache) {
		t.Errorf("T' = T: %v\nT' = 2: %v", same.Memory, other.Memory)
	}
	half := int64(other.Parameters) // bytes in bf16
	if got := partOf(other.Memory, copied); got < half || got > half+half/5 {
		t.Errorf("a copy of half the weights takes %d bytes, want about %d", got, half)
	}
	weights := other.Phases[0]
	if want := 4 * half / 2 * 7 / 8; weights.Name != "weights for sampling" || weights.Sent < want || weights.Sent > want+want/50 {
		t.Errorf("the first phase is %+v, want %d bytes", weights, want)
	}
	if a, b := same.Phases[0], other.Phases[1]; a.Name != "sampling" || b.Name != "sampling" || b.Seconds > a.Seconds*2/3 {
		t.Errorf("sampling takes %v s with T' = T, and %v s with T' = 2", a.Seconds, b.Seconds)
	}
}

// The plan of ranks that only sample has nothing that learns, and those that only learn have no sampler
// unless they validate.
func TestPlanOfRoles(t *testing.T) {
	const cache, moments = "key/value cache of the sampler", "policy: moments of the optimizer"
	apart := []string{"train.slices=8", "rollout.staleness=1", "compute.rollout_ranks=2"}
	for _, validates := range []bool{false, true} {
		sets := append(slices.Clone(apart), noGPU, "eval.online.every_steps=0")
		if validates {
			sets[len(sets)-1] = "eval.online.every_steps=10"
		}
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", sets...), 8).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		learner := slices.Concat(e.Memory, e.HostMemory)
		if (partOf(learner, cache) > 0) != validates || partOf(learner, moments) == 0 ||
			partOf(e.SamplerMemory, cache) == 0 || partOf(e.SamplerMemory, moments) != 0 ||
			partOf(e.SamplerMemory, "policy: gradients") != 0 || partOf(e.SamplerMemory, "reference policy") != 0 {
			t.Errorf("validation %v: learners have %v\nsamplers %v", validates, e.Memory, e.SamplerMemory)
		}
		for _, want := range []string{"on each of 6 ranks that learn", "on each of 2 ranks that only sample"} {
			if text := e.Text(""); !strings.Contains(text, want) {
				t.Errorf("the text lacks %q:\n%s", want, text)
			}
		}
	}
}

// SFT, in which all ranks learn all weights, may need more memory than training; the machine must have it, and
// the text says so.
func TestPlanOfSFT(t *testing.T) {
	const says = "in SFT, which needs more than training"
	for _, tt := range []struct {
		samplers string
		more     bool
	}{{"0", false}, {"3", true}} {
		e, err := Of(smoke(t, "rollout={staleness: 1, max_sequences: 4}", "train.slices=4",
			"sft.problems_per_step=20", "compute.rollout_ranks="+tt.samplers), 4).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		sft := 4 * (sumParts(e.SFTMemory) + e.Program)
		if got := e.Resident(4); got < sft || (got == sft) != tt.more {
			t.Errorf("%s of 4 ranks only sample: they need %d bytes, in SFT %d", tt.samplers, got, sft)
		}
		if text := e.Text(""); strings.Contains(text, "on each of 4 ranks "+says) != tt.more {
			t.Errorf("%s of 4 ranks only sample:\n%s", tt.samplers, text)
		}
		if got, want := e.Resident(1), e.Most()+e.Program; got != want || e.Most() < sumParts(e.SFTMemory) {
			t.Errorf("%s of 4 ranks only sample: one needs %d bytes, want %d", tt.samplers, got, want)
		}
	}
	tuned := []string{"train.lora.rank=4", "sft={steps: 1, optim: {lr: 1e-5}}", noGPU, "rollout.cache_tokens=100000"}
	for offload, says := range map[string]string{"none": says, "moments": says,
		"auto": "56.7 GiB  policy: moments of the optimizer, in this machine's pinned memory"} {
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", append(tuned, "compute.offload="+offload)...), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if e.Most() != sumParts(e.SFTMemory) || e.Most() <= e.Total() || !strings.Contains(e.Text(""), says) {
			t.Errorf("offload %s: needs %d bytes, in SFT %d:\n%s", offload, e.Most(), sumParts(e.SFTMemory), e.Text(""))
		}
		if got, want := e.Pinned(), sumParts(e.SFTHostMemory); got != want || (got == 0) != (offload == "none") {
			t.Errorf("offload %s: pins %d bytes, in SFT %d", offload, got, want)
		}
	}
}

// Ranks that only sample make no backward pass, whose scratch memory their cache gets.
func TestPlanOfSamplersScratch(t *testing.T) {
	const scratch = "scratch memory of the kernels"
	for _, shared := range []string{"1", "2"} {
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", "train.slices=4", "rollout.staleness=1", noGPU,
			"compute.rollout_ranks=4", "compute.tensor_parallel="+shared), 8).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		learner, sampler := partOf(e.Memory, scratch), partOf(e.SamplerMemory, scratch)
		t.Logf("products shared by %s: %d bytes, learners %d", shared, sampler, learner)
		if sampler == 0 || sampler > learner/2 {
			t.Errorf("products shared by %s: samplers need %d bytes of scratch memory, learners %d", shared, sampler, learner)
		}
	}
}

// A teacher scores each completion's tokens by one product with its output matrix, and finds its likeliest tokens by
// another.
func TestPhasesOfTeacher(t *testing.T) {
	took := func(k string) float64 {
		t.Helper()
		e, err := Of(recipe(t, "flowrl_7b_math.yaml", "algo={kind: distill, reference: hub:Qwen/Qwen2.5-32B@main}",
			"algo.distill.top_k="+k, noGPU), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if e.Phases[1].Name != "reference log-probs" {
			t.Fatalf("the second phase is %s", e.Phases[1].Name)
		}
		return e.Phases[1].Seconds
	}
	const scored, vocab, width = 4096 * 8192, 152064, 5120
	alone, taught := took("0"), took("16")
	if got, want := taught-alone, 2*scored*vocab*width/gpuFLOPs; math.Abs(got-want) > 1e-6*want {
		t.Errorf("the likeliest tokens take %v s, want %v of %v", got, want, taught)
	}
}

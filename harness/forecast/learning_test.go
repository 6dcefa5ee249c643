package forecast

import (
	"math"
	"slices"
	"strings"
	"testing"

	"exp/experiments/quantity"
	"exp/harness/bench"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/model"
)

// A layer of prefer_cpu.yaml has 64·(128 + 64 + 3·128) = 36,864 weights in linear maps, and the output 64·257. A
// sequence of 32 tokens has 528 pairs of tokens that attend, in 2 layers with 64 channels.
const (
	layerFLOPs  = 2 * 2 * 36864
	outputFLOPs = 2 * 64 * 257
)

// learningOf returns the work of the only stage of a recipe that learns, on a CPU that does 1 GFLOP/s forward, 2
// backward, and 1 GB/s in updates.
func learningOf(t *testing.T, file string, show func(e *Estimate, r *config.Resolved), sets ...string) Learning {
	t.Helper()
	r := recipe(t, file, append(sets, "prefer.source=../../configs/preferences/sums.jsonl")...)
	f := Of(r, 1)
	f.Rates = &Rates{Forward: 1e9, Backward: 2e9, Sampling: 1e9, Memory: 1e9, columns: panelColumns}
	e, err := f.Estimate()
	if err != nil || len(e.Learning) != 1 || e.Rates != f.Rates {
		t.Fatalf("%v, %+v", err, e.Learning)
	}
	if show != nil {
		show(&e, r)
	}
	if text := e.Text(""); !strings.Contains(text, "rests on 1.00 GFLOP/s forward, 2.00 backward") ||
		!strings.Contains(text, "forward and backward passes") {
		t.Errorf("the text:\n%s", text)
	}
	return e.Learning[0]
}

// phaseOf returns the seconds of a phase; 0 if there is none.
func phaseOf(x Learning, name string) float64 {
	for _, p := range append(x.Once, x.Phases...) {
		if p.Name == name {
			return p.Seconds
		}
	}
	return 0
}

// attended returns the operations of attention of a sequence of n tokens, as ForwardFLOPs counts them next to the
// ones of single tokens.
func attended(n float64) float64 { return 4 * 64 * 2 * (n*(n+1)/2 - n) }

func TestLearning(t *testing.T) {
	token := float64(layerFLOPs + 4*64*2) // a token also attends to itself
	const n = 2 * 16 * 32                 // tokens of 16 pairs at full length
	forward := n*(token+outputFLOPs) + 32*attended(32)
	whole := forward/1e9 + (n*(2*token+3*outputFLOPs)+2*32*attended(32))/2e9
	again := whole + (n*token+32*attended(32))/2e9
	// Seven adapters in each of 2 layers. Rank 8 is filled up to 32 columns.
	const in, out = 64 + 64 + 64 + 64 + 64 + 64 + 128, 64 + 32 + 32 + 64 + 128 + 128 + 64
	const there, back = 2 * 2 * 32 * (in + out), 2 * 2 * 32 * (3*in + 2*out)
	scored := (forward+n*there)/1e9 + n*2*4*(in+4*out)/1e9
	adapted := scored + (n*(token+back+2*outputFLOPs)+2*32*attended(32))/2e9 + n*2*4*(6*in+4*out)/1e9
	for _, tt := range []struct {
		name        string
		sets        []string
		want, other float64 // passes, and answers to other prompts
		refers      float64 // log-probs of the reference
	}{
		{"pairs", nil, whole, 0, 150 * forward / 1e9},
		{"recomputing", []string{"compute.recompute=true"}, again, 0, 150 * forward / 1e9},
		{"without reference", []string{"prefer.loss=orpo"}, whole, 0, 0},
		{"adapters", []string{"prefer.lora.rank=8"}, adapted, 0, 150 * scored},
		{"answers", []string{"prefer.loss=kto", "prefer.answers_per_step=32"}, whole,
			2 * forward / 1e9, 150 * forward / 1e9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := learningOf(t, "prefer_cpu.yaml", nil, tt.sets...)
			for name, want := range map[string]float64{"forward and backward passes": tt.want,
				"answers to other prompts": tt.other, "log-probs of the reference": tt.refers} {
				if got := phaseOf(x, name); math.Abs(got-want) > 1e-9*want {
					t.Errorf("%s take %v s, want %v", name, got, want)
				}
			}
			if want := 150*secondsOf(x.Phases) + secondsOf(x.Once); x.Seconds != want || x.Tokens != n || x.Steps != 150 {
				t.Errorf("%+v, want %v s", x, want)
			}
		})
	}
}

// What a file holds replaces full lengths: 80 pairs of 800 tokens are read once, and 16 of them learned in a step.
func TestShownExamples(t *testing.T) {
	x := learningOf(t, "prefer_cpu.yaml", func(e *Estimate, r *config.Resolved) { e.Show(&r.Run, shortPairs()) })
	token, length := float64(layerFLOPs+4*64*2), 5.0
	pass := 160*token + 80*outputFLOPs + 32*attended(length)
	want := pass/1e9 + (2*160*token+3*80*outputFLOPs+2*32*attended(length))/2e9
	if got := phaseOf(x, "forward and backward passes"); x.Tokens != 160 || !x.Average || math.Abs(got-want) > 1e-9*want {
		t.Errorf("%d tokens take %v s, want %v", x.Tokens, got, want)
	}
	if got, want := phaseOf(x, "log-probs of the reference"), 5*pass/1e9; math.Abs(got-want) > 1e-9*want {
		t.Errorf("the reference takes %v s, want %v", got, want)
	}
}

// shortPairs is what a file of 80 pairs of 10 tokens shows.
func shortPairs() prompt.Plan {
	return prompt.Plan{Tokens: 257, Prefer: &prompt.PairPlan{Pairs: 80, Tokens: 800, Learned: 400, Longest: 7}}
}

// Micro-batches do not reach the rows of large buffers that only longer examples need, which takes no memory of a CPU.
func TestUntouchedActivations(t *testing.T) {
	r := recipe(t, "prefer_cpu.yaml", "model.arch={layers: 2, width: 1024, heads: 8, kv_heads: 4, head_size: 128, ffn: 4096}")
	e, err := Of(r, 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	arch, err := Architecture(&r.Run)
	if err != nil {
		t.Fatal(err)
	}
	tokens := stage.PreferRows(&r.Run, 7).TrainedTokens() // of a slice, about a quarter of 16 pairs of 15 tokens
	if tokens < 36 || tokens > 72 {
		t.Errorf("a slice has %d tokens", tokens)
	}
	limit := model.Capacity{Tokens: 1024, Sequences: 32}
	want := arch.ReachedBytes(model.Heads{LM: true}, limit, model.Capacity{Tokens: tokens, Sequences: 32}, model.KeepAll,
		kernels.F32, 1, device.ResidentOnCPU)
	all := arch.WorkspaceBytes(model.Heads{LM: true}, limit, model.KeepAll, kernels.F32, 1)
	total, planned := e.Total(), e.Planned(config.Prefer)
	e.Show(&r.Run, shortPairs())
	i := slices.IndexFunc(e.PreferMemory, func(p Part) bool { return p.Name == string(kernels.ActivationRoom) })
	if p := e.PreferMemory[i]; p.Bytes != int64(all) || p.resident() != int64(want) || want > all*2/3 {
		t.Errorf("%d of %d bytes are touched, want %d of %d", p.resident(), p.Bytes, want, all)
	}
	if e.Total() >= total || e.Planned(config.Prefer) != planned || !strings.Contains(e.Text(""), quantity.Bytes(int64(want))) {
		t.Errorf("%d bytes in all, %d before; allocated %d and %d\n%s", e.Total(), total, e.Planned(config.Prefer), planned, e.Text(""))
	}
}

// A reward model is validated after each 20 steps and the last one, and has no output projection.
func TestLearningOfRewardModel(t *testing.T) {
	r := recipe(t, "reward_cpu.yaml")
	f := Of(r, 1)
	f.Rates = &Rates{Forward: 1e9, Backward: 1e9, Sampling: 1e9, Memory: 1e9, columns: panelColumns}
	e, err := f.Estimate()
	if err != nil || len(e.Learning) != 2 || e.Learning[1].Stage != config.RewardModel || len(e.Phases) == 0 {
		t.Fatalf("%v, %+v", err, e.Learning)
	}
	e.Show(&r.Run, prompt.Plan{Tokens: 257, Rated: &prompt.RatedPlan{Pairs: 100, Tokens: 4000, Longest: 30},
		HeldOut: &prompt.RatedPlan{Pairs: 10, Tokens: 400}})
	x := e.Learning[1]
	token := float64(layerFLOPs + 4*64*2)
	pass := 640*token + 32*attended(20)
	if got, want := phaseOf(x, "forward and backward passes"), 3*pass/1e9; math.Abs(got-want) > 1e-9*want {
		t.Errorf("passes take %v s, want %v", got, want)
	}
	if got, want := phaseOf(x, "validations"), 3*20*pass/32/1e9; math.Abs(got-want) > 1e-9*want {
		t.Errorf("validations take %v s, want %v", got, want)
	}
}

// The rates of a trial give its times back.
func TestRatesOf(t *testing.T) {
	m := model.Config{Vocab: 257, Layers: 2, Width: 64, Heads: 2, KVHeads: 1, Head: 32, FFN: 128, TieEmbeddings: true,
		MaxPositions: 33}
	r := RatesOf(bench.Trial{Model: m, Sequences: 8, Length: 32, Forward: 2, Backward: 3, Update: 4, Drawn: 16, Prompt: 24,
		New: 8, Sampling: 5})
	token := float64(layerFLOPs + 4*64*2)
	n := float64(257*64 + 2*(36864+2*64) + 64)
	for name, got := range map[string][2]float64{
		"forward":  {r.Forward, (256*(token+outputFLOPs) + 8*attended(32)) / 2},
		"backward": {r.Backward, (256*(2*token+3*outputFLOPs) + 16*attended(32)) / 3},
		"sampling": {r.Sampling, 16 * (31*token + 8*outputFLOPs) / 5},
		"updates":  {r.Memory, 28 * n / 4},
	} {
		if math.Abs(got[0]-got[1]) > 1e-9*got[1] {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
}

// The completions of an evaluation's problem share its prompt: 33 prompts of at most 3 pages, and 2 pages for each of 512
// completions, not 3.
func TestSharedPromptsOfEvaluation(t *testing.T) {
	cache := func(n string) Part {
		e, err := Of(recipe(t, "steps_cpu.yaml", "data.max_prompt_tokens=34", "rollout.max_new_tokens=14", "eval.final.n="+n), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Memory[slices.IndexFunc(e.Memory, func(p Part) bool { return p.Name == string(kernels.CacheRoom) })]
	}
	two, many := cache("2"), cache("16")
	got, want := float64(many.resident())/float64(many.Bytes), float64(33*3+512*2+1)/float64(513*3+1)
	if two.Untouched != 0 || many.Bytes != two.Bytes || math.Abs(got-want) > 0.01 {
		t.Errorf("%+v, with two completions %+v: %.3f are touched, want %.3f", many, two, got, want)
	}
}

// A mini-batch of few bundles has fewer slices than there may be: the gradients of four wait in two vectors, of eight in
// three. Small vectors take memory at once.
func TestUntouchedGradients(t *testing.T) {
	ranks, device := 1, "cpu"
	part := func(name, update, width string) Part {
		t.Helper()
		e, err := Of(recipe(t, "countdown_cpu_ppo.yaml", "train.prompts_per_update="+update, "train.slices=8", "compute.device="+device,
			"model.arch={layers: 2, width: "+width+", heads: 8, kv_heads: 4, head_size: 64, ffn: 512}"), ranks).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Memory[slices.IndexFunc(e.Memory, func(p Part) bool { return p.Name == name+waitPart })]
	}
	for _, who := range []string{"policy", "critic"} {
		if p := part(who, "8", "256"); p.Untouched != 0 || p.Bytes < 3*4<<20 {
			t.Errorf("%s, eight slices: %+v, want all touched", who, p)
		}
		if p := part(who, "4", "256"); p.Untouched != p.Bytes/3 {
			t.Errorf("%s, four slices: %+v, want a third untouched", who, p)
		}
		if p := part(who, "1", "32"); p.Untouched != 0 {
			t.Errorf("%s, small vectors: %+v, want all touched", who, p)
		}
	}
	for ranks, device = range map[int]string{2: "cpu", 1: "cuda:99"} { // which plans take more: a GPU gives memory for all
		if p := part("policy", "4", "256"); p.Untouched != 0 {
			t.Errorf("%d ranks on %s: %+v, want all touched", ranks, device, p)
		}
	}
}

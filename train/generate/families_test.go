package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/rollout"
)

// families are toys of the architectures whose sampling differs from Llama's.
func families() map[string]model.Config {
	with := func(change func(c *model.Config)) model.Config {
		c := toy
		c.QKNorm, c.QKVBias = false, false
		change(&c)
		return c
	}
	gemma := func(c *model.Config) {
		c.TieEmbeddings, c.UnitOffset, c.PostNorms, c.Gate, c.EmbedScale = true, true, true, kernels.GELUTanh, 6.9
	}
	return map[string]model.Config{
		"qwen2.5-vl": with(func(c *model.Config) {
			c.QKVBias, c.Images.Sections = true, [3]int{2, 2, 2}
		}),
		"qwen3-vl": with(func(c *model.Config) {
			c.QKNorm, c.Images = true, model.ImageSettings{Sections: [3]int{2, 2, 2}, Interleaved: true, Deep: 2}
		}),
		"qwen3.5 images": with(func(c *model.Config) {
			recurrent(c, []bool{true, false})
			c.Rotary, c.Images = 6, model.ImageSettings{Sections: [3]int{1, 1, 1}, Interleaved: true}
		}),
		"qwen3-vl-moe": with(func(c *model.Config) {
			c.QKNorm, c.Images = true, model.ImageSettings{Sections: [3]int{2, 2, 2}, Interleaved: true, Deep: 1}
			c.Sparse, c.Experts = []bool{true, true}, model.Experts{Count: 6, Top: 3, FFN: 24, Renorm: true}
		}),
		"internvl": with(func(c *model.Config) { c.QKNorm, c.Images = true, model.ImageSettings{Flat: true} }),
		"mistral":  with(func(c *model.Config) { c.Window, c.Windowed = 7, []bool{true, true} }),
		"qwen2 window": with(func(c *model.Config) {
			c.QKVBias, c.Window, c.Windowed = true, 20, []bool{false, true}
		}),
		"llama bias": with(func(c *model.Config) { c.QKVBias, c.OutBias, c.FFNBias = true, true, true }),
		"llama3 rope": with(func(c *model.Config) {
			c.Rope = model.RopeScaling{Kind: "llama3", Factor: 8, Original: 32, LowFactor: 1, HighFactor: 4}
		}),
		"phi": with(func(c *model.Config) { c.Fused, c.Rotary = true, 8 }),
		"gemma2": with(func(c *model.Config) {
			gemma(c)
			c.QueryScale, c.ScoreCap, c.LogitCap, c.Window, c.Windowed = 0.2, 5, 3, 9, []bool{true, false}
		}),
		"gemma3": with(func(c *model.Config) {
			gemma(c)
			c.QKNorm, c.LocalTheta, c.Window, c.Windowed = true, 100, 12, []bool{true, false}
		}),
		"gemma3 images": with(func(c *model.Config) {
			gemma(c)
			c.QKNorm, c.LocalTheta, c.Window, c.Windowed = true, 100, 20, []bool{true, false}
			c.Images = model.ImageSettings{Flat: true, Block: 20}
		}),
		"olmo3": with(func(c *model.Config) {
			c.QKNorm, c.WideQKNorm, c.PostNorms, c.NoPreNorms = true, true, true, true
			c.LocalTheta, c.Window, c.Windowed = c.RopeTheta, 12, []bool{true, false}
			c.Rope = model.RopeScaling{Kind: "linear", Factor: 8}
		}),
		"exaone4": with(func(c *model.Config) {
			c.QKNorm, c.PostNorms, c.NoPreNorms = true, true, true
			c.Window, c.Windowed, c.NoRope = 9, []bool{true, false}, []bool{false, true}
		}),
		"arcee":   with(func(c *model.Config) { c.Gate = kernels.ReLU2 }),
		"apertus": with(func(c *model.Config) { c.QKNorm, c.Gate, c.Names = true, kernels.XIELU, model.ApertusNames }),
		"smollm3": with(func(c *model.Config) { c.NoRope = []bool{true, false} }),
		"olmoe": with(func(c *model.Config) {
			c.QKNorm, c.WideQKNorm = true, true
			c.Sparse, c.Experts = []bool{true, true}, model.Experts{Count: 6, Top: 3, FFN: 24}
		}),
		"mixtral": with(func(c *model.Config) {
			c.Sparse, c.Experts = []bool{true, true}, model.Experts{Count: 5, Top: 2, FFN: 24, Renorm: true, Mixtral: true}
		}),
		"qwen2-moe": with(func(c *model.Config) {
			c.QKVBias, c.Sparse, c.Experts = true, []bool{false, true}, model.Experts{Count: 5, Top: 2, FFN: 24, Shared: 20}
		}),
		"qwen3-moe": with(func(c *model.Config) {
			c.QKNorm, c.Sparse, c.Experts = true, []bool{true, true}, model.Experts{Count: 6, Top: 3, FFN: 24, Renorm: true}
		}),
		"gpt-oss": with(func(c *model.Config) {
			c.QKVBias, c.OutBias, c.Sinks, c.Gate = true, true, true, kernels.Clamped
			c.Window, c.Windowed = 9, []bool{true, false}
			c.Sparse, c.Experts = []bool{true, true}, model.Experts{Count: 6, Top: 3, FFN: 24, Renorm: true, Bias: true}
		}),
		"glm4-moe": with(func(c *model.Config) {
			c.QKNorm, c.Rotary, c.Sparse = true, 4, []bool{false, true}
			c.Experts = model.Experts{Count: 8, Top: 3, FFN: 24, Shared: 20, Renorm: true, Sigmoid: true, Corrected: true,
				Ungated: true, Groups: 4, TopGroups: 2, Scale: 1.5}
		}),
		"minimax-m2": with(func(c *model.Config) {
			c.QKNorm, c.WideQKNorm, c.Rotary, c.Sparse = true, true, 8, []bool{true, true}
			c.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Renorm: true, Mixtral: true, Sigmoid: true, Corrected: true}
		}),
		"glm4": with(func(c *model.Config) {
			c.Interleaved, c.Rotary, c.FusedFFN, c.PostNorms, c.GLMNorms = true, 8, true, true, true
			c.Images.Sections = [3]int{1, 2, 1} // as in GLM-4.1V
		}),
		"granite": with(func(c *model.Config) {
			c.EmbedScale, c.QueryScale, c.ResidualScale, c.LogitDivisor = 3, 0.1, 0.22, 4
		}),
		"gemma4": with(func(c *model.Config) {
			gemmaFour(c)
			c.Global = model.Global{Head: 24, KVHeads: 1, KeyValues: true}
			c.Rope = model.RopeScaling{Kind: "proportional", Factor: 1, Turned: 8}
		}),
		"gemma4-e2b": with(func(c *model.Config) {
			gemmaFour(c)
			c.Layers, c.Windowed = 4, []bool{true, false, true, false}
			c.Global, c.PerLayer, c.SharedKV, c.WideFFN = model.Global{Head: 24, KVHeads: 1}, 12, 2, true
		}),
		"gemma4-moe": with(func(c *model.Config) {
			gemmaFour(c)
			c.Global, c.Sparse = model.Global{Head: 8, KVHeads: c.KVHeads}, []bool{true, true}
			c.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Renorm: true, Beside: true}
		}),
		"ernie-moe": with(func(c *model.Config) {
			c.Interleaved, c.Sparse = true, []bool{false, true}
			c.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 48, Renorm: true, Corrected: true, Ungated: true,
				Names: model.ErnieNames}
		}),
		"hunyuan-moe": with(func(c *model.Config) {
			c.QKNorm, c.LateQKNorm, c.Sparse = true, true, []bool{true, true}
			c.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 24, Renorm: true, Ungated: true,
				Names: model.HunyuanNames}
		}),
		"flex-olmo": with(func(c *model.Config) {
			c.QKNorm, c.WideQKNorm, c.PostNorms, c.NoPreNorms, c.Sparse = true, true, true, true, []bool{true, true}
			c.Experts = model.Experts{Count: 6, Top: 2, FFN: 24}
		}),
		"afmoe": with(func(c *model.Config) {
			c.QKNorm, c.PostNorms, c.EmbedScale, c.Names, c.GateMap = true, true, 6.9, model.AfmoeNames, true
			c.Window, c.Windowed, c.NoRope, c.Sparse = 9, []bool{true, false}, []bool{false, true}, []bool{false, true}
			c.Experts = model.Experts{Count: 6, Top: 2, FFN: 24, Shared: 48, Renorm: true, Sigmoid: true, Corrected: true,
				Ungated: true, Scale: 1.5}
		}),
		"nanochat": with(func(c *model.Config) {
			c.QKNorm, c.LateQKNorm, c.UnitOffset, c.Gate, c.Names = true, true, true, kernels.ReLU2, model.NanoNames
			c.LogitCap = 15
		}),
		"gpt-neox": with(func(c *model.Config) {
			c.KVHeads, c.Rotary, c.Fused, c.QKVBias, c.OutBias, c.FFNBias = c.Heads, 4, true, true, true, true
			c.Gate, c.Names, c.Norm, c.Branches = kernels.PlainGELU, model.NeoXNames, model.LayerNorm, model.TwoNorms
		}),
		"gpt2": with(func(c *model.Config) {
			c.KVHeads, c.Fused, c.QKVBias, c.OutBias, c.FFNBias = c.Heads, true, true, true, true
			c.Gate, c.Names, c.Norm, c.Learned = kernels.PlainGELUTanh, model.GPT2Names, model.LayerNorm, true
			c.NoRope, c.TieEmbeddings = []bool{true, true}, true
		}),
		"cohere2": with(func(c *model.Config) {
			c.Interleaved, c.Norm, c.Branches, c.LogitDivisor = true, model.WeightLayerNorm, model.OneNorm, 4
			c.Window, c.Windowed, c.NoRope = 9, []bool{true, false}, []bool{false, true}
		}),
		"command-r-plus": with(func(c *model.Config) {
			c.Interleaved, c.Norm, c.Branches, c.HeadLayerNorm = true, model.WeightLayerNorm, model.OneNorm, true
		}),
		"phi-2": with(func(c *model.Config) {
			c.QKVBias, c.OutBias, c.FFNBias, c.OutputBias, c.TieEmbeddings = true, true, true, true, false
			c.Gate, c.Names, c.Norm, c.Branches = kernels.PlainGELUTanh, model.PhiNames, model.LayerNorm, model.OneNorm
		}),
		"olmo clip": with(func(c *model.Config) { c.Norm, c.ClipQKV = model.PlainLayerNorm, 0.5 }),
		"starcoder2": with(func(c *model.Config) {
			c.QKVBias, c.OutBias, c.FFNBias, c.Gate = true, true, true, kernels.PlainGELUTanh
			c.Names, c.Norm = model.StarNames, model.LayerNorm
		}),
		"stablelm": with(func(c *model.Config) {
			c.Rotary, c.Norm, c.Branches = 4, model.LayerNorm, model.OneNorm
		}),
		"olmo":    with(func(c *model.Config) { c.Norm = model.PlainLayerNorm }),
		"hunyuan": with(func(c *model.Config) { c.QKNorm, c.LateQKNorm = true, true }),
		"deepseek": with(func(c *model.Config) {
			c.QKVBias, c.KVHeads, c.Head, c.Rotary = false, c.Heads, 20, 8
			c.Latent = model.Latent{Rank: 24, QueryRank: 20, Nope: 12, Rope: 8, Value: 10, Interleaved: true, NormEps: 1e-6}
		}),
		"qwen3.5":            with(func(c *model.Config) { recurrent(c, []bool{true, false}) }),
		"qwen3.5 all linear": with(func(c *model.Config) { recurrent(c, []bool{true, true}) }),
		"nemotron-h": with(func(c *model.Config) {
			hybrid(c, model.NemotronNames)
			c.Layers, c.Gate = 5, kernels.ReLU2
			c.NoMixer, c.NoFFN = []bool{false, true, false, false, true}, []bool{true, false, true, true, false}
			c.NoRope, c.Linear = slices.Repeat([]bool{true}, 5), []bool{true, false, true, false, false}
			c.Sparse = []bool{false, false, false, false, true}
			c.Experts = model.Experts{Count: 8, Top: 3, FFN: 24, Shared: 20, Renorm: true, Sigmoid: true, Corrected: true,
				Ungated: true, Scale: 1.5}
		}),
		"granite hybrid": with(func(c *model.Config) {
			hybrid(c, model.GraniteNames)
			c.EmbedScale, c.QueryScale, c.ResidualScale, c.LogitDivisor = 3, 0.1, 0.22, 4
			c.Sparse = []bool{true, true}
			c.Experts = model.Experts{Count: 6, Top: 3, FFN: 24, Shared: 20, Renorm: true, Ungated: true}
		}),
		"bamba": with(func(c *model.Config) {
			hybrid(c, model.BambaNames)
			c.Rotary = 8
		}),
		"falcon-h1": with(func(c *model.Config) {
			parallel(c)
			c.ScanNorm = model.NoScanNorm
		}),
		"falcon-h1 norm": with(func(c *model.Config) {
			parallel(c)
			c.ScanNorm, c.QKVBias, c.OutBias, c.FFNBias, c.ScanBias = model.NormBeforeGate, true, true, true, true
		}),
		"lfm2": with(func(c *model.Config) {
			convolved(c)
			c.TieEmbeddings = true
		}),
		"lfm2-moe": with(func(c *model.Config) {
			convolved(c)
			c.Sparse = []bool{false, true}
			c.Experts = model.Experts{Count: 8, Top: 3, FFN: 24, Renorm: true, Sigmoid: true, Corrected: true, Eps: 1e-6}
		}),
		"olmo-hybrid": with(func(c *model.Config) {
			recurrent(c, []bool{true, false})
			c.UnitOffset, c.OutputGate, c.Rotary, c.NoRope, c.Names = false, false, 0, []bool{true, true}, model.OlmoHybridNames
			c.WideQKNorm, c.PostNorms, c.NoPreNorms, c.DoubleWrites, c.DeltaEps = true, true, true, true, 1e-5
		}),
		"qwen3-next": with(func(c *model.Config) {
			recurrent(c, []bool{false, true})
			c.Delta.ByKey = true
			c.Sparse, c.Experts = []bool{true, true}, model.Experts{Count: 6, Top: 3, FFN: 24, Shared: 20, Renorm: true}
		}),
	}
}

// gemmaFour gives a toy what all text models of Gemma 4 have.
func gemmaFour(c *model.Config) {
	c.TieEmbeddings, c.PostNorms, c.Gate, c.EmbedScale, c.QueryScale = true, true, kernels.GELUTanh, 6.9, 1
	c.QKNorm, c.ValueNorm, c.LayerScales, c.LocalTheta, c.LogitCap = true, true, true, 100, 3
	c.Window, c.Windowed = 12, []bool{true, false}
}

// recurrent gives a toy layers with linear attention, and the others output gates.
func recurrent(c *model.Config, layers []bool) {
	c.QKNorm, c.QKVBias, c.UnitOffset, c.OutputGate, c.Rotary, c.Linear = true, false, true, true, 4, layers
	c.Delta = kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 12, ValueDim: 10, Taps: 4}
}

// hybrid gives a toy of a family a layer with Mamba-2.
func hybrid(c *model.Config, names model.LayerNames) {
	c.QKVBias, c.QKNorm, c.Names, c.Linear = false, false, names, []bool{true, false}
	c.Delta = kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 12, ValueDim: 10, Taps: 4, Scan: true, Low: 0.01}
}

// parallel gives a toy Falcon-H1's layers, with Mamba-2 beside attention, and its multipliers.
func parallel(c *model.Config) {
	hybrid(c, model.BambaNames)
	c.Linear, c.Parallel, c.EmbedScale = []bool{true, true}, true, 5.7
	c.Multipliers = model.Multipliers{Logits: 0.25, Key: 0.4, AttentionIn: 1.3, AttentionOut: 0.9, ScanIn: 1.25,
		ScanOut: 0.5, Scan: [5]float64{0.6, 0.9, 1.5, 0.7, 0.8}, Gate: 0.9, Down: 0.6}
}

// convolved gives a toy what LFM2 has: a layer with a gated short convolution, and norms of queries and keys.
func convolved(c *model.Config) {
	c.QKVBias, c.QKNorm, c.Names, c.Linear = false, true, model.LFMNames, []bool{true, false}
	c.Delta = kernels.DeltaShape{Values: 1, ValueDim: c.Width, Taps: 3, Conv: true}
}

// linearToy is toy with a layer of linear attention.
func linearToy() model.Config {
	c := toy
	recurrent(&c, []bool{true, false})
	return c
}

// TestFamiliesSampleAsTheyTrain is TestSamplerEqualsTrainer for every family, in both
// classes of numerics, with prompts that completions share.
func TestFamiliesSampleAsTheyTrain(t *testing.T) {
	for name, c := range families() {
		for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
			t.Run(fmt.Sprint(name, "/", operand), func(t *testing.T) {
				r := rand.New(rand.NewPCG(9, 9))
				be := openAs(t, cpu.Options{Threads: 2, Operand: operand})
				sampledAsTrained(t, be, newModel(t, be, c), r)
			})
		}
	}
}

// Adapters on frozen weights do, too.
func TestAdaptersSampleAsTheyTrain(t *testing.T) {
	linear := linearToy()
	for i, targets := range [][]string{toy.AdapterTargets(), {"q_proj", "down_proj"}, {"gate_proj"},
		linear.AdapterTargets(), {"in_proj_a", "out_proj"}} {
		c := toy
		if i > 2 {
			c = linear
		}
		r := rand.New(rand.NewPCG(5, 5))
		be := openCPU(t, 2)
		frozen, err := model.NewBackbone(be, c, true, kernels.F32)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(frozen.Close)
		widths := map[string]int{} // of a row; a vector is one
		for _, x := range frozen.Tensors() {
			if widths[x.Name] = x.Len(); len(x.Shape) == 2 {
				widths[x.Name] = x.Shape[1]
			}
		}
		err = frozen.Load(func(p model.Piece) (kernels.Buffer, error) {
			x := make([]float32, p.N*widths[p.Name])
			for i := range x {
				x[i] = float32(r.NormFloat64()) / 4
			}
			return kernels.Host(x), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.NewOn(frozen, model.Heads{LM: true, Adapters: &model.Adapters{Rank: 3, Alpha: 6, Targets: targets}}, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		x := make([]float32, m.Params().Len())
		for i := range x {
			x[i] = float32(r.NormFloat64()) / 4
		}
		be.Copy(m.Params(), kernels.Host(x))
		be.Sync()
		m.Refresh()
		sampledAsTrained(t, be, m, r)
	}
}

// sampledAsTrained samples from m, twice, and compares what the sampler recorded with the
// trainer's forward pass, bit for bit.
func sampledAsTrained(t *testing.T, be kernels.Backend, m *model.Model, r *rand.Rand) {
	t.Helper()
	e := newEngine(t, be, m, Options{MaxSequences: 7, PageTokens: 16, MaxTokens: 96, StepRows: 40, Ridge: 32})
	reqs := requests(r, 5, 3, 50)
	if m.Config.ReadsImages() {
		illustrate(m, reqs)
	}
	p := rollout.Params{Temperature: 0.8, TopP: 1, MaxNewTokens: 30}
	out := sample(t, e, reqs, p)
	before := e.Stats()
	if d := differ(sample(t, e, reqs, p), out); d != "" { // with drafts that are right
		t.Error(d)
	}
	if kept := e.Stats().KeptDrafts - before.KeptDrafts; (kept > before.SampledTokens/4) == m.Config.Recurrent() {
		t.Errorf("%d of %d tokens were drafted", kept, before.SampledTokens)
	}
	lp, h := trainerLogProbs(t, be, m, reqs, out, p.Temperature, 200)
	at := 0
	for i := range out {
		for k, cpl := range out[i] {
			for j := range cpl.Tokens {
				if cpl.LogProbs[j] != lp[at] || cpl.Entropies[j] != h[at] {
					t.Fatalf("prompt %d sample %d token %d: sampler %v, %v; trainer %v, %v", i, k, j, cpl.LogProbs[j], cpl.Entropies[j], lp[at], h[at])
				}
				at++
			}
		}
	}
	if at != len(lp) || at == 0 {
		t.Fatalf("%d tokens sampled, %d scored", at, len(lp))
	}
	checkSecondTurn(t, be, m, reqs, out, p)
}

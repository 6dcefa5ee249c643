package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// testSeed is a seed function for tests: the label's hash.
func testSeed(label string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(label))
	return h.Sum64()
}

// initialised sets the parameters to their initial values, and the numbers that multiply layers and experts, which
// are 1 at first, to others.
func initialised(m *Model) {
	m.Init(testSeed)
	for _, t := range m.Tensors() {
		if t.Constant() && t.isScale() {
			m.Set(t, 0, kernels.Host(testInitial(t, m.Config)))
		}
	}
	m.Refresh()
}

// testInitial returns the values that a tensor of the backbone then has.
func testInitial(t Tensor, c Config) []float32 {
	x := initial(t, c, testSeed("init/"+t.Name))
	if t.Constant() && t.isScale() {
		for i := range x {
			x[i] = 0.75 + float32(i%3)/2
		}
	}
	return x
}

// variants are toy architectures that between them use every branch.
var variants = map[string]Config{
	"llama": {Vocab: 11, Layers: 2, Width: 8, Heads: 2, KVHeads: 1, Head: 4, FFN: 12,
		RopeTheta: 100, NormEps: 1e-5, TieEmbeddings: true, MaxPositions: 12, InitStd: 0.3},
	"qwen2": {Vocab: 9, Layers: 2, Width: 6, Heads: 3, KVHeads: 3, Head: 2, FFN: 7,
		RopeTheta: 50, NormEps: 1e-5, QKVBias: true, MaxPositions: 12, InitStd: 0.4},
	"qwen3": {Vocab: 7, Layers: 1, Width: 8, Heads: 4, KVHeads: 2, Head: 6, FFN: 5,
		RopeTheta: 10, NormEps: 1e-5, QKNorm: true, MaxPositions: 12, InitStd: 0.4},
	"llama-bias": {Vocab: 9, Layers: 1, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 7,
		RopeTheta: 50, NormEps: 1e-5, QKVBias: true, OutBias: true, FFNBias: true, MaxPositions: 12, InitStd: 0.4,
		Rope: RopeScaling{Kind: "linear", Factor: 2}},
	"qwen2.5-vl": {Vocab: 9, Layers: 2, Width: 8, Heads: 2, KVHeads: 1, Head: 8, FFN: 7, RopeTheta: 50, NormEps: 1e-5,
		QKVBias: true, TieEmbeddings: true, MaxPositions: 16, InitStd: 0.4, Images: ImageSettings{Sections: [3]int{1, 2, 1}}},
	"qwen3-vl": {Vocab: 9, Layers: 3, Width: 6, Heads: 2, KVHeads: 2, Head: 8, FFN: 7, RopeTheta: 50, NormEps: 1e-5,
		QKNorm: true, MaxPositions: 16, InitStd: 0.4,
		Images: ImageSettings{Sections: [3]int{2, 1, 1}, Interleaved: true, Deep: 2}},
	"internvl": {Vocab: 9, Layers: 1, Width: 4, Heads: 2, KVHeads: 1, Head: 4, FFN: 3, RopeTheta: 50, NormEps: 1e-5,
		QKNorm: true, MaxPositions: 16, InitStd: 0.4, Images: ImageSettings{Flat: true}},
	"mistral": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 2, Head: 4, FFN: 7,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.4, Window: 3, Windowed: []bool{true, true}},
	"phi3": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 6, FFN: 5,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.4, Fused: true, Rotary: 4, TieEmbeddings: true},
	// Norms of what a block adds bend sharply near 0: eps keeps differences exact.
	"gemma2": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, TieEmbeddings: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, UnitOffset: true, PostNorms: true, Gate: kernels.GELUTanh,
		EmbedScale: 2.5, QueryScale: 0.6, ScoreCap: 1.5, LogitCap: 2, Window: 2, Windowed: []bool{true, false}},
	"gemma3": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, TieEmbeddings: true,
		RopeTheta: 500, LocalTheta: 20, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, UnitOffset: true, PostNorms: true, QKNorm: true,
		Gate: kernels.GELUTanh, EmbedScale: 2.5, Window: 2, Windowed: []bool{true, false}, Rope: RopeScaling{Kind: "linear", Factor: 8}},
	"gemma3 images": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, TieEmbeddings: true,
		RopeTheta: 500, LocalTheta: 20, NormEps: 0.1, MaxPositions: 16, InitStd: 0.4, UnitOffset: true, PostNorms: true, QKNorm: true,
		Gate: kernels.GELUTanh, EmbedScale: 2.5, Window: 6, Windowed: []bool{true, false},
		Images: ImageSettings{Flat: true, Block: 6}},
	"olmo2": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, PostNorms: true, NoPreNorms: true, QKNorm: true,
		WideQKNorm: true, LocalTheta: 50, Window: 3, Windowed: []bool{true, false},
		Rope: RopeScaling{Kind: "linear", Factor: 4}},
	"smollm3": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 7, TieEmbeddings: true,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.4, NoRope: []bool{false, true}},
	"mixtral": {Vocab: 9, Layers: 1, Width: 6, Heads: 2, KVHeads: 1, Head: 4,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.5, Sparse: []bool{true},
		Experts: Experts{Count: 3, Top: 2, FFN: 3, Renorm: true, Mixtral: true}},
	"qwen2-moe": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKVBias: true,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.5, Sparse: []bool{false, true},
		Experts: Experts{Count: 4, Top: 2, FFN: 3, Shared: 4}},
	"qwen3-moe": {Vocab: 9, Layers: 1, Width: 6, Heads: 2, KVHeads: 1, Head: 4, QKNorm: true,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.5, Sparse: []bool{true},
		Experts: Experts{Count: 3, Top: 2, FFN: 3, Renorm: true}},
	"gpt-oss": {Vocab: 9, Layers: 2, Width: 6, Heads: 4, KVHeads: 2, Head: 4, QKVBias: true, OutBias: true, Sinks: true,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.5, Window: 3, Windowed: []bool{true, false},
		Rope:   RopeScaling{Kind: "yarn", Factor: 4, Original: 3, BetaFast: 32, BetaSlow: 1, Exact: true},
		Sparse: []bool{true, true}, Experts: Experts{Count: 3, Top: 2, FFN: 3, Renorm: true, Bias: true}, Gate: kernels.Clamped},
	"glm4-moe": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, Rotary: 2,
		RopeTheta: 50, NormEps: 1e-5, MaxPositions: 12, InitStd: 0.5, Sparse: []bool{false, true},
		Experts: Experts{Count: 6, Top: 2, FFN: 3, Shared: 4, Renorm: true, Sigmoid: true, Corrected: true, Ungated: true,
			Groups: 3, TopGroups: 2, Scale: 1.5}},
	"glm4": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 6, FFN: 5, QKVBias: true, Rotary: 4, Interleaved: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, FusedFFN: true, PostNorms: true, GLMNorms: true},
	"glm4.1v": {Vocab: 9, Layers: 1, Width: 4, Heads: 2, KVHeads: 1, Head: 6, FFN: 3, QKVBias: true, Rotary: 4, Interleaved: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 16, InitStd: 0.4, FusedFFN: true, PostNorms: true, GLMNorms: true,
		Images: ImageSettings{Sections: [3]int{0, 1, 1}}},
	"granite": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, TieEmbeddings: true,
		RopeTheta: 50, NormEps: 1e-2, MaxPositions: 12, InitStd: 0.4, EmbedScale: 3, QueryScale: 0.3, ResidualScale: 0.7,
		LogitDivisor: 1.5},
	"gemma4": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 2, Head: 4, FFN: 5, TieEmbeddings: true,
		RopeTheta: 500, LocalTheta: 20, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, PostNorms: true, QKNorm: true,
		Gate: kernels.GELUTanh, EmbedScale: 2.5, QueryScale: 1, LogitCap: 2, Window: 2, Windowed: []bool{true, false},
		Rope:   RopeScaling{Kind: "proportional", Factor: 1, Turned: 2},
		Global: Global{Head: 6, KVHeads: 1, KeyValues: true}, ValueNorm: true, LayerScales: true},
	"gemma4-e2b": {Vocab: 9, Layers: 4, Width: 6, Heads: 2, KVHeads: 1, Head: 2, FFN: 3, TieEmbeddings: true,
		RopeTheta: 500, LocalTheta: 20, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, PostNorms: true, QKNorm: true,
		Gate: kernels.GELUTanh, EmbedScale: 2.5, QueryScale: 1, LogitCap: 2, Window: 2,
		Windowed: []bool{true, false, true, false}, Global: Global{Head: 4, KVHeads: 1}, ValueNorm: true,
		LayerScales: true, PerLayer: 3, SharedKV: 2, WideFFN: true},
	"gemma4-moe": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5,
		RopeTheta: 500, LocalTheta: 20, NormEps: 0.1, MaxPositions: 12, InitStd: 0.5, PostNorms: true, QKNorm: true,
		Gate: kernels.GELUTanh, QueryScale: 1, Window: 3, Windowed: []bool{true, false}, Sparse: []bool{true, true},
		Experts: Experts{Count: 3, Top: 2, FFN: 4, Renorm: true, Beside: true},
		Global:  Global{Head: 2, KVHeads: 1}, ValueNorm: true, LayerScales: true},
	"afmoe": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, PostNorms: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, EmbedScale: 2.5, Names: AfmoeNames, GateMap: true,
		Window: 3, Windowed: []bool{true, false}, NoRope: []bool{false, true}, Sparse: []bool{false, true},
		Experts: Experts{Count: 4, Top: 2, FFN: 3, Shared: 4, Renorm: true, Sigmoid: true, Corrected: true, Ungated: true,
			Scale: 1.5}},
	"nanochat": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, LateQKNorm: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, UnitOffset: true, Gate: kernels.ReLU2,
		Names: NanoNames, LogitCap: 2},
	// Norms bend sharply where a row's channels are alike: eps keeps differences exact.
	"gpt-neox": {Vocab: 9, Layers: 2, Width: 8, Heads: 2, KVHeads: 2, Head: 4, FFN: 5, Rotary: 2, QKVBias: true, OutBias: true,
		FFNBias: true, Fused: true, RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Gate: kernels.PlainGELU,
		Names: NeoXNames, Norm: LayerNorm, Branches: TwoNorms},
	"gpt2": {Vocab: 9, Layers: 2, Width: 8, Heads: 2, KVHeads: 2, Head: 4, FFN: 5, QKVBias: true, OutBias: true,
		FFNBias: true, Fused: true, RopeTheta: 1, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Gate: kernels.PlainGELUTanh,
		Names: GPT2Names, Norm: LayerNorm, Learned: true, NoRope: []bool{true, true}, TieEmbeddings: true},
	"nemotron": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Rotary: 2, Gate: kernels.ReLU2,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Norm: OffsetLayerNorm},
	"cohere2": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Interleaved: true, TieEmbeddings: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Norm: WeightLayerNorm, Branches: OneNorm,
		LogitDivisor: 1.5, Window: 3, Windowed: []bool{true, false}, NoRope: []bool{false, true}},
	"olmo-clip": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, RopeTheta: 50, NormEps: 0.1,
		MaxPositions: 12, InitStd: 0.4, Norm: PlainLayerNorm, ClipQKV: 0.4},
	"command-r-plus": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Interleaved: true, RopeTheta: 50,
		NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Norm: WeightLayerNorm, Branches: OneNorm, HeadLayerNorm: true},
	"olmo": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, RopeTheta: 50, NormEps: 0.1,
		MaxPositions: 12, InitStd: 0.4, Norm: PlainLayerNorm},
	"stablelm": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Rotary: 2, QKVBias: true, RopeTheta: 50,
		NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Norm: LayerNorm, Branches: OneNorm},
	"phi": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Rotary: 2, QKVBias: true, OutBias: true,
		FFNBias: true, RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Norm: LayerNorm, Branches: OneNorm,
		Gate: kernels.PlainGELUTanh, Names: PhiNames, OutputBias: true},
	"apertus": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, Gate: kernels.XIELU, Names: ApertusNames},
	"hunyuan": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, LateQKNorm: true,
		RopeTheta: 50, NormEps: 1e-2, MaxPositions: 12, InitStd: 0.4},
	"deepseek": {Vocab: 9, Layers: 1, Width: 6, Heads: 3, KVHeads: 3, Head: 6, FFN: 5, Rotary: 4,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6,
		Latent: Latent{Rank: 3, QueryRank: 5, Nope: 2, Rope: 4, Value: 3, Interleaved: true, NormEps: 0.1}},
	"deepseek-lite": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 2, Head: 6, FFN: 5, Rotary: 2,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, QueryScale: 0.6, TieEmbeddings: true,
		Latent: Latent{Rank: 4, Nope: 4, Rope: 2, Value: 5, NormEps: 0.1}},
	"minicpm3": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 2, Head: 6, FFN: 5, Rotary: 4,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.4, EmbedScale: 3, ResidualScale: 0.7, LogitDivisor: 1.5,
		TieEmbeddings: true, Latent: Latent{Rank: 4, QueryRank: 3, Nope: 2, Rope: 4, Value: 3, NormEps: 0.1},
		Rope: RopeScaling{Kind: "longrope", Factor: 2, Original: 12, Attention: 1.1, Short: []float64{1.5, 3},
			Long: []float64{2, 7}}},
	"qwen3.5": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, UnitOffset: true,
		TieEmbeddings: true, RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, Rotary: 2, OutputGate: true,
		Linear: []bool{true, false}, Delta: kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 3, ValueDim: 2, Taps: 4}},
	"qwen3.5 images": {Vocab: 9, Layers: 3, Width: 6, Heads: 2, KVHeads: 1, Head: 10, FFN: 5, QKNorm: true,
		UnitOffset: true, RopeTheta: 50, NormEps: 0.1, MaxPositions: 16, InitStd: 0.4, Rotary: 6, OutputGate: true,
		Linear: []bool{true, false, true}, Delta: kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 3, ValueDim: 2, Taps: 4},
		Images: ImageSettings{Sections: [3]int{1, 1, 1}, Interleaved: true}},
	"qwen3-next": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, UnitOffset: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, Rotary: 2, OutputGate: true,
		Linear:  []bool{true, false},
		Delta:   kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 5, ValueDim: 3, Taps: 3, ByKey: true},
		Sparse:  []bool{false, true},
		Experts: Experts{Count: 3, Top: 2, FFN: 3, Shared: 4, Renorm: true}},
	"nemotron-h": {Vocab: 9, Layers: 4, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Gate: kernels.ReLU2,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, Names: NemotronNames,
		NoRope:  []bool{true, true, true, true},
		NoMixer: []bool{false, true, false, true}, NoFFN: []bool{true, false, true, false},
		Linear: []bool{true, false, false, false}, Sparse: []bool{false, false, false, true},
		Delta: kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 2, Taps: 4, Scan: true, Low: 0.001},
		Experts: Experts{Count: 6, Top: 2, FFN: 3, Shared: 4, Renorm: true, Sigmoid: true, Corrected: true, Ungated: true,
			Groups: 3, TopGroups: 2, Scale: 1.5}},
	"granite hybrid": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, TieEmbeddings: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, EmbedScale: 3, QueryScale: 0.3, ResidualScale: 0.7,
		LogitDivisor: 1.5, Names: GraniteNames, NoRope: []bool{true, true}, Linear: []bool{true, false},
		Delta:   kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 3, ValueDim: 2, Taps: 4, Scan: true},
		Sparse:  []bool{false, true},
		Experts: Experts{Count: 3, Top: 2, FFN: 3, Shared: 4, Renorm: true, Ungated: true}},
	"bamba": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, Rotary: 2,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, Names: BambaNames, Linear: []bool{true, false},
		Delta: kernels.DeltaShape{Keys: 1, Values: 3, KeyDim: 4, ValueDim: 3, Taps: 2, Scan: true}},
	"falcon-h1": falcon(Config{ScanNorm: NoScanNorm, Delta: kernels.DeltaShape{Keys: 1, Values: 3, KeyDim: 4, ValueDim: 3, Taps: 2,
		Scan: true, Low: 0.01}}),
	"falcon-h1 biases": falcon(Config{ScanNorm: NormBeforeGate, ScanBias: true, QKVBias: true, OutBias: true, FFNBias: true,
		TieEmbeddings: true, Delta: kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 2, Taps: 3, Scan: true}}),
	"falcon-h1 norms": falcon(Config{Delta: kernels.DeltaShape{Keys: 2, Values: 2, KeyDim: 3, ValueDim: 3, Taps: 4, Scan: true}}),
	"olmo-hybrid": {Vocab: 9, Layers: 3, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, WideQKNorm: true,
		PostNorms: true, NoPreNorms: true, RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.3,
		Names: OlmoHybridNames, Linear: []bool{true, false, true}, DoubleWrites: true, DeltaEps: 0.2,
		Delta: kernels.DeltaShape{Keys: 2, Values: 4, KeyDim: 3, ValueDim: 5, Taps: 3}},
	// Products of three bend sharply where weights are large.
	"lfm2": {Vocab: 9, Layers: 3, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true, TieEmbeddings: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.3, Names: LFMNames, Linear: []bool{true, false, true},
		Delta: kernels.DeltaShape{Values: 1, ValueDim: 6, Taps: 3, Conv: true}},
	"lfm2-moe": {Vocab: 9, Layers: 2, Width: 6, Heads: 2, KVHeads: 1, Head: 4, FFN: 5, QKNorm: true,
		RopeTheta: 50, NormEps: 0.1, MaxPositions: 12, InitStd: 0.6, Names: LFMNames, Linear: []bool{true, false},
		Delta: kernels.DeltaShape{Values: 1, ValueDim: 6, Taps: 2, Conv: true}, Sparse: []bool{false, true},
		Experts: Experts{Count: 4, Top: 2, FFN: 3, Renorm: true, Sigmoid: true, Corrected: true, Scale: 1.5, Eps: 1e-6}},
}

// falcon returns c with two layers of Falcon-H1 and all its multipliers.
func falcon(c Config) Config {
	c.Vocab, c.Layers, c.Width, c.Heads, c.KVHeads, c.Head, c.FFN = 9, 2, 6, 2, 1, 4, 5
	c.RopeTheta, c.NormEps, c.MaxPositions, c.InitStd = 50, 0.1, 12, 0.3
	c.Names, c.Parallel, c.Linear, c.EmbedScale = BambaNames, true, []bool{true, true}, 1.5
	c.Multipliers = allMultipliers
	return c
}

// allMultipliers are none of them 1.
var allMultipliers = Multipliers{Logits: 0.7, Key: 1.6, AttentionIn: 1.3, AttentionOut: 0.8, ScanIn: 1.2, ScanOut: 0.6,
	Scan: [5]float64{1.4, 0.7, 1.5, 0.6, 0.75}, Gate: 1.7, Down: 0.65}

// toyBatch has sequences of several lengths, one without a completion.
func toyBatch(vocab int, seed uint64) Batch {
	r := rand.New(rand.NewPCG(seed, 1))
	b := Batch{Offsets: []int32{0}}
	for _, s := range []struct{ n, prompt int }{{7, 3}, {2, 1}, {4, 4}, {9, 2}} {
		for range s.n {
			b.Tokens = append(b.Tokens, int32(r.IntN(vocab)))
		}
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt = append(b.Prompt, int32(s.prompt))
	}
	return b
}

// objective is a model with a random linear functional of its results.
type objective struct {
	be       kernels.Backend
	m        *Model
	ws       *Workspace
	up       Upstream
	wLP, wH  []float64 // [R] weights of log-probs and entropies
	wV, wZ   []float64 // [R] values, [S] log Zs
	taught   []int32   // [R,K] teacher's tokens, whose log-probs wLP [R,1+K] weighs too
	batch    Batch
	temp     float64
	dropKeys []uint64
}

func newObjective(t *testing.T, c Config, h Heads, keep Keep) *objective {
	t.Helper()
	be := ref.New[float64]()
	var m *Model
	var err error
	if h.Adapters != nil {
		m, err = NewOn(newBackbone(t, be, c, kernels.F32, 1), h, true)
	} else {
		m, err = New(be, c, h, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	initialised(m)
	if h.Adapters != nil {
		fillAdapters(m)
	}
	b := toyBatch(c.Vocab, 3)
	switch {
	case c.Tower != nil:
		b, _ = learningBatch(m, be)
	case m.AdaptsTower():
		b = adaptedBatch(m, be)
	case c.ReadsImages():
		b = imageBatch(m)
	}
	ws, err := NewWorkspace(be, c, h, Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, keep)
	if err != nil {
		t.Fatal(err)
	}
	o := &objective{be: be, m: m, ws: ws, batch: b, temp: 0.7, dropKeys: []uint64{1, 2, 3, 4}[:len(b.Prompt)],
		up: Upstream{Scores: h.LM, Values: h.Value, LogZ: h.LogZ != nil}}
	r := rand.New(rand.NewPCG(5, 5))
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	o.wLP, o.wH, o.wV, o.wZ = draw(b.Scored()), draw(b.Scored()), draw(b.Scored()), draw(len(b.Prompt))
	return o
}

func (o *objective) value() float64 {
	o.ws.Load(o.batch)
	o.ws.DropAdapters(o.dropKeys)
	o.m.Refresh()
	o.m.Forward(o.ws)
	sum := 0.0
	dot := func(w []float64, b kernels.Buffer) {
		x := make([]float64, b.Len())
		o.be.Copy(kernels.Host(x), b)
		o.be.Sync()
		for i := range x {
			sum += w[i] * x[i]
		}
	}
	if o.up.Scores {
		o.m.Scores(o.ws, o.temp)
		dot(o.wLP, o.ws.LogProb())
		dot(o.wH, o.ws.Entropy())
	}
	if o.up.Taught {
		o.ws.SetTaught(o.taught)
		dot(o.wLP, o.m.TaughtScores(o.ws, o.temp))
		dot(o.wH, o.ws.Entropy())
	}
	if o.up.Values {
		o.m.Values(o.ws)
		dot(o.wV, o.ws.Value())
	}
	if o.up.LogZ {
		o.ws.SetDropoutKeys(o.dropKeys)
		o.m.LogZ(o.ws, true)
		dot(o.wZ, o.ws.LogZ())
	}
	return sum
}

func (o *objective) gradient() []float64 {
	o.m.ZeroGrads()
	o.value()
	if o.up.Scores {
		o.be.Copy(o.ws.DLogProb(), kernels.Host(o.wLP))
		o.be.Copy(o.ws.DEntropy(), kernels.Host(o.wH))
	}
	if o.up.Taught {
		o.be.Copy(o.ws.DTaught(), kernels.Host(o.wLP))
		o.be.Copy(o.ws.DEntropy(), kernels.Host(o.wH))
	}
	if o.up.Values {
		o.be.Copy(o.ws.DValue(), kernels.Host(o.wV))
	}
	if o.up.LogZ {
		o.be.Copy(o.ws.DLogZ(), kernels.Host(o.wZ))
	}
	o.m.Backward(o.ws, o.up)
	o.m.FinishGrads()
	g := make([]float64, o.m.Grads().Len())
	o.be.Copy(kernels.Host(g), o.m.Grads())
	o.be.Sync()
	return g
}

// TestGradients compares every parameter's gradient with central differences on
// the float64 reference, h = 6e-6. A tensor's error is measured against its own
// largest gradient. Rounding in the objective (1e-15 of values around 10) over 2h
// leaves some 1e-9.
func TestGradients(t *testing.T) {
	for name, c := range variants {
		for _, tt := range []struct {
			heads string
			h     Heads
		}{
			{"policy", Heads{LM: true}},
			{"policy+logz", Heads{LM: true, LogZ: &LogZConfig{Layers: 3, Dropout: 0.3}}},
			{"policy+logz all", Heads{LM: true, LogZ: &LogZConfig{Layers: 1, PoolAll: true}}},
			{"critic", Heads{Value: true}},
		} {
			if len(name) > 5 && tt.heads != "policy" { // heads do not know the family
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", name, tt.heads), func(t *testing.T) { checkGradients(t, c, tt.h) })
		}
	}
}

// checkGradients compares the gradients of both ways to keep activations with one set of differences.
func checkGradients(t *testing.T, c Config, heads Heads) {
	t.Helper()
	o := newObjective(t, c, heads, KeepAll)
	want := o.differences()
	for _, x := range []struct {
		keep Keep
		got  []float64
	}{{KeepAll, o.gradient()}, {KeepInputs, newObjective(t, c, heads, KeepInputs).gradient()}} {
		for _, tensor := range o.m.Tensors() {
			worst, scale := 0.0, 0.0
			if tensor.Constant() {
				if got := x.got[tensor.off : tensor.off+tensor.Len()]; slices.Max(got) != 0 || slices.Min(got) != 0 {
					t.Errorf("keep=%d: %s has the gradient %v", x.keep, tensor.Name, got)
				}
				continue
			}
			for i := tensor.off; i < tensor.off+tensor.Len(); i++ {
				worst = max(worst, math.Abs(x.got[i]-want[i]))
				scale = max(scale, math.Abs(want[i]))
			}
			if !(worst <= 1e-8*max(scale, 1)) {
				t.Errorf("keep=%d: %s %v: gradient off by %.2g (largest is %.2g)", x.keep, tensor.Name, tensor.Shape, worst, scale)
			}
		}
	}
}

// differences returns the central difference of each parameter.
func (o *objective) differences() []float64 {
	const h = 6e-6
	params := make([]float64, o.m.Params().Len())
	o.be.Copy(kernels.Host(params), o.m.Params())
	list := make([]float64, len(params))
	for i, x := range params {
		set := func(v float64) { o.be.Copy(o.m.Params().Slice(i, i+1), kernels.Host([]float64{v})) }
		set(x + h)
		above := o.value()
		set(x - h)
		list[i] = (above - o.value()) / (2 * h)
		set(x)
	}
	return list
}

// A detached log Z head has a gradient for its own parameters only.
func TestLogZDetach(t *testing.T) {
	c := variants["llama"]
	o := newObjective(t, c, Heads{LM: true, LogZ: &LogZConfig{Layers: 2, Detach: true}}, KeepAll)
	o.up = Upstream{LogZ: true}
	g := o.gradient()
	for _, tensor := range o.m.Tensors() {
		nonzero := false
		for _, x := range g[tensor.off : tensor.off+tensor.Len()] {
			nonzero = nonzero || x != 0
		}
		if want := tensor.prefix() == "proj_z"; nonzero != want {
			t.Errorf("%s: has a gradient: %v, want %v", tensor.Name, nonzero, want)
		}
	}
}

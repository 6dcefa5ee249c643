package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"exp/kernels"
	"exp/train/model"
)

// architecture is a class of transformers that package model computes, and the meaning of
// its config.json. To add one, add a row to architectures, and a reader and a writer if a formula
// is new.
type architecture struct {
	class string // in "architectures"
	kind  string // "model_type"
	words string // description for people

	fixed model.Config // settings of the class whatever the file says

	// Values of absent keys: the class's own defaults.
	eps       float64 // rms_norm_eps
	theta     float64 // rope_theta
	positions int     // max_position_embeddings
	kvHeads   int     // num_key_value_heads; 0: as many as heads
	head      int     // head_dim; 0: hidden_size / num_attention_heads
	nullHead  bool    // a head_dim that is null is hidden_size / num_attention_heads, too
	window    int     // sliding_window; 0: none
	tied      bool    // tie_word_embeddings
	vocab     int     // vocab_size; 0: the key is required
	heads     int     // num_attention_heads; 0: the key is required

	experts    bool    // mixtures of experts are read
	ownRope    bool    // windowed layers have their own, unscaled rotary positions
	inside     bool    // longrope's positions before scaling lie next to its factors, where programs look
	activation string  // the key; empty: hidden_act
	gate       string  // its default value; empty: silu
	plain      bool    // feed-forward blocks have no gates
	layerTypes bool    // layer_types says which layers have a window
	partial    bool    // partial_rotary_factor is honoured
	part       float64 // its default value; 0: 1
	noFFN      bool    // intermediate_size may be absent: no layer is dense
	latent     bool    // attention is latent
	mxfp4      bool    // weights of experts may be MXFP4, which are widened
	windows    windowing
	prepare    func(r *settings) // completes the file before anything is read; may be nil
	features   []feature
	write      []writer // of settings that features read
	mixed      bool     // some layers may have Mamba-2, a short convolution or linear attention, and their names
}

// feature reads a setting of some classes into c.
type feature func(r *settings, c *model.Config)

// writer writes settings of some classes into the values of a config.json.
type writer func(v map[string]any, a architecture, c model.Config)

// architectures lists all readable classes, in the order that writing tries them. Callers share the list and do not
// change it: a row is large, and writing a config.json asks for them once for each class that it tries.
var architectures = sync.OnceValue(func() []architecture {
	return slices.Concat(llamas(), neighbours(), mixtures(), gemmas(), olmos(), linears(), []architecture{sinks()},
		deepseeks(), sigmoids(), gemmaFours(), hybrids(), falcons(), lfms(), olmoHybrids(), afmoes(), nanochats(),
		layerNorms(), apertuses(), minis())
})

// llamas have Llama's block.
func llamas() []architecture {
	return []architecture{
		{class: "LlamaForCausalLM", kind: "llama", words: "Llama",
			eps: 1e-6, theta: 1e4, positions: 2048,
			features: []feature{attentionBias, feedForwardBias},
			write:    []writer{outBias, ffnBias}},
		{class: "Qwen2ForCausalLM", kind: "qwen2", words: "Qwen2: biases on queries, keys and values",
			fixed: model.Config{QKVBias: true},
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 32, window: 4096, layerTypes: true,
			windows: windowFrom},
		{class: "Qwen3ForCausalLM", kind: "qwen3", words: "Qwen3: norms of queries and keys",
			fixed: model.Config{QKNorm: true},
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 32, head: 128, window: 4096, layerTypes: true,
			windows:  windowFrom,
			features: []feature{attentionBias},
			write:    []writer{outBias}},
		{class: "MistralForCausalLM", kind: "mistral", words: "Mistral",
			eps: 1e-6, theta: 1e4, positions: 131072, kvHeads: 8, window: 4096, windows: windowEverywhere},
		{class: "Phi3ForCausalLM", kind: "phi3", words: "Phi-3: fused projections",
			fixed: model.Config{Fused: true},
			eps:   1e-5, theta: 1e4, positions: 4096, partial: true, windows: windowEverywhere},
		{class: "SmolLM3ForCausalLM", kind: "smollm3", words: "SmolLM3: some layers without rotary positions",
			eps: 1e-6, theta: 2e6, positions: 32768, kvHeads: 4, tied: true, layerTypes: true,
			windows:  windowWithoutRope,
			features: []feature{attentionBias, feedForwardBias, ropeLayers},
			write:    []writer{outBias, ffnBias}},
		{class: "SeedOssForCausalLM", kind: "seed_oss", words: "Seed-OSS",
			eps: 1e-6, theta: 1e4, positions: 524288, kvHeads: 8, head: 128, nullHead: true,
			features: []feature{seedBias, feedForwardBias},
			write:    []writer{seedValues}},
		{class: "InternLM3ForCausalLM", kind: "internlm3", words: "InternLM3",
			eps: 1e-5, theta: 1e4, positions: 32768, kvHeads: 2, head: 128, nullHead: true,
			features: []feature{internBias},
			write:    []writer{outBias, ffnBias}},
		{class: "IQuestCoderForCausalLM", kind: "iquestcoder", words: "IQuest-Coder",
			eps: 1e-5, theta: 1e4, positions: 131072, kvHeads: 8, head: 128, nullHead: true,
			features: []feature{attentionBias, feedForwardBias, noClipping},
			write:    []writer{outBias, ffnBias}},
		{class: "ArceeForCausalLM", kind: "arcee", words: "Arcee: feed-forward blocks without gates",
			fixed: model.Config{Gate: kernels.ReLU2},
			eps:   1e-5, theta: 1e4, positions: 4096, gate: relu2,
			features: []feature{attentionBias, feedForwardBias},
			write:    []writer{outBias, ffnBias}},
		{class: "CwmForCausalLM", kind: "cwm", words: "CWM: most layers windowed",
			eps: 1e-5, theta: 1e6, positions: 131072, kvHeads: 8, head: 128, window: 8192, layerTypes: true,
			windows:  windowButFirst,
			features: []feature{feedForwardBias, scaledRope("llama3 with factor 16")},
			write:    []writer{ffnBias}},
		{class: "MinistralForCausalLM", kind: "ministral", words: "Ministral: some layers windowed",
			eps: 1e-6, theta: 1e4, positions: 131072, kvHeads: 8, window: 4096, layerTypes: true,
			windows: windowEverywhere},
		{class: "MiMoForCausalLM", kind: "mimo", words: "MiMo: biases on queries, keys and values",
			fixed: model.Config{QKVBias: true},
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 32, window: 4096, layerTypes: true,
			windows: windowFrom, features: []feature{qwenBias}},
		{class: "Ministral3ForCausalLM", kind: "ministral3", words: "Ministral 3",
			eps: 1e-5, theta: 1e6, positions: 262144, kvHeads: 8, head: 128, windows: windowEverywhere,
			features: []feature{scaledRope("yarn with factor 16")}},
		{class: "GraniteForCausalLM", kind: "granite", words: "Granite: multipliers",
			eps: 1e-6, theta: 1e4, positions: 2048,
			features: []feature{attentionBias, feedForwardBias, multipliers},
			write:    []writer{outBias, ffnBias, multiplierValues}},
		{class: "HunYuanDenseV1ForCausalLM", kind: "hunyuan_v1_dense",
			words: "Hunyuan: norms of queries and keys after rotary positions",
			fixed: model.Config{QKNorm: true, LateQKNorm: true},
			eps:   1e-5, theta: 1e4, positions: 2048,
			features: []feature{attentionBias, ownKeys},
			write:    []writer{outBias}},
	}
}

// neighbours have rotary positions that turn channels 2i and 2i+1 of a head together.
func neighbours() []architecture {
	glm := model.Config{Interleaved: true, FusedFFN: true}
	glm4 := glm
	glm4.PostNorms, glm4.GLMNorms = true, true
	return []architecture{
		{class: "Glm4ForCausalLM", kind: "glm4", words: "GLM-4: norms before and after, interleaved rotary positions",
			fixed: glm4,
			eps:   1.5625e-7, theta: 1e4, positions: 131072, kvHeads: 2, head: 128, partial: true, part: 0.5,
			features: []feature{inputBiasUnlessFalse},
			write:    []writer{inBias}},
		{class: "GlmForCausalLM", kind: "glm", words: "GLM: interleaved rotary positions",
			fixed: glm,
			eps:   1.5625e-7, theta: 1e4, positions: 131072, kvHeads: 2, head: 128, partial: true, part: 0.5,
			features: []feature{inputBiasUnlessFalse},
			write:    []writer{inBias}},
		{class: "HeliumForCausalLM", kind: "helium", words: "Helium: interleaved rotary positions",
			fixed: model.Config{Interleaved: true},
			eps:   1e-8, theta: 1e5, positions: 4096, kvHeads: 20, head: 128,
			features: []feature{attentionBias, feedForwardBias, evenOutput},
			write:    []writer{inBias, ffnBias}},
		{class: "Ernie4_5ForCausalLM", kind: "ernie4_5", words: "ERNIE 4.5: interleaved rotary positions",
			fixed: model.Config{Interleaved: true},
			eps:   1e-5, theta: 5e5, positions: 131072, kvHeads: 2, head: 128, nullHead: true, tied: true,
			features: []feature{biasEverywhere},
			write:    []writer{useBias}},
		{class: "Ernie4_5_MoeForCausalLM", kind: "ernie4_5_moe",
			words: "ERNIE 4.5 MoE: interleaved rotary positions, experts chosen by a bias, some of them shared",
			fixed: model.Config{Interleaved: true},
			eps:   1e-5, theta: 5e5, positions: 131072, kvHeads: 4, tied: true, experts: true,
			features: []feature{noBias, ernieExperts},
			write:    []writer{sharedValues}},
	}
}

// mixtures have experts instead of its feed-forward block.
func mixtures() []architecture {
	return []architecture{
		{class: "Qwen3MoeForCausalLM", kind: "qwen3_moe", words: "Qwen3-MoE: norms of queries and keys, experts",
			fixed: model.Config{QKNorm: true},
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 4, window: 4096, experts: true, windows: windowIfUsed,
			features: []feature{attentionBias, sparseLayers(model.Experts{Count: 128, Top: 8, FFN: 768})},
			write:    []writer{outBias, expertValues}},
		{class: "Qwen2MoeForCausalLM", kind: "qwen2_moe",
			words: "Qwen2-MoE: biases on queries, keys and values, experts, one of them shared",
			fixed: model.Config{QKVBias: true},
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 16, window: 4096, layerTypes: true, experts: true,
			windows:  windowDisputed,
			features: []feature{qkvBias, sparseLayers(model.Experts{Count: 60, Top: 4, FFN: 1408, Shared: 5632})},
			write:    []writer{qkvBiasValues, expertValues}},
		{class: "MellumForCausalLM", kind: "mellum",
			words: "Mellum: norms of queries and keys, experts, two rotary bases, some layers windowed",
			fixed: model.Config{QKNorm: true},
			eps:   1e-6, theta: mellumTheta, positions: 131072, kvHeads: 4, head: 128, window: 1024, experts: true,
			ownRope: true, layerTypes: true,
			windows:  windowListed,
			features: []feature{attentionBias, mellumLayers},
			write:    []writer{outBias, mellumValues}},
		{class: "MixtralForCausalLM", kind: "mixtral", words: "Mixtral: experts",
			eps: 1e-5, theta: 1e6, positions: 131072, kvHeads: 8, experts: true, windows: windowEverywhere,
			features: []feature{mixtralExperts},
			write:    []writer{expertValues}},
		{class: "MiniMaxM2ForCausalLM", kind: "minimax_m2",
			words: "MiniMax-M2: norms of all queries and all keys, experts chosen by a Sigmoid and a bias",
			fixed: model.Config{QKNorm: true, WideQKNorm: true},
			eps:   1e-6, theta: 5e6, positions: 196608, kvHeads: 8, head: 128, experts: true, partial: true,
			features: []feature{miniMaxExperts},
			write:    []writer{expertValues}},
		{class: "OlmoeForCausalLM", kind: "olmoe", words: "OLMoE: norms of all queries and all keys, experts",
			fixed: model.Config{QKNorm: true, WideQKNorm: true},
			eps:   1e-5, theta: 1e4, positions: 4096, experts: true,
			features: []feature{attentionBias, olmoExperts(64, 8)},
			write:    []writer{outBias, expertValues}},
		{class: "HunYuanMoEV1ForCausalLM", kind: "hunyuan_v1_moe",
			words: "Hunyuan MoE: norms of queries and keys after rotary positions, experts, one of them shared",
			fixed: model.Config{QKNorm: true, LateQKNorm: true},
			eps:   1e-5, theta: 1e4, positions: 2048, experts: true,
			features: []feature{attentionBias, hunyuanExperts, ownKeys},
			write:    []writer{outBias, sharedValues}},
	}
}

// gemmas have norms that multiply by 1 + weight.
func gemmas() []architecture {
	gemma := model.Config{UnitOffset: true, PostNorms: true}
	normed := gemma
	normed.QKNorm = true
	return []architecture{
		{class: "Gemma2ForCausalLM", kind: "gemma2",
			words: "Gemma 2: norms 1+g before and after, soft caps, every second layer windowed",
			fixed: gemma,
			eps:   1e-6, theta: 1e4, positions: 8192, kvHeads: 4, head: 256, window: 4096, tied: true,
			activation: "hidden_activation", gate: geluTanh, layerTypes: true, windows: windowEven,
			features: []feature{attentionBias, embedScale, queryScale, scoreCap(50), logitCap(30)},
			write:    []writer{outBias, gemmaValues}},
		{class: "Gemma3ForCausalLM", kind: "gemma3_text",
			words: "Gemma 3: norms 1+g before and after and of queries and keys, two rotary bases, most layers " +
				"windowed",
			fixed: normed,
			eps:   1e-6, theta: 1e6, positions: 131072, kvHeads: 4, head: 256, window: 4096, tied: true,
			vocab: 262208, heads: 8, ownRope: true,
			activation: "hidden_activation", gate: geluTanh, layerTypes: true, windows: windowPattern,
			features: []feature{attentionBias, embedScale, queryScale, noScoreCap, logitCap(0)},
			write:    []writer{outBias, gemmaValues}},
		{class: "VaultGemmaForCausalLM", kind: "vaultgemma",
			words: "VaultGemma: norms 1+g, soft caps, every second layer windowed",
			fixed: model.Config{UnitOffset: true, Names: model.VaultNames},
			eps:   1e-6, theta: 1e4, positions: 8192, kvHeads: 4, head: 256, window: 4096, tied: true,
			activation: "hidden_activation", gate: geluTanh, layerTypes: true, windows: windowEven,
			features: []feature{attentionBias, embedScale, queryScale, scoreCap(50), logitCap(30)},
			write:    []writer{outBias, gemmaValues}},
		{class: "GemmaForCausalLM", kind: "gemma", words: "Gemma: norms 1+g",
			fixed: model.Config{UnitOffset: true},
			eps:   1e-6, theta: 1e4, positions: 8192, kvHeads: 16, head: 256, tied: true, gate: geluTanh,
			features: []feature{attentionBias, embedScale, gemmaGate},
			write:    []writer{outBias}},
	}
}

// olmos have norms after the blocks alone.
func olmos() []architecture {
	olmo := model.Config{PostNorms: true, NoPreNorms: true, QKNorm: true, WideQKNorm: true}
	return []architecture{
		{class: "Olmo2ForCausalLM", kind: "olmo2",
			words: "OLMo 2: norms after the blocks alone, and of all queries and all keys",
			fixed: olmo,
			eps:   1e-5, theta: 1e4, positions: 2048,
			features: []feature{attentionBias},
			write:    []writer{outBias}},
		{class: "Olmo3ForCausalLM", kind: "olmo3",
			words: "OLMo 3: norms after the blocks alone, and of all queries and all keys, most layers windowed",
			fixed: olmo,
			eps:   1e-5, theta: olmo3Theta, positions: 2048, window: 4096, layerTypes: true, ownRope: true,
			windows:  windowFour,
			features: []feature{attentionBias},
			write:    []writer{outBias}},
		{class: "FlexOlmoForCausalLM", kind: "flex_olmo",
			words: "FlexOlmo: norms after the blocks alone, and of all queries and all keys, experts",
			fixed: olmo,
			eps:   1e-6, theta: 5e5, positions: 4096, experts: true,
			features: []feature{attentionBias, olmoExperts(7, 5)},
			write:    []writer{outBias, expertValues}},
		{class: "Exaone4ForCausalLM", kind: "exaone4",
			words: "EXAONE 4: norms after the blocks alone, and of queries and keys",
			fixed: model.Config{PostNorms: true, NoPreNorms: true, QKNorm: true},
			eps:   1e-5, theta: 1e4, positions: 2048, kvHeads: 32, window: 4096, layerTypes: true,
			windows:  windowPatternOf(4),
			features: []feature{noRopeUnwindowed}},
	}
}

const (
	geluTanh = "gelu_pytorch_tanh"
	geluNew  = "gelu_new"
	gelu     = "gelu"
)

// plainGates maps names of activations of feed-forward blocks without gates to the engine's.
func plainGates() map[string]kernels.GateKind {
	return map[string]kernels.GateKind{gelu: kernels.PlainGELU, geluTanh: kernels.PlainGELUTanh,
		geluNew: kernels.PlainGELUTanh}
}

// gates maps names of activations to the engine's.
func gates() map[string]kernels.GateKind {
	return map[string]kernels.GateKind{"silu": kernels.SiLU, "swish": kernels.SiLU, geluTanh: kernels.GELUTanh,
		geluNew: kernels.GELUTanh}
}

// backbone returns the class without output projection, as AutoModel saves it.
func (a architecture) backbone() string {
	return strings.TrimSuffix(strings.TrimSuffix(a.class, causal), "LMHeadModel") + "Model"
}

// architectureNamed returns the row for a class or, without one, for a model_type.
func architectureNamed(class, kind string) (architecture, bool) {
	list := architectures()
	i := slices.IndexFunc(list, func(a architecture) bool {
		return class == a.class || class == a.backbone() || class == "" && kind == a.kind
	})
	if i < 0 {
		return architecture{}, false
	}
	return list[i], true
}

// classes lists the readable classes, for errors.
func classes() string {
	var names []string
	for _, a := range architectures() {
		names = append(names, a.class)
	}
	return strings.Join(names, ", ")
}

// foreign says why a well-known class is not supported; "" if the class is unknown.
func foreign(class, kind string) string {
	name := strings.ToLower(class + " " + kind)
	for _, f := range []struct{ part, why string }{
		{"gemma3forconditional", ""}, // has its own message
		{"deepseek", "of DeepSeek's own classes only V2 and V3 are, and DeepseekForCausalLM"},
		{"kimilinear", "its linear attention is not supported"},
		{"kimi_linear", "its linear attention is not supported"},
		{"kimi", "of Kimi's only text models of class DeepseekV3ForCausalLM are"},
		{"jamba", "its Mamba layers are not supported"},
		{"zamba", "its Mamba layers are not supported"},
		{"mamba", "its Mamba layers are not supported"},
		{"gemma3n", "its several residual streams and sparse activations are not supported"},
		{"lfm3", "its norms after the blocks and gates of the attention's output are not supported"},
		{"phimoe", "its layer norms and its router are not supported"},
		{"rwkv", "its recurrent layers are not supported"},
		{"llama4", "its chunked attention and shared experts are not supported"},
		{"vl", "its vision tower is not supported"},
		{"vision", "its vision tower is not supported"},
		{"llava", "its vision tower is not supported"},
		{"mllama", "its vision tower is not supported"},
		{"conditionalgeneration", "it is not a plain language model"},
		{"sequenceclassification", "it scores sequences: it can be a reward model, not a policy"},
	} {
		if strings.Contains(name, f.part) {
			return f.why
		}
	}
	return ""
}

// unknown describes the problem of an unsupported class.
func unknown(classesOfFile []string, kind string) string {
	names := slices.DeleteFunc(append(slices.Clone(classesOfFile), kind), func(s string) bool { return s == "" })
	if len(names) == 0 {
		return "neither architectures nor model_type names an architecture; supported are " + classes()
	}
	for i, name := range names {
		names[i] = shortened([]byte(name))
	}
	if most := 4; len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	text := fmt.Sprintf("architecture is %s; supported are %s", strings.Join(names, ", "), classes())
	if why := foreign(strings.Join(classesOfFile, " "), kind); why != "" {
		text = fmt.Sprintf("architecture is %s: %s; supported are %s", strings.Join(names, ", "), why, classes())
	}
	return text
}

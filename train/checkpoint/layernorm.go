package checkpoint

import (
	"cmp"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// This file has the classes whose norms are LayerNorm: their settings have names of their own, too.

// layerNorms lists these classes.
func layerNorms() []architecture {
	neoX := model.Config{Names: model.NeoXNames, Norm: model.LayerNorm, Fused: true, FFNBias: true}
	gpt2 := model.Config{Names: model.GPT2Names, Norm: model.LayerNorm, Fused: true, QKVBias: true, OutBias: true,
		FFNBias: true, Learned: true}
	cohere := model.Config{Norm: model.WeightLayerNorm, Branches: model.OneNorm, Interleaved: true}
	return []architecture{
		{class: "GPTNeoXForCausalLM", kind: "gpt_neox",
			words: "GPT-NeoX, Pythia: LayerNorm, attention beside blocks without gates",
			fixed: neoX,
			eps:   1e-5, theta: 1e4, positions: 2048, partial: true, part: 0.25, plain: true, gate: gelu,
			prepare: neoXKeys, features: []feature{neoXLayers}, write: []writer{neoXValues}},
		{class: "GPT2LMHeadModel", kind: "gpt2", words: "GPT-2: LayerNorm, learned positions, blocks without gates",
			fixed: gpt2,
			eps:   1e-5, theta: 1e4, positions: 1024, vocab: 50257, tied: true, plain: true, gate: geluNew,
			activation: "activation_function",
			prepare:    gpt2Keys, features: []feature{gpt2Layers}, write: []writer{gpt2Values}},
		{class: "CohereForCausalLM", kind: "cohere",
			words: "Cohere: LayerNorm without biases, one for attention and the block beside it",
			fixed: cohere,
			eps:   1e-5, theta: 5e5, positions: 8192, tied: true,
			prepare: epsFrom(layerNormEps), features: []feature{attentionBias, evenHeadsOnly, headNorms, logitScale,
				cohereBase},
			write: []writer{outBias, epsTo(layerNormEps), logitScaleValue}},
		{class: "Cohere2ForCausalLM", kind: "cohere2",
			words: "Cohere 2: LayerNorm without biases, one for attention and the block beside it; most layers " +
				"windowed, the others without rotary positions",
			fixed: cohere,
			eps:   1e-5, theta: 1e4, positions: 8192, tied: true, window: 4096, layerTypes: true,
			windows: windowPatternOf(4),
			prepare: epsFrom(layerNormEps), features: []feature{attentionBias, evenHeadsOnly, noHeadNorms, logitScale,
				noRopeWithoutWindow},
			write: []writer{outBias, epsTo(layerNormEps), logitScaleValue}},
		{class: "Starcoder2ForCausalLM", kind: "starcoder2", words: "StarCoder2: LayerNorm, blocks without gates",
			fixed: model.Config{Names: model.StarNames, Norm: model.LayerNorm},
			eps:   1e-5, theta: 1e4, positions: 4096, kvHeads: 2, tied: true, plain: true, gate: geluTanh,
			windows: windowEverywhere,
			prepare: epsFrom("norm_epsilon"), features: []feature{useBiasUnlessFalse},
			write: []writer{useBias, epsTo("norm_epsilon")}},
		{class: "StableLmForCausalLM", kind: "stablelm", words: "StableLM: LayerNorm",
			fixed: model.Config{Norm: model.LayerNorm},
			eps:   1e-5, theta: 1e4, positions: 4096, kvHeads: 32, partial: true, part: 0.25,
			prepare: epsFrom(layerNormEps), features: []feature{stableLayers},
			write: []writer{epsTo(layerNormEps), stableValues}},
		{class: "PhiForCausalLM", kind: "phi",
			words: "Phi-1, 1.5 and 2: LayerNorm, one for attention and the block without gates beside it, biases",
			fixed: model.Config{Names: model.PhiNames, Norm: model.LayerNorm, Branches: model.OneNorm, QKVBias: true,
				OutBias: true, FFNBias: true, OutputBias: true},
			eps: 1e-5, theta: 1e4, positions: 2048, vocab: 51200, partial: true, part: 0.5, plain: true, gate: geluNew,
			prepare: epsFrom(layerNormEps), features: []feature{noHeadLayerNorm},
			write: []writer{epsTo(layerNormEps), phiValues}},
		{class: "NemotronForCausalLM", kind: "nemotron",
			words: "Nemotron: LayerNorm that multiplies by 1 + weight, blocks without gates",
			fixed: model.Config{Norm: model.OffsetLayerNorm, Gate: kernels.ReLU2},
			eps:   1e-5, theta: 1e4, positions: 4096, vocab: 256000, heads: 48, partial: true, part: 0.5, gate: relu2,
			prepare: epsFrom(normEps), features: []feature{attentionBias, feedForwardBias},
			write: []writer{outBias, ffnBias, epsTo(normEps)}},
		{class: "Jais2ForCausalLM", kind: "jais2", words: "Jais 2: LayerNorm, blocks without gates, biases",
			fixed: model.Config{Norm: model.LayerNorm, Gate: kernels.ReLU2},
			eps:   1e-5, theta: 1e4, positions: 8192, vocab: 150272, heads: 26, gate: relu2,
			prepare: epsFrom(layerNormEps), features: []feature{biasUnlessFalse},
			write: []writer{outBias, ffnBias, epsTo(layerNormEps)}},
		{class: "OlmoForCausalLM", kind: "olmo", words: "OLMo: LayerNorm without weights",
			fixed: model.Config{Norm: model.PlainLayerNorm},
			eps:   1e-5, theta: 1e4, positions: 2048,
			prepare: epsFrom(""), features: []feature{attentionBias, clipQKV},
			write: []writer{outBias, epsTo(""), clipValue}},
	}
}

const (
	layerNormEps = "layer_norm_eps"
	normEps      = "norm_eps"
	parallelKey  = "use_parallel_residual"
)

// move gives a setting the name under which other classes have it. What had that name means nothing in the class.
func (r *settings) move(own, usual string) {
	v, ok := r.values[own]
	if delete(r.values, usual); ok {
		r.values[usual] = v
	}
}

// epsFrom reads what norms add from a key of the class; "" where it is fixed.
func epsFrom(key string) func(r *settings) { return func(r *settings) { r.move(key, "rms_norm_eps") } }

// epsTo writes it.
func epsTo(key string) writer {
	return func(v map[string]any, _ architecture, c model.Config) {
		if delete(v, "rms_norm_eps"); key != "" {
			v[key] = number(c.NormEps)
		}
	}
}

// withoutHeads drops settings of heads that classes with as many keys as queries ignore.
func (r *settings) withoutHeads() {
	delete(r.values, "head_dim")
	delete(r.values, "num_key_value_heads")
}

// neoXKeys gives GPT-NeoX's settings their usual names.
func neoXKeys(r *settings) {
	r.move(layerNormEps, "rms_norm_eps")
	r.move("rotary_emb_base", "rope_theta")
	r.move("rotary_pct", "partial_rotary_factor")
	r.withoutHeads()
	top, inside := 0.0, 0.0
	if in := r.inner("rope_parameters"); in != nil && r.maybe("partial_rotary_factor", &top) &&
		in.maybe("partial_rotary_factor", &inside) && top != inside {
		r.problem("rotary_pct is %g, but rope_parameters says %g: transformers 4 and 5 would read different models",
			top, inside)
	}
}

// neoXLayers reads where biases are, and whether attention and feed-forward block are side by side.
func neoXLayers(r *settings, c *model.Config) {
	c.QKVBias = r.flag("attention_bias", true)
	if c.OutBias = c.QKVBias; r.flag(parallelKey, true) {
		c.Branches = model.TwoNorms
	}
}

func neoXValues(v map[string]any, a architecture, c model.Config) {
	epsTo(layerNormEps)(v, a, c)
	v["rotary_emb_base"], v["rotary_pct"] = v["rope_theta"], v["partial_rotary_factor"]
	v["attention_bias"], v[parallelKey] = c.OutBias, c.Branches == model.TwoNorms
	v["hidden_dropout"] = number(0)
	for _, key := range []string{"rope_theta", "partial_rotary_factor", "head_dim", "num_key_value_heads"} {
		delete(v, key)
	}
}

// gpt2Names are GPT-2's names of settings, which may also have their usual ones.
func gpt2Names() map[string]string {
	return map[string]string{"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
		"n_positions": "max_position_embeddings"}
}

// gpt2Keys gives GPT-2's settings their usual names.
func gpt2Keys(r *settings) {
	names := gpt2Names()
	for _, own := range sortedKeys(names) {
		r.agree(own, names[own])
		if v, ok := r.values[own]; ok {
			r.values[names[own]] = v
		}
	}
	r.move("layer_norm_epsilon", "rms_norm_eps")
	r.move("n_inner", "intermediate_size")
	if width := 0; !r.has("intermediate_size") && r.maybe("hidden_size", &width) {
		r.values["intermediate_size"] = compact(4 * min(width, maxFFN))
	}
	r.withoutHeads()
	for _, key := range []string{"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"} {
		delete(r.values, key)
	}
}

// gpt2Layers refuses what changes attention, and drops rotary positions.
func gpt2Layers(r *settings, c *model.Config) {
	r.refuseFlags(true, "scale_attn_weights")
	r.refuseFlags(false, "scale_attn_by_inverse_layer_idx", "add_cross_attention")
	c.NoRope = slices.Repeat([]bool{true}, min(max(c.Layers, 0), maxLayers))
}

func gpt2Values(v map[string]any, _ architecture, c model.Config) {
	for own, usual := range gpt2Names() {
		v[own] = v[usual]
		delete(v, usual)
	}
	v["layer_norm_epsilon"], v["n_inner"] = v["rms_norm_eps"], c.FFN
	v["scale_attn_weights"], v["scale_attn_by_inverse_layer_idx"], v["add_cross_attention"] = true, false, false
	v["attn_pdrop"], v["embd_pdrop"], v["resid_pdrop"] = number(0), number(0), number(0)
	for _, key := range []string{"rms_norm_eps", "intermediate_size", "head_dim", "num_key_value_heads", "hidden_act",
		"rope_theta", "rope_scaling", "rope_parameters", "attention_dropout"} {
		delete(v, key)
	}
}

// evenHeadsOnly refuses a size of heads that transformers ignores in the class.
func evenHeadsOnly(r *settings, c *model.Config) {
	if c.Head*c.Heads != c.Width {
		r.problem("head_dim is %d: in this class num_attention_heads times it must be hidden_size", c.Head)
	}
}

// noHeadNorms refuses norms of queries and keys: LayerNorms with a weight for each head.
func noHeadNorms(r *settings, _ *model.Config) {
	if r.flag("use_qk_norm", false) {
		r.problem("use_qk_norm: LayerNorm of queries and keys is not supported")
	}
}

// headNorms reads whether queries and keys have LayerNorms with a weight for each head.
func headNorms(r *settings, c *model.Config) { c.HeadLayerNorm = r.flag("use_qk_norm", false) }

// clipQKV reads a limit of queries, keys and values.
func clipQKV(r *settings, c *model.Config) {
	if r.maybe("clip_qkv", &c.ClipQKV) && !(c.ClipQKV > 0) {
		r.problem("clip_qkv is %g, must be positive, or null for none", c.ClipQKV)
		c.ClipQKV = 0
	}
}

func clipValue(v map[string]any, _ architecture, c model.Config) { v["clip_qkv"] = orNull(c.ClipQKV) }

// logitScale reads Cohere's factor of logits; 1 is kept as 0.
func logitScale(r *settings, c *model.Config) {
	const key, most = "logit_scale", 1e6
	by := 0.0625
	if r.get(key, &by); !(by >= 1/most && by <= most) {
		r.problem("%s is %g, must be from %g to %g", key, by, 1/most, float64(most))
	} else if by != 1 {
		c.LogitDivisor = 1 / by
	}
}

func logitScaleValue(v map[string]any, a architecture, c model.Config) {
	divisor := cmp.Or(c.LogitDivisor, 1)
	v["logit_scale"] = number(inverse(divisor, func(by float64) float64 { return 1 / by }, 1/divisor))
	if a.kind == "cohere" {
		v["use_qk_norm"] = c.HeadLayerNorm
	}
}

// cohereBase refuses a missing base of rotary positions.
func cohereBase(r *settings, _ *model.Config) {
	r.needBase("transformers 4 takes 10000, transformers 5 takes 500000")
}

// needBase refuses a file without a base of rotary positions; why says what programs take.
func (r *settings) needBase(why string) {
	if !r.has("rope_theta") && !r.inner("rope_parameters").holds("rope_theta") &&
		!r.inner("rope_scaling").holds("rope_theta") {
		r.problem("rope_theta is missing: %s", why)
	}
}

// useBiasUnlessFalse is StarCoder2's: all linear maps have biases, or none has.
func useBiasUnlessFalse(r *settings, c *model.Config) {
	c.FFNBias = r.flag("use_bias", true)
	c.QKVBias, c.OutBias = c.FFNBias, c.FFNBias
}

// biasUnlessFalse is Jais 2's: attention has biases, and separately the feed-forward blocks.
func biasUnlessFalse(r *settings, c *model.Config) {
	c.QKVBias, c.FFNBias = r.flag("attention_bias", true), r.flag("mlp_bias", true)
	c.OutBias = c.QKVBias
}

// noHeadLayerNorm refuses norms of queries and keys.
func noHeadLayerNorm(r *settings, _ *model.Config) {
	if r.flag("qk_layernorm", false) {
		r.problem("qk_layernorm: LayerNorm of queries and keys is not supported in this class")
	}
}

func phiValues(v map[string]any, _ architecture, _ model.Config) {
	v["qk_layernorm"] = false
	v["resid_pdrop"], v["embd_pdrop"] = number(0), number(0)
}

// stableLayers reads StableLM's biases, and whether one norm serves attention and the feed-forward block.
func stableLayers(r *settings, c *model.Config) {
	c.QKVBias = r.flag("use_qkv_bias", false)
	evenHeadsOnly(r, c)
	noHeadLayerNorm(r, c)
	if r.flag(parallelKey, false) {
		c.Branches = model.OneNorm
	}
}

func stableValues(v map[string]any, _ architecture, c model.Config) {
	v["use_qkv_bias"], v["qk_layernorm"], v[parallelKey] = c.QKVBias, false, c.Branches == model.OneNorm
	v["hidden_dropout"] = number(0)
}

package checkpoint

import (
	"encoding/json"
	"math"
	"slices"

	"exp/train/model"
)

// Features of some classes: each function reads its keys into c.

// attentionBias is Llama's: q, k, v and the output projection all have biases, or none has.
func attentionBias(r *settings, c *model.Config) {
	if r.flag("attention_bias", false) {
		c.QKVBias, c.OutBias = true, true
	}
}

func feedForwardBias(r *settings, c *model.Config) { c.FFNBias = r.flag("mlp_bias", false) }

// evenOutput refuses what Helium's output projection, square and without bias, cannot compute.
func evenOutput(r *settings, c *model.Config) {
	if c.OutBias = false; c.Head*c.Heads != c.Width {
		r.problem("head_dim is %d: in this class num_attention_heads times it must be hidden_size", c.Head)
	}
}

// qkvBias is Qwen2-MoE's: a file may omit biases.
func qkvBias(r *settings, c *model.Config) { c.QKVBias = r.flag("qkv_bias", true) }

// qwenBias refuses MiMo without biases, of which no program is known.
func qwenBias(r *settings, _ *model.Config) {
	if !r.flag("attention_bias", true) {
		r.problem("attention_bias is false: queries, keys and values of this class have biases")
	}
}

// noBias refuses ERNIE's biases with experts, which no published model has.
func noBias(r *settings, _ *model.Config) {
	if r.flag("use_bias", false) {
		r.problem("use_bias: biases are not supported for this class")
	}
}

// seedBias is Seed-OSS's: q, k and v have biases, and separately the output projection.
func seedBias(r *settings, c *model.Config) {
	c.QKVBias, c.OutBias = r.flag("attention_bias", true), r.flag("attention_out_bias", false)
}

// biasEverywhere is ERNIE's.
func biasEverywhere(r *settings, c *model.Config) {
	if r.flag("use_bias", false) {
		c.QKVBias, c.OutBias, c.FFNBias = true, true, true
	}
}

// internBias is InternLM3's: attention_bias and mlp_bias, also called qkv_bias and bias. transformers reads
// them as Llama's, which the first is only if both are equal.
func internBias(r *settings, c *model.Config) {
	either := func(key, other string) bool { return r.flag(key, r.flag(other, false)) }
	attention, mlp := either("attention_bias", "qkv_bias"), either("mlp_bias", "bias")
	if attention != mlp {
		r.problem("qkv_bias is %v and bias %v: in this class all linear maps have biases, or none has", attention, mlp)
	}
	c.QKVBias, c.OutBias, c.FFNBias = attention, attention, mlp
}

// clipping refuses to clip queries, keys and values.
func (r *settings) clipping() {
	if r.has("clip_qkv") {
		r.problem("clip_qkv: clipping queries, keys and values is not supported")
	}
}

// noClipping refuses what transformers does, too.
func noClipping(r *settings, _ *model.Config) {
	r.clipping()
	if r.flag("use_sliding_window", false) {
		r.problem("use_sliding_window: windows are not supported for this class, in transformers either")
	}
}

// scaledRope refuses a class's default scaling, which published files do not rely on.
func scaledRope(absent string) feature {
	return func(r *settings, _ *model.Config) {
		if !r.has("rope_scaling") && !r.has("rope_parameters") {
			r.problem("rope_parameters are missing: transformers takes %s, other programs none", absent)
		}
	}
}

// multipliers reads Granite's. A multiplier of 1 changes nothing, except attention's, which replaces 1/sqrt(head_dim).
func multipliers(r *settings, c *model.Config) {
	// The residual stream is kept divided by its multiplier: its square must not leave float32. Published models
	// have multipliers from 0.0078 to 16.
	const most = 1e6
	embed, residual, logits := 1.0, 1.0, 1.0
	c.QueryScale = 1
	for _, f := range []struct {
		key   string
		v, to *float64
	}{{"embedding_multiplier", &embed, &c.EmbedScale}, {"residual_multiplier", &residual, &c.ResidualScale},
		{"logits_scaling", &logits, &c.LogitDivisor}, {"attention_multiplier", &c.QueryScale, nil}} {
		if r.get(f.key, f.v); !(*f.v >= 1/most && *f.v <= most) {
			r.problem("%s is %g, must be from %g to %g", f.key, *f.v, 1/most, float64(most))
			*f.v = 1
		}
		if f.to != nil && *f.v != 1 {
			*f.to = *f.v
		}
	}
}

// mellumTheta is the rotary base of Mellum's layers without a window.
const mellumTheta = 5e5

// mellumLayers reads which of Mellum's layers have experts; all do unless mlp_layer_types says otherwise.
func mellumLayers(r *settings, c *model.Config) {
	if !r.has("rope_parameters") || r.has("rope_scaling") || r.has("rope_theta") {
		r.problem("rope_parameters must say the rotary positions of this class, without rope_theta and " +
			"rope_scaling: transformers reads no other spelling")
	}
	e := model.Experts{Count: 64, Top: 8, FFN: 896, Renorm: r.flag("norm_topk_prob", true)}
	r.either("num_experts", "num_local_experts", &e.Count)
	r.get("moe_intermediate_size", &e.FFN)
	r.everywhere(c, e)
	if r.listedSparse(c) && !slices.Contains(c.Sparse, true) {
		c.Sparse, c.Experts = nil, model.Experts{}
	}
}

func mellumValues(v map[string]any, _ architecture, c model.Config) {
	e := c.Experts
	v["num_local_experts"], v["num_experts_per_tok"], v["moe_intermediate_size"] = max(e.Count, 1), max(e.Top, 1),
		max(e.FFN, 1)
	v["norm_topk_prob"] = e.Renorm
	sparse := c.Sparse
	if sparse == nil {
		sparse = make([]bool, c.Layers)
	}
	v["mlp_layer_types"] = layerKinds(sparse)
	delete(v, "rope_theta") // transformers knows only the new spelling in this class
	delete(v, "rope_scaling")
}

// ownKeys refuses Hunyuan's settings that transformers ignores.
func ownKeys(r *settings, _ *model.Config) {
	if r.flag("use_cla", false) || !r.flag("use_qk_norm", true) {
		r.problem("use_cla must be false and use_qk_norm true: transformers ignores other settings in this class")
	}
	if n := 0; r.maybe("num_experts", &n) && n == 1 {
		delete(r.values, "num_experts") // so the authors' files say of dense models
	}
}

func embedScale(_ *settings, c *model.Config) { c.EmbedScale = math.Sqrt(float64(c.Width)) }

func queryScale(r *settings, c *model.Config) {
	scalar := 256.0
	if r.get("query_pre_attn_scalar", &scalar); !(scalar > 0) {
		r.problem("query_pre_attn_scalar is %g, must be positive", scalar)
		scalar = 1
	}
	c.QueryScale = math.Pow(scalar, -0.5)
}

// scoreCap and logitCap read soft caps; null means none, absent means the class's default.
func scoreCap(absent float64) feature {
	return func(r *settings, c *model.Config) { c.ScoreCap = r.softCap("attn_logit_softcapping", absent) }
}

func logitCap(absent float64) feature {
	return func(r *settings, c *model.Config) { c.LogitCap = r.softCap("final_logit_softcapping", absent) }
}

func (r *settings) softCap(key string, limit float64) float64 {
	if r.null(key) {
		return 0
	}
	if r.get(key, &limit) && !(limit > 0) {
		r.problem("%s is %g, must be positive, or null for none", key, limit)
	}
	return limit
}

// noScoreCap refuses Gemma 3's key, which transformers stores but does not use.
func noScoreCap(r *settings, _ *model.Config) {
	if r.has("attn_logit_softcapping") {
		r.problem("attn_logit_softcapping: transformers ignores it in this class; set it to null")
	}
}

// sparseLayers reads a mixture of experts: layer i is sparse unless mlp_only_layers
// lists it, if i+1 is a multiple of decoder_sparse_step.
func sparseLayers(absent model.Experts) feature {
	return func(r *settings, c *model.Config) {
		e := absent
		r.either("num_experts", "num_local_experts", &e.Count)
		r.get("num_experts_per_tok", &e.Top)
		r.get("moe_intermediate_size", &e.FFN)
		if absent.Shared > 0 {
			r.get("shared_expert_intermediate_size", &e.Shared)
		}
		e.Renorm = r.flag("norm_topk_prob", absent.Renorm)
		step, dense := 1, []int{}
		r.get("decoder_sparse_step", &step)
		r.maybe("mlp_only_layers", &dense)
		if step < 1 {
			r.problem("decoder_sparse_step is %d, must be at least 1", step)
			step = 1
		}
		layers := make([]bool, min(max(c.Layers, 0), maxLayers))
		for i := range layers {
			layers[i] = e.Count > 0 && (i+1)%step == 0 && !slices.Contains(dense, i)
		}
		if !slices.Contains(layers, true) {
			return // effectively a dense model
		}
		c.Sparse, c.Experts = layers, e
		switch {
		case e.Count > maxExperts || e.FFN > maxFFN || e.Shared > maxFFN:
			r.problem("num_experts %d, moe_intermediate_size %d, shared expert %d: over the limits of %d, %d and %d",
				e.Count, e.FFN, e.Shared, maxExperts, maxFFN, maxFFN)
		case countTrue(layers)*e.Count > maxExpertsInAll:
			r.problem("num_experts is %d in %d layers, over the total limit of %d", e.Count, countTrue(layers),
				maxExpertsInAll)
		case e.Top < 1 || e.Top > e.Count:
			r.problem("num_experts_per_tok is %d of %d experts", e.Top, e.Count)
		case e.FFN < 1:
			r.problem("moe_intermediate_size is %d, must be at least 1", e.FFN)
		case absent.Shared > 0 && e.Shared < 1:
			r.problem("shared_expert_intermediate_size is %d, must be at least 1", e.Shared)
		}
	}
}

// mixtralExperts reads a mixture of experts in every layer, whose width is intermediate_size.
func mixtralExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 8, Top: 2, FFN: c.FFN, Renorm: true, Mixtral: true}
	r.either("num_local_experts", "num_experts", &e.Count)
	r.everywhere(c, e)
}

// miniMaxExperts does so for MiniMax-M2, whose file also says in channels which part of a head is rotated.
func miniMaxExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 256, Top: 8, FFN: c.FFN, Renorm: true, Mixtral: true, Sigmoid: true, Corrected: true}
	r.either("num_local_experts", "num_experts", &e.Count)
	score, shared := "sigmoid", 0
	r.maybe("scoring_func", &score)
	r.maybe("shared_intermediate_size", &shared)
	if score != "sigmoid" || shared != 0 || !r.flag("use_routing_bias", true) || !r.flag("use_qk_norm", true) {
		r.problem("scoring_func must be sigmoid, use_routing_bias and use_qk_norm true, shared_intermediate_size 0: " +
			"transformers ignores other settings in this class")
	}
	if n := 0; r.maybe("rotary_dim", &n) && !r.has("partial_rotary_factor") {
		r.values["partial_rotary_factor"] = compact(float64(n) / float64(max(c.Head, 1)))
	}
	r.everywhere(c, e)
}

// olmoExperts does so for OLMoE and FlexOlmo.
func olmoExperts(count, top int) feature {
	return func(r *settings, c *model.Config) {
		e := model.Experts{Count: count, Top: top, FFN: c.FFN, Renorm: r.flag("norm_topk_prob", false)}
		r.either("num_experts", "num_local_experts", &e.Count)
		r.clipping()
		r.everywhere(c, e)
	}
}

// everywhere gives every layer the experts e, and reads how many compute a token.
func (r *settings) everywhere(c *model.Config, e model.Experts) {
	r.get("num_experts_per_tok", &e.Top)
	layers := min(max(c.Layers, 0), maxLayers)
	switch {
	case e.Count < 1 || e.Count > maxExperts:
		r.problem("there are %d experts, must be from 1 to %d", e.Count, maxExperts)
		return
	case int(layers*e.Count) > maxExpertsInAll:
		r.problem("there are %d experts in %d layers, over the total limit of %d", e.Count, layers, maxExpertsInAll)
	case e.Top < 1 || e.Top > e.Count:
		r.problem("num_experts_per_tok is %d of %d experts", e.Top, e.Count)
	}
	c.Sparse, c.Experts = slices.Repeat([]bool{true}, layers), e
}

// ropeLayers is SmolLM3's: no_rope_layers has 1 for layers with rotary positions, 0 for others.
func ropeLayers(r *settings, c *model.Config) {
	var list []int
	layers := min(max(c.Layers, 0), maxLayers)
	if r.maybe("no_rope_layers", &list) && len(list) != layers {
		r.problem("no_rope_layers has %d entries, num_hidden_layers is %d", len(list), c.Layers)
		return
	}
	without := r.withoutRope()
	none := make([]bool, layers)
	for i := range none {
		none[i] = without(i)
	}
	if slices.Contains(none, true) {
		c.NoRope = none
	}
}

// withoutRope returns which layers no_rope_layers says are without rotary positions; all but every
// no_rope_layer_interval-th have them without it.
func (r *settings) withoutRope() func(layer int) bool {
	var list []int
	interval := 4
	if r.has("no_rope_layers") && json.Unmarshal(r.values["no_rope_layers"], &list) == nil {
		return func(layer int) bool { return layer < len(list) && list[layer] == 0 }
	}
	r.get("no_rope_layer_interval", &interval)
	if interval < 1 {
		r.problem("no_rope_layer_interval is %d, must be at least 1", interval)
		interval = 1
	}
	return func(layer int) bool { return (layer+1)%interval == 0 }
}

// noRopeUnwindowed is EXAONE 4's: where some layers have a window, the others have no rotary
// positions.
func noRopeUnwindowed(r *settings, c *model.Config) {
	if !r.null("sliding_window") {
		noRopeWithoutWindow(r, c)
	}
}

// noRopeWithoutWindow is AFMoE's: layers without a window have no rotary positions.
func noRopeWithoutWindow(_ *settings, c *model.Config) {
	none := make([]bool, min(max(c.Layers, 0), maxLayers))
	for i := range none {
		none[i] = i >= len(c.Windowed) || !c.Windowed[i]
	}
	if slices.Contains(none, true) {
		c.NoRope = none
	}
}

// gemmaGate is Gemma's: old files say gelu and mean its approximation, and some repeat the gate in
// hidden_activation.
func gemmaGate(r *settings, c *model.Config) {
	if other := ""; r.maybe("hidden_activation", &other) && gates()[other] != c.Gate {
		r.problem("hidden_activation is %q, hidden_act another function: transformers 4 and 5 would read different "+
			"models", other)
	}
}

// windowing chooses the layers with a sliding window, of w positions or noWindow.
// layer_types overrides it.
type windowing func(r *settings, w int) (window int, in func(layer int) bool)

const noWindow = math.MinInt

func everyLayer(int) bool { return true }

// windowEverywhere is Mistral's and Phi-3's.
func windowEverywhere(_ *settings, w int) (int, func(int) bool) { return w, everyLayer }

// windowIfUsed is Qwen3-MoE's.
func windowIfUsed(r *settings, w int) (int, func(int) bool) {
	if !r.flag("use_sliding_window", false) {
		w = noWindow
	}
	return w, everyLayer
}

// windowFrom is Qwen2's and Qwen3's: from layer max_window_layers on.
func windowFrom(r *settings, w int) (int, func(int) bool) {
	from := 28
	w, _ = windowIfUsed(r, w)
	if w > 0 {
		r.get("max_window_layers", &from)
	}
	return w, func(layer int) bool { return layer >= from }
}

// windowDisputed is Qwen2-MoE's: transformers 4 and 5 compute it differently unless
// layer_types decides.
func windowDisputed(r *settings, w int) (int, func(int) bool) {
	w, _ = windowIfUsed(r, w)
	if w > 0 && !r.has("layer_types") {
		r.problem("use_sliding_window: transformers 4 and 5 give windows to different layers of this class; list " +
			"them in layer_types")
	}
	return w, everyLayer
}

// windowEven is Gemma 2's.
func windowEven(_ *settings, w int) (int, func(int) bool) {
	return w, func(layer int) bool { return layer%2 == 0 }
}

// windowPattern is Gemma 3's: all but every sixth layer.
func windowPattern(r *settings, w int) (int, func(int) bool) { return windowPatternOf(6)(r, w) }

// windowPatternOf is all layers but every so many, usually absent. With layer_types, the pattern
// may be a text that nothing reads.
func windowPatternOf(absent int) windowing {
	return func(r *settings, w int) (int, func(int) bool) {
		pattern := absent
		if w != noWindow && !(r.has("layer_types") && r.text("sliding_window_pattern")) {
			r.maybe("sliding_window_pattern", &pattern)
		}
		if pattern < 1 {
			r.problem("sliding_window_pattern is %d, must be at least 1", pattern)
			pattern = 1
		}
		return w, func(layer int) bool { return (layer+1)%pattern != 0 }
	}
}

// windowFour is OLMo 3's: all but every fourth layer.
func windowFour(_ *settings, w int) (int, func(int) bool) {
	return w, func(layer int) bool { return (layer+1)%4 != 0 }
}

// windowButFirst is CWM's: all but the first of four layers.
func windowButFirst(r *settings, w int) (int, func(int) bool) {
	if w == 0 {
		w = noWindow
	}
	return w, func(layer int) bool { return layer%4 != 0 }
}

// windowListed is Mellum's: layer_types alone gives windows.
func windowListed(_ *settings, w int) (int, func(int) bool) {
	return w, func(int) bool { return false }
}

// windowLast is dots.llm1's: from layer max_window_layers on.
func windowLast(r *settings, w int) (int, func(int) bool) {
	from := 62
	r.get("max_window_layers", &from)
	return w, func(layer int) bool { return layer >= from }
}

// windowWithoutRope is SmolLM3's: the layers without rotary positions.
func windowWithoutRope(r *settings, w int) (int, func(int) bool) {
	w, _ = windowIfUsed(r, w)
	return w, r.withoutRope()
}

// window reads which layers have a sliding window and its width.
func (r *settings) window(a architecture, c *model.Config) {
	if a.fixed.OutputGate {
		return // layer_types says where attention is linear, see linearLayers
	}
	if a.mixed { // or where Mamba-2 is
		if r.has("sliding_window") {
			r.problem("sliding_window: windows are not supported in this class")
		}
		return
	}
	w, in := noWindow, everyLayer
	if a.windows != nil {
		if w = a.window; w == 0 || r.null("sliding_window") { // 0: the class's default is null
			w = noWindow
		}
		r.maybe("sliding_window", &w)
		w, in = a.windows(r, w)
	}
	if w != noWindow && w < 1 {
		r.problem("sliding_window is %d, must be at least 1, or null for none", w)
	}
	layers := make([]bool, min(max(c.Layers, 0), maxLayers))
	for i := range layers {
		layers[i] = w > 0 && in(i)
	}
	if types := r.layerTypes(len(layers)); types != nil {
		switch {
		case a.layerTypes:
			layers = types
		case !slices.Equal(types, layers):
			r.problem("layer_types: %s has the same attention in all layers", a.class)
		}
	}
	if !slices.Contains(layers, true) {
		return
	}
	if w < 1 {
		r.problem("layer_types has windowed layers, but no sliding_window is in use")
	}
	c.Window, c.Windowed = w, layers
}

// layerTypes returns which layers have a window according to layer_types; nil if that is
// absent or invalid.
func (r *settings) layerTypes(layers int) []bool {
	var types []string
	if !r.maybe("layer_types", &types) {
		return nil
	}
	if len(types) != layers {
		r.problem("layer_types has %d entries, num_hidden_layers is %d", len(types), layers)
		return nil
	}
	windowed := make([]bool, layers)
	for i, t := range types {
		switch t {
		case "full_attention":
		case "sliding_attention":
			windowed[i] = true
		default:
			r.problem("layer_types: layer %d has %q; supported are full_attention and sliding_attention", i, t)
			return nil
		}
	}
	return windowed
}

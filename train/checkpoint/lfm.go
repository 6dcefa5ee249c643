package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// lfms have gated short convolutions (arXiv:2511.23404) in most layers, and attention in the others.
func lfms() []architecture {
	fixed := model.Config{QKNorm: true, Names: model.LFMNames}
	return []architecture{
		{class: "Lfm2ForCausalLM", kind: "lfm2", words: "LFM2: gated short convolutions in most layers",
			fixed: fixed,
			eps:   1e-5, theta: 1e6, positions: 128000, kvHeads: 8, vocab: 65536, heads: 32, tied: true,
			prepare: keysOfLFM,
			mixed:   true, features: []feature{lfmLayers, lfmWidth},
			write: []writer{lfmValues}},
		{class: "Lfm2MoeForCausalLM", kind: "lfm2_moe",
			words: "LFM2-MoE: gated short convolutions in most layers, experts chosen by a Sigmoid and a bias",
			fixed: fixed,
			eps:   1e-5, theta: 1e6, positions: 128000, kvHeads: 8, vocab: 65536, heads: 32, tied: true, experts: true,
			prepare: keysOfLFM,
			mixed:   true, features: []feature{lfmLayers, lfmExperts},
			write: []writer{lfmValues}},
	}
}

// lfmEps is what LFM2-MoE adds to the sum of the weights of a token's experts.
const lfmEps = 1e-6

// convScope is a layer with a convolution in layer_types.
const convScope = "conv"

// keysOfLFM gives keys the names that all classes have. Where a file has both, transformers takes the first.
func keysOfLFM(r *settings) {
	delete(r.values, "rms_norm_eps") // transformers ignores it
	names := map[string]string{"block_ff_dim": "intermediate_size", "tie_embedding": "tie_word_embeddings",
		"norm_eps": "rms_norm_eps"}
	if _, kind := r.classNamed(); kind == "lfm2_moe" {
		delete(names, "block_ff_dim")
	}
	for from, to := range names {
		if v, ok := r.values[from]; ok {
			r.values[to] = v
		}
	}
}

// lfmLayers reads which layers have convolutions, and their width.
func lfmLayers(r *settings, c *model.Config) {
	r.refuseFlags(false, "conv_bias")
	r.refuseFlags(true, "block_use_swiglu", "use_pos_enc")
	r.refuseTexts([2]string{"hidden_act", "silu"})
	for _, key := range []string{"block_dim", "conv_dim", "conv_dim_out"} {
		if n := c.Width; r.maybe(key, &n) && n != c.Width {
			r.problem("%s is %d: transformers takes hidden_size, which is %d", key, n, c.Width)
		}
	}
	convs := r.convolved(c)
	if !slices.Contains(convs, true) {
		return
	}
	c.Linear, c.Delta = convs, kernels.DeltaShape{Values: 1, ValueDim: c.Width, Taps: 3, Conv: true}
	r.sizes(sizeKey{"conv_L_cache", "", &c.Delta.Taps, 1 << 4})
}

// convolved returns which layers have convolutions: layer_types lists them, or full_attn_idxs the others.
func (r *settings) convolved(c *model.Config) []bool {
	var types []string
	var attention []int
	convs := make([]bool, min(max(c.Layers, 0), maxLayers))
	if !r.maybe("layer_types", &types) {
		if !r.maybe("full_attn_idxs", &attention) {
			return nil
		}
		for i := range convs {
			convs[i] = !slices.Contains(attention, i)
		}
		return convs
	}
	if len(types) != len(convs) {
		r.problem("layer_types has %d entries, num_hidden_layers is %d", len(types), c.Layers)
		return nil
	}
	for i, name := range types {
		if convs[i] = name == convScope; !convs[i] && name != fullScope {
			r.problem("layer_types: layer %d is %q; supported are %s and %s", i, name, convScope, fullScope)
			return nil
		}
	}
	return convs
}

// lfmWidth adjusts the width of the feed-forward blocks as transformers does: two thirds of intermediate_size, times
// a factor, up to a whole multiple. A factor that is null leaves out the last two.
func lfmWidth(r *settings, c *model.Config) {
	if !r.flag("block_auto_adjust_ff_dim", true) {
		return
	}
	c.FFN = int(2 * float64(c.FFN) / 3)
	if r.null("block_ffn_dim_multiplier") {
		return
	}
	factor, multiple := 1.0, 256
	r.get("block_ffn_dim_multiplier", &factor)
	r.sizes(sizeKey{"block_multiple_of", "", &multiple, maxFFN})
	wide := factor * float64(c.FFN)
	if !(wide >= 0 && wide <= maxFFN) {
		r.problem("block_ffn_dim_multiplier is %g: feed-forward blocks would have width %g", factor, wide)
		return
	}
	c.FFN = (int(wide) + multiple - 1) / multiple * multiple
}

// lfmExperts reads the experts of all layers but the first.
func lfmExperts(r *settings, c *model.Config) {
	dense := 2
	e := model.Experts{Count: 32, Top: 4, FFN: 1792, Renorm: r.flag("norm_topk_prob", true), Sigmoid: true,
		Corrected: r.flag("use_expert_bias", true), Scale: 1, Eps: lfmEps}
	r.get("num_experts", &e.Count)
	r.get("routed_scaling_factor", &e.Scale)
	r.positive("routed_scaling_factor", e.Scale)
	r.get("num_dense_layers", &dense)
	r.sizes(sizeKey{"moe_intermediate_size", "", &e.FFN, maxFFN})
	if dense < 0 {
		r.problem("num_dense_layers is %d", dense)
	}
	r.everywhere(c, e)
	for i := range min(max(dense, 0), len(c.Sparse)) {
		c.Sparse[i] = false
	}
	if !slices.Contains(c.Sparse, true) {
		c.Sparse, c.Experts = nil, model.Experts{}
	}
}

// stackedOfLFM returns the experts' weights in p [E,Out,In], as a state dict of transformers 5 has them; nil if the
// name is another's.
func (p place) stackedOfLFM(name string) (list []place) {
	const experts = feedForward + "experts."
	prefix, part, ok := strings.Cut(name, experts)
	own := map[string][]string{"gate_up_proj": {"w1", "w3"}, "down_proj": {"w2"}}[part]
	if !ok || own == nil || len(p.Shape) != 3 || p.Shape[0] < 1 || p.Shape[0] > maxExperts || p.Len() == 0 ||
		p.Shape[1]%len(own) != 0 {
		return nil
	}
	n := p.Shape[0] * len(own)
	bytes := p.Bytes() / int64(n)
	for i := range n {
		list = append(list, p.derived(fmt.Sprintf("%s%s%d.%s.weight", prefix, experts, i/len(own), own[i%len(own)]),
			[]int{p.Shape[1] / len(own), p.Shape[2]},
			func(x extent.Extent) extent.Extent { return x.Slice(int64(i)*bytes, bytes) }))
	}
	return list
}

// lfmValues writes LFM2's settings. Programs other than transformers read block_dim, block_ff_dim and conv_dim.
func lfmValues(v map[string]any, a architecture, c model.Config) {
	for _, key := range []string{"rms_norm_eps", "hidden_act", "rope_scaling", "head_dim"} {
		delete(v, key)
	}
	if c.Head*c.Heads != c.Width {
		v["head_dim"] = c.Head
	}
	types, attention := make([]string, c.Layers), []int{}
	for i := range types {
		if types[i] = fullScope; c.Linear != nil && c.Linear[i] {
			types[i] = convScope
		} else {
			attention = append(attention, i)
		}
	}
	v["norm_eps"], v["conv_bias"], v["layer_types"] = number(c.NormEps), false, types
	if c.Linear != nil {
		v["conv_L_cache"] = c.Delta.Taps
	}
	if a.kind == "lfm2" {
		v["full_attn_idxs"], v["block_dim"], v["conv_dim"] = attention, c.Width, c.Width
		v["block_ff_dim"], v["block_auto_adjust_ff_dim"] = c.FFN, false
		v["block_multiple_of"], v["block_ffn_dim_multiplier"] = 256, number(1)
		return
	}
	e, dense := c.Experts, c.Layers
	if c.Sparse != nil {
		dense = slices.Index(c.Sparse, true)
	}
	v["num_dense_layers"] = dense
	if c.Sparse != nil {
		v["num_experts"], v["num_experts_per_tok"], v["moe_intermediate_size"] = e.Count, e.Top, e.FFN
		v["norm_topk_prob"], v["use_expert_bias"] = e.Renorm, e.Corrected
		v["routed_scaling_factor"] = number(cmp.Or(e.Scale, 1))
	}
}

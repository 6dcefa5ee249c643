package checkpoint

import (
	"cmp"
	"math"
	"slices"

	"exp/train/model"
)

// afmoes are AFMoE, of Arcee's Trinity.
func afmoes() []architecture {
	return []architecture{
		{class: "AfmoeForCausalLM", kind: "afmoe",
			words: "AFMoE: norms before and after the blocks, gates of the attention's output, experts chosen by a " +
				"Sigmoid and a bias, some of them shared",
			fixed: model.Config{PostNorms: true, QKNorm: true, Names: model.AfmoeNames, GateMap: true},
			eps:   1e-5, theta: 1e4, positions: 16384, head: 128, window: 1024, vocab: 200192, heads: 16,
			layerTypes: true, experts: true, windows: windowButGlobal,
			features: []feature{attentionBias, noRopeWithoutWindow, mupScale, afmoeExperts},
			write:    []writer{outBias, afmoeValues}},
	}
}

// windowButGlobal is AFMoE's: all layers but every global_attn_every_n_layers-th.
func windowButGlobal(r *settings, w int) (int, func(int) bool) {
	every := 4
	if w == noWindow {
		r.problem("sliding_window is null: transformers needs a number in this class, even if no layer has a window")
	}
	if r.has("layer_types") {
		return w, everyLayer // which layer_types overrides
	}
	if r.get("global_attn_every_n_layers", &every); every < 1 {
		r.problem("global_attn_every_n_layers is %d, must be at least 1", every)
		every = 1
	}
	return w, func(layer int) bool { return (layer+1)%every != 0 }
}

// mupScale reads whether embeddings are multiplied by the root of their width.
func mupScale(r *settings, c *model.Config) {
	if r.flag("mup_enabled", false) {
		embedScale(r, c)
	}
}

// afmoeExperts reads the experts of all layers but the first. transformers always takes the Sigmoid, divides the
// weights by their sum and knows no groups of experts, whatever the file says.
func afmoeExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 64, Top: 6, FFN: 1408, Renorm: true, Sigmoid: true, Corrected: true, Ungated: true,
		Scale: 1}
	shared, dense := 2, 1
	r.refuseTexts([2]string{"score_func", "sigmoid"})
	r.refuseFlags(true, "route_norm")
	for _, key := range []string{"n_group", "topk_group", "num_expert_groups", "num_limited_groups"} {
		if n := 1; r.maybe(key, &n) && n != 1 {
			r.problem("%s is %d: only 1 is supported for this class", key, n)
		}
	}
	r.get("num_experts", &e.Count)
	r.get("num_dense_layers", &dense)
	if r.get("route_scale", &e.Scale); !(e.Scale > 0) {
		r.problem("route_scale is %g, must be positive", e.Scale)
	}
	r.sizes(sizeKey{"moe_intermediate_size", "", &e.FFN, maxFFN},
		sizeKey{"num_shared_experts", "", &shared, maxExperts})
	if dense < 0 {
		r.problem("num_dense_layers is %d, must not be negative", dense)
	}
	r.sharing(&e, shared)
	r.everywhere(c, e)
	for i := range min(max(dense, 0), len(c.Sparse)) {
		c.Sparse[i] = false
	}
	if !slices.Contains(c.Sparse, true) {
		c.Sparse, c.Experts = nil, model.Experts{}
	}
}

// afmoeValues writes AFMoE's settings, with those that only its authors' code and vLLM read.
func afmoeValues(v map[string]any, _ architecture, c model.Config) {
	v["mup_enabled"] = c.EmbedScale == math.Sqrt(float64(c.Width))
	v["score_func"], v["route_norm"], v["n_group"], v["topk_group"] = "sigmoid", true, 1, 1
	v["num_dense_layers"] = c.Layers
	if c.Sparse == nil {
		return
	}
	e := c.Experts
	v["num_dense_layers"] = slices.Index(c.Sparse, true)
	v["num_experts"], v["num_experts_per_tok"], v["moe_intermediate_size"] = e.Count, e.Top, e.FFN
	v["num_shared_experts"], v["route_scale"] = e.Shared/max(e.FFN, 1), number(cmp.Or(e.Scale, 1))
}

package checkpoint

import (
	"encoding/json"
	"slices"

	"exp/train/model"
)

// This file has further families with experts that all tokens share.

// sigmoids choose experts as DeepSeek-V3 does, under settings of their own.
func sigmoids() []architecture {
	return []architecture{
		{class: "SolarOpenForCausalLM", kind: "solar_open",
			words: "Solar Open: experts chosen by a Sigmoid and a bias, one of them shared",
			eps:   1e-5, theta: 1e6, positions: 131072, kvHeads: 8, head: 128, experts: true, noFFN: true,
			features: []feature{inputBias, noDenseLayers,
				routedBySigmoid(model.Experts{Count: 128, Top: 8, FFN: 1280, Renorm: true, Scale: 1}, 0)},
			write: []writer{inBias, deepseekValues}},
		{class: "ExaoneMoeForCausalLM", kind: "exaone_moe",
			words: "K-EXAONE: norms of queries and keys, experts chosen by a Sigmoid and a bias, one of them shared",
			fixed: model.Config{QKNorm: true},
			eps:   1e-5, theta: 1e4, positions: 2048, kvHeads: 32, window: 4096, layerTypes: true, experts: true,
			windows:  windowPatternOf(4),
			features: []feature{noRopeUnwindowed, exaoneExperts},
			write:    []writer{deepseekValues, sharedValues}},
		{class: "HYV3ForCausalLM", kind: "hy_v3",
			words: "Hunyuan 3: norms of queries and keys, experts chosen by a Sigmoid and a bias, one of them shared",
			fixed: model.Config{QKNorm: true},
			eps:   1e-5, theta: 11158840, positions: 131072, kvHeads: 8, head: 128, experts: true,
			features: []feature{attentionBias, feedForwardBias, hunyuanThreeExperts},
			write:    []writer{outBias, deepseekValues, sharedValues}},
		{class: "YoutuForCausalLM", kind: "youtu", words: "Youtu: latent attention",
			eps: 1e-6, theta: 1e4, positions: 131072, head: 64, tied: true, latent: true,
			features: []feature{latentHeads(deepseekLatent())},
			write:    []writer{latentValues}},
	}
}

// noDenseLayers refuses what transformers ignores in Solar Open: all its layers have experts.
func noDenseLayers(r *settings, _ *model.Config) {
	if n := 0; r.maybe("first_k_dense_replace", &n) && n != 0 || r.flag("use_qk_norm", false) {
		r.problem("first_k_dense_replace must be 0 and use_qk_norm false: transformers ignores other settings in " +
			"this class")
	}
}

// underNames copies settings of a class to the keys that deepseekExperts reads.
func (r *settings) underNames(names map[string]string) {
	for own, key := range names {
		if v, ok := r.values[own]; ok {
			r.values[key] = v
		}
	}
}

// exaoneExperts reads K-EXAONE's experts.
func exaoneExperts(r *settings, c *model.Config) {
	r.underNames(map[string]string{"num_shared_experts": "n_shared_experts", "num_experts": "n_routed_experts"})
	routedBySigmoid(model.Experts{Count: 64, Top: 8, FFN: 1024, Renorm: true, Scale: 2.5,
		Names: model.ExaoneNames}, 1)(r, c)
	r.listedSparse(c)
}

// hunyuanThreeExperts reads Hunyuan 3's.
func hunyuanThreeExperts(r *settings, c *model.Config) {
	if groups := 1; r.maybe("n_group", &groups) && groups != 1 || !r.flag("norm_topk_prob", true) {
		r.problem("n_group must be 1 and norm_topk_prob true: transformers ignores other settings in this class")
	}
	r.underNames(map[string]string{"num_shared_experts": "n_shared_experts", "num_experts": "n_routed_experts",
		"router_scaling_factor": "routed_scaling_factor"})
	routedBySigmoid(model.Experts{Count: 192, Top: 8, FFN: 1536, Renorm: true, Scale: 2.826,
		Names: model.HunyuanThree}, 1)(r, c)
	layersByType(r, c)
}

// ernieExperts reads ERNIE 4.5's experts, in every so many layers of a range.
func ernieExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 64, Top: 6, FFN: 1536, Renorm: true, Corrected: true, Ungated: true,
		Names: model.ErnieNames}
	shared, first, last, step, least := 2, 1, -1, 1, 1e-12
	r.either("moe_num_experts", "num_experts", &e.Count)
	r.either("moe_k", "num_experts_per_tok", &e.Top)
	r.get("moe_intermediate_size", &e.FFN)
	r.get("moe_num_shared_experts", &shared)
	r.get("moe_layer_start_index", &first)
	r.get("moe_layer_end_index", &last)
	r.get("moe_layer_interval", &step)
	r.get("moe_norm_min", &least)
	if last == -1 {
		last = c.Layers - 1
	}
	if step < 1 {
		r.problem("moe_layer_interval is %d, must be at least 1", step)
		step = 1
	}
	if least > 1e-12 {
		r.problem("moe_norm_min is %g, over 1e-12: larger bounds of the sum of weights are not supported", least)
	}
	r.sharing(&e, shared)
	r.values["num_experts_per_tok"] = compact(e.Top)
	r.everywhere(c, e)
	for i := range c.Sparse {
		c.Sparse[i] = (i+1)%step == 0 && i >= first && i <= last
	}
	if !slices.Contains(c.Sparse, true) {
		c.Sparse, c.Experts = nil, model.Experts{}
	}
}

// sharing sets the width of experts that all tokens share.
func (r *settings) sharing(e *model.Experts, shared int) {
	if shared < 0 || shared > maxExperts || e.FFN < 1 || e.FFN > maxFFN/max(shared, 1) {
		r.problem("experts have width %d, and %d are shared: together a width from 1 to %d is supported", e.FFN,
			shared, maxFFN)
		return
	}
	e.Shared = int(e.FFN * shared)
}

// hunyuanExperts reads Hunyuan's experts, in every layer. Some settings may be lists, of equal numbers.
func hunyuanExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 1, Top: 1, FFN: c.FFN, Shared: c.FFN, Renorm: true, Ungated: true,
		Names: model.HunyuanNames}
	shared, width, skipped := 1, c.FFN, 0
	r.agree("num_experts", "num_local_experts")
	r.agree("moe_topk", "num_experts_per_tok")
	r.alike(c, "num_experts", &e.Count)
	r.alike(c, "moe_topk", &e.Top)
	r.alike(c, "num_shared_expert", &shared)
	r.alike(c, "moe_intermediate_size", &width)
	r.maybe("moe_layer_num_skipped", &skipped)
	if shared != 1 || width != c.FFN || skipped != 0 || !r.flag("use_mixed_mlp_moe", true) {
		r.problem("num_shared_expert must be 1, moe_intermediate_size intermediate_size, moe_layer_num_skipped 0 " +
			"and use_mixed_mlp_moe true: transformers ignores other settings in this class")
	}
	r.values["num_experts_per_tok"] = compact(e.Top)
	r.everywhere(c, e)
}

// alike reads a number, or a list of one for each layer, which must be equal.
func (r *settings) alike(c *model.Config, key string, v *int) {
	var list []int
	if !r.has(key) {
		return
	}
	if json.Unmarshal(r.values[key], &list) != nil {
		r.get(key, v)
		return
	}
	if len(list) < c.Layers || len(slices.Compact(list)) != 1 {
		r.problem("%s must be one number for all layers, or a list of equal ones", key)
		return
	}
	*v = list[0]
}

// sharedValues writes such experts.
func sharedValues(v map[string]any, a architecture, c model.Config) {
	e := c.Experts
	first, last := slices.Index(c.Sparse, true), 0
	for i, sparse := range c.Sparse {
		if sparse {
			last = i
		}
	}
	switch a.kind {
	case "ernie4_5_moe":
		v["moe_num_experts"], v["moe_k"], v["moe_intermediate_size"] = e.Count, e.Top, e.FFN
		v["moe_num_shared_experts"] = e.Shared / max(e.FFN, 1)
		v["moe_layer_start_index"], v["moe_layer_end_index"] = first, last
		v["moe_layer_interval"] = interval(c.Sparse, first, last)
	case "hunyuan_v1_moe":
		v["num_experts"], v["moe_topk"], v["num_experts_per_tok"] = e.Count, e.Top, e.Top
		v["use_qk_norm"], v["use_cla"] = true, false
	case "exaone_moe", "hy_v3":
		v["num_experts"], v["num_shared_experts"] = e.Count, e.Shared/max(e.FFN, 1)
		v["mlp_layer_types"] = layerKinds(c.Sparse)
		if a.kind == "hy_v3" {
			v["router_scaling_factor"] = number(e.Scale)
		}
	}
}

// interval returns the distance of sparse layers that begin and end so.
func interval(sparse []bool, first, last int) int {
	if first < 0 || first == last {
		return max(first+1, 1)
	}
	return slices.Index(sparse[first+1:], true) + 1
}

// layerKinds lists which layers are sparse.
func layerKinds(sparse []bool) []string {
	types := make([]string, len(sparse))
	for i, s := range sparse {
		types[i] = map[bool]string{true: "sparse", false: "dense"}[s]
	}
	return types
}

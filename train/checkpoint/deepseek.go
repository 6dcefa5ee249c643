package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"exp/train/model"
)

// deepseeks have DeepSeek's experts (arXiv:2405.04434, arXiv:2412.19437): some in all layers but the first few are
// shared, without gates; and most have latent attention.
func deepseeks() []architecture {
	v3 := model.Experts{Count: 256, Top: 8, FFN: 2048, Renorm: true, Scale: 2.5, Groups: 8, TopGroups: 4}
	deepseek := deepseekLatent()
	flash := model.Latent{Rank: 512, QueryRank: 768, Nope: 192, Rope: 64, Value: 256}
	lite := model.Experts{Count: 64, Top: 4, FFN: 1536, Renorm: true, Scale: 1.8}
	return []architecture{
		{class: "Glm4MoeForCausalLM", kind: "glm4_moe",
			words: "GLM-4.5: experts chosen by a Sigmoid and a bias, one of them shared",
			eps:   1e-5, theta: 1e4, positions: 131072, kvHeads: 8, vocab: 151552, heads: 96, partial: true, part: 0.5,
			experts: true,
			features: []feature{inputBias, optionalQKNorm,
				routedBySigmoid(model.Experts{Count: 128, Top: 8, FFN: 1408, Renorm: true, Scale: 1}, 1)},
			write: []writer{inBias, usesQKNorm, deepseekValues}},
		{class: "Dots1ForCausalLM", kind: "dots1",
			words: "dots.llm1: norms of queries and keys, experts chosen by a Sigmoid and a bias, some of them shared",
			fixed: model.Config{QKNorm: true},
			eps:   1e-6, theta: 1e4, positions: 2048, kvHeads: 32, window: 4096, layerTypes: true, experts: true,
			windows: windowLast,
			features: []feature{attentionBias, ignoredScoring,
				routedBySigmoid(model.Experts{FFN: 1408, Scale: 1}, 0)},
			write: []writer{outBias, deepseekValues}},
		{class: "DeepseekV3ForCausalLM", kind: "deepseek_v3",
			words: "DeepSeek-V3: latent attention, experts chosen by a Sigmoid and a bias, some of them shared",
			eps:   1e-6, theta: 1e4, positions: 4096, head: 64, vocab: 129280, heads: 128, experts: true, latent: true,
			features: []feature{latentHeads(deepseek), routedBySigmoid(v3, 3)},
			write:    []writer{latentValues, deepseekValues}},
		{class: "Glm4MoeLiteForCausalLM", kind: "glm4_moe_lite",
			words: "GLM-4.7 Flash: latent attention, experts chosen by a Sigmoid and a bias, one of them shared",
			eps:   1e-5, theta: 1e4, positions: 202752, head: 64, vocab: 154880, heads: 20, experts: true,
			latent:   true,
			features: []feature{latentHeads(flash), routedBySigmoid(lite, 1), layersByType},
			write:    []writer{latentValues, deepseekValues}},
		{class: "DeepseekForCausalLM", kind: "deepseek", words: "DeepSeek MoE: experts, some of them shared",
			eps: 1e-6, theta: 1e4, positions: 2048, vocab: 102400, heads: 32, experts: true,
			features: []feature{attentionBias, routedFirst},
			write:    []writer{outBias, deepseekValues}},
		{class: "DeepseekV2ForCausalLM", kind: "deepseek_v2",
			words: "DeepSeek-V2: latent attention, experts, some of them shared",
			eps:   1e-6, theta: 1e4, positions: 2048, head: 64, vocab: 102400, heads: 32, experts: true, latent: true,
			features: []feature{latentHeads(deepseek), routedBySoftmax},
			write:    []writer{latentValues, deepseekValues}},
	}
}

func deepseekLatent() model.Latent {
	return model.Latent{Rank: 512, QueryRank: 1536, Nope: 128, Rope: 64, Value: 128}
}

// latentHeads reads latent attention.
func latentHeads(absent model.Latent) feature {
	return func(r *settings, c *model.Config) {
		x := absent
		x.NormEps = 1e-6 // whatever rms_norm_eps says, as in transformers
		x.Interleaved = r.flag("rope_interleave", true)
		for _, d := range []struct {
			key string
			v   *int
		}{{"kv_lora_rank", &x.Rank}, {"qk_nope_head_dim", &x.Nope}, {"qk_rope_head_dim", &x.Rope},
			{"v_head_dim", &x.Value}} {
			if r.get(d.key, d.v); *d.v < 1 || *d.v > 1<<14 {
				r.problem("%s is %d, must be from 1 to %d", d.key, *d.v, 1<<14)
				*d.v = 2
			}
		}
		if r.null("q_lora_rank") {
			x.QueryRank = 0
		} else if r.get("q_lora_rank", &x.QueryRank); x.QueryRank < 1 || x.QueryRank > 1<<16 {
			r.problem("q_lora_rank is %d, must be from 1 to %d, or null for one map", x.QueryRank, 1<<16)
			x.QueryRank = 0
		}
		if r.flag("attention_bias", false) {
			r.problem("attention_bias: latent attention with biases is not supported")
		}
		if x.Nope+x.Rope > maxHead {
			r.problem("qk_nope_head_dim %d and qk_rope_head_dim %d are together over the limit of %d", x.Nope, x.Rope,
				maxHead)
		}
		if c.KVHeads != c.Heads {
			r.problem("num_key_value_heads is %d: each of the %d heads of latent attention has keys of its own",
				c.KVHeads, c.Heads)
		}
		c.Latent, c.KVHeads, c.Head, c.Rotary = x, c.Heads, x.Nope+x.Rope, x.Rope
	}
}

// latentValues writes latent attention.
func latentValues(v map[string]any, _ architecture, c model.Config) {
	x := c.Latent
	v["kv_lora_rank"], v["q_lora_rank"], v["v_head_dim"] = x.Rank, nil, x.Value
	if x.QueryRank > 0 {
		v["q_lora_rank"] = x.QueryRank
	}
	v["qk_nope_head_dim"], v["qk_rope_head_dim"], v["rope_interleave"] = x.Nope, x.Rope, x.Interleaved
	v["head_dim"], v["attention_bias"] = x.Rope, false
}

// mscales returns yarn's two settings that make the scale of latent attention's scores and, for programs that do not
// read attention_factor, the factor of cos and sin.
func mscales(c model.Config) map[string]any {
	log := 0.1 * math.Log(c.Rope.Factor)
	guess := (math.Sqrt(c.QueryScale*math.Sqrt(float64(c.Head))) - 1) / log
	all := inverse(c.QueryScale, func(all float64) float64 { return latentScale(c.Head, c.Rope.Factor, all) }, guess)
	return map[string]any{"mscale_all_dim": number(all), "mscale": number((c.Rope.Attention*(log*all+1) - 1) / log)}
}

// latentScale is the scale of the scores of latent attention with heads of so many channels and yarn.
func latentScale(head int, factor, all float64) float64 {
	m := float64(0.1*all*math.Log(factor)) + 1
	return float64(1/math.Sqrt(float64(head))*m) * m
}

// inputBias is GLM's: q, k and v have biases, or none has.
func inputBias(r *settings, c *model.Config) { c.QKVBias = r.flag("attention_bias", false) }

// inputBiasUnlessFalse is the same for older GLM.
func inputBiasUnlessFalse(r *settings, c *model.Config) { c.QKVBias = r.flag("attention_bias", true) }

// optionalQKNorm is GLM's.
func optionalQKNorm(r *settings, c *model.Config) { c.QKNorm = r.flag("use_qk_norm", false) }

// deepseekExperts reads the mixture of experts of all layers but the first few.
func (r *settings) deepseekExperts(c *model.Config, e model.Experts, shared, dense int) {
	r.either("n_routed_experts", "num_local_experts", &e.Count)
	r.get("moe_intermediate_size", &e.FFN)
	r.get("n_shared_experts", &shared)
	r.get("first_k_dense_replace", &dense)
	r.get("routed_scaling_factor", &e.Scale)
	e.Groups, e.TopGroups = max(e.Groups, 1), max(e.TopGroups, 1)
	r.maybe("n_group", &e.Groups)
	r.maybe("topk_group", &e.TopGroups)
	if shared < 0 || shared > maxExperts || e.FFN < 1 || e.FFN > maxFFN/max(shared, 1) {
		r.problem("moe_intermediate_size is %d and n_shared_experts %d: together a width from 1 to %d is supported",
			e.FFN, shared, maxFFN)
		shared = 0
	}
	if !(e.Scale > 0) {
		r.problem("routed_scaling_factor is %g, must be positive", e.Scale)
	}
	if step := 1; r.get("moe_layer_freq", &step) && step != 1 {
		r.problem("moe_layer_freq is %d: only experts in every layer after the first ones are supported", step)
	}
	e.Ungated, e.Shared = true, int(e.FFN*shared)
	r.everywhere(c, e)
	for i := range min(max(dense, 0), len(c.Sparse)) {
		c.Sparse[i] = false
	}
	if c.Experts.Groups == 1 && c.Experts.TopGroups == 1 {
		c.Experts.Groups, c.Experts.TopGroups = 0, 0
	}
}

// routedBySigmoid reads DeepSeek-V3's experts.
func routedBySigmoid(absent model.Experts, dense int) feature {
	return func(r *settings, c *model.Config) {
		e := absent
		e.Sigmoid, e.Corrected, e.Renorm = true, true, r.flag("norm_topk_prob", absent.Renorm)
		for key, want := range map[string]string{"topk_method": "noaux_tc", "scoring_func": "sigmoid"} {
			if got := want; r.maybe(key, &got) && got != want {
				r.problem("%s is %q: only %q is supported for this class", key, got, want)
			}
		}
		r.deepseekExperts(c, e, 1, dense)
	}
}

// ignoredScoring forgets keys that transformers ignores in dots.llm1, whose files say noaux_tc for scoring_func.
func ignoredScoring(r *settings, _ *model.Config) {
	for _, key := range []string{"scoring_func", "topk_method"} {
		delete(r.values, key)
	}
}

// routedBySoftmax reads DeepSeek-V2's experts.
func routedBySoftmax(r *settings, c *model.Config) {
	method := "greedy"
	r.agree("n_routed_experts", "num_experts")
	r.maybe("topk_method", &method)
	if score := "softmax"; r.maybe("scoring_func", &score) && score != "softmax" {
		r.problem("scoring_func is %q: only %q is supported for this class", score, "softmax")
	}
	if !r.flag("rope_interleave", true) || r.flag("mlp_bias", false) {
		r.problem("rope_interleave must be true and mlp_bias false: other settings are not supported for this class")
	}
	if r.flag("norm_topk_prob", false) {
		r.problem("norm_topk_prob is true: transformers ignores it in this class, its authors' code does not")
	}
	r.deepseekExperts(c, model.Experts{Count: 64, FFN: 1407, Scale: 1}, 2, 0)
	switch method {
	case "greedy":
		c.Experts.Groups, c.Experts.TopGroups = 0, 0
	case "group_limited_greedy":
	default:
		r.problem("topk_method is %q; supported are greedy and group_limited_greedy", method)
	}
}

// routedFirst reads the experts of the first DeepSeek MoE (arXiv:2401.06066), whose weights may be divided by their
// sum.
func routedFirst(r *settings, c *model.Config) {
	if score := "softmax"; r.maybe("scoring_func", &score) && score != "softmax" {
		r.problem("scoring_func is %q: only %q is supported for this class", score, "softmax")
	}
	if r.has("routed_scaling_factor") || r.has("n_group") || r.has("topk_group") {
		r.problem("routed_scaling_factor, n_group and topk_group are not settings of this class")
	}
	e := model.Experts{FFN: 1407, Scale: 1, Renorm: r.flag("norm_topk_prob", false)}
	r.deepseekExperts(c, e, 0, 0)
}

// layersByType is GLM-4.7 Flash's: mlp_layer_types says which layers have experts.
func layersByType(r *settings, c *model.Config) {
	if r.listedSparse(c) {
		return
	}
	if dense := 1; r.maybe("first_k_dense_replace", &dense) && dense != 1 {
		r.problem("first_k_dense_replace is %d: transformers ignores it in this class; list the layers in "+
			"mlp_layer_types", dense)
	}
}

// listedSparse reads mlp_layer_types, and reports whether it is there.
func (r *settings) listedSparse(c *model.Config) bool {
	var types []string
	if !r.maybe("mlp_layer_types", &types) {
		return false
	}
	if len(types) != len(c.Sparse) {
		r.problem("mlp_layer_types has %d entries, num_hidden_layers is %d", len(types), c.Layers)
		return true
	}
	for i, t := range types {
		c.Sparse[i] = t == "sparse"
		if t != "sparse" && t != "dense" {
			r.problem("mlp_layer_types: layer %d has %q; supported are dense and sparse", i, t)
		}
	}
	return true
}

// deepseekValues writes such experts.
func deepseekValues(v map[string]any, a architecture, c model.Config) {
	e := c.Experts
	v["n_routed_experts"], v["num_experts_per_tok"], v["moe_intermediate_size"] = e.Count, e.Top, e.FFN
	v["n_shared_experts"], v["norm_topk_prob"] = e.Shared/max(e.FFN, 1), e.Renorm
	v["routed_scaling_factor"] = number(e.Scale)
	v["n_group"], v["topk_group"] = max(e.Groups, 1), max(e.TopGroups, 1)
	dense := 0
	for dense < len(c.Sparse) && !c.Sparse[dense] {
		dense++
	}
	v["first_k_dense_replace"] = dense
	if e.Corrected {
		v[furtherKey] = 0 // the classes' default is 1
	}
	switch a.kind {
	case "deepseek_v3":
		v["topk_method"], v["scoring_func"] = "noaux_tc", "sigmoid"
	case "deepseek":
		v["scoring_func"] = "softmax"
		delete(v, "routed_scaling_factor")
		delete(v, "n_group")
		delete(v, "topk_group")
	case "deepseek_v2":
		v["topk_method"] = "greedy"
		if e.Groups > 0 {
			v["topk_method"] = "group_limited_greedy"
		}
	case "glm4_moe_lite":
		v["mlp_layer_types"] = layerKinds(c.Sparse)
	}
}

// furtherLayers reports whether a tensor belongs to layers after the model's own, which predict further tokens:
// published folders of such models have them, and transformers ignores them, too.
func furtherLayers(c model.Config, name string) bool {
	if strings.HasPrefix(name, "mtp.") || strings.HasPrefix(name, "model.mtp_") {
		return true
	}
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, _, more := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	return c.Experts.Corrected && ok && more && err == nil && n >= c.Layers
}

// furtherKey is the number of such layers.
const furtherKey = "num_nextn_predict_layers"

// withoutFurtherLayers returns a config.json that says so of weights without them.
func withoutFurtherLayers(raw []byte) ([]byte, error) {
	r := settings{}
	if err := json.Unmarshal(raw, &r.values); err != nil || !r.has(furtherKey) {
		return raw, err
	}
	return setKeys(raw, map[string]any{furtherKey: 0})
}

// nextTokenNote says that such layers are left out.
func (r *settings) nextTokenNote() []string {
	if n := 0; r.maybe(furtherKey, &n) && n > 0 {
		return []string{fmt.Sprintf("%s is %d: the layers that predict further tokens are left out", furtherKey, n)}
	}
	return nil
}

package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
	"exp/train/pyjson"
)

// hybrids have layers with Mamba-2 (arXiv:2405.21060) between those with attention.
func hybrids() []architecture {
	names := func(n model.LayerNames) model.Config { return model.Config{Names: n} }
	nemotron := names(model.NemotronNames)
	nemotron.Gate = kernels.ReLU2
	return []architecture{
		{class: "NemotronHForCausalLM", kind: "nemotron_h",
			words: "Nemotron-H: layers with Mamba-2, attention or a feed-forward block alone",
			fixed: nemotron,
			eps:   1e-5, theta: 1e4, positions: 4096, kvHeads: 8, head: 128, vocab: 131072, heads: 32, experts: true,
			activation: "mlp_hidden_act", gate: relu2, prepare: layersOfPattern,
			mixed: true, features: []feature{nemotronLayers},
			write: []writer{nemotronValues}},
		{class: "GraniteMoeHybridForCausalLM", kind: "granitemoehybrid",
			words: "Granite 4: multipliers, Mamba-2 in most layers of most models, experts with a shared one in some",
			fixed: names(model.GraniteNames),
			eps:   1e-6, theta: 1e4, positions: 2048, experts: true,
			mixed: true, features: []feature{attentionBias, multipliers, graniteLayers},
			write: []writer{hybridValues}},
		{class: "GraniteMoeForCausalLM", kind: "granitemoe", words: "Granite MoE: multipliers, experts",
			fixed: names(model.GraniteNames),
			eps:   1e-6, theta: 1e4, positions: 2048, experts: true,
			mixed: true, features: []feature{attentionBias, multipliers, graniteExperts},
			write: []writer{hybridValues}},
		{class: "GraniteMoeSharedForCausalLM", kind: "granitemoeshared",
			words: "Granite MoE: multipliers, experts, one of them shared",
			fixed: names(model.GraniteNames),
			eps:   1e-6, theta: 1e4, positions: 2048, experts: true,
			mixed: true, features: []feature{attentionBias, multipliers, graniteSharedExperts},
			write: []writer{hybridValues}},
		{class: "BambaForCausalLM", kind: "bamba", words: "Bamba: Mamba-2 in most layers",
			fixed: names(model.BambaNames),
			eps:   1e-5, theta: 1e4, positions: 262144, kvHeads: 8, partial: true, part: halfRotated,
			prepare: onlyHalfRotated,
			mixed:   true, features: []feature{attentionBias, feedForwardBias, bambaLayers},
			write: []writer{hybridValues}},
	}
}

// relu2 is config.json's name of the activation of Nemotron-H and Arcee.
const relu2 = "relu2"

// sizeKey is a key of config.json for a size, its other name if it has one, and its greatest value.
type sizeKey struct {
	key, other string
	v          *int
	limit      int
}

// sizes reads sizes of Mamba-2 layers.
func (r *settings) sizes(list ...sizeKey) {
	for _, x := range list {
		if x.other != "" && r.has(x.other) {
			x.key = x.other
		}
		if r.get(x.key, x.v); *x.v < 1 || *x.v > x.limit {
			r.problem("%s is %d, must be from 1 to %d", x.key, *x.v, x.limit)
			*x.v = 1
		}
	}
}

const maxState = 1 << 12 // channels of a head of Mamba-2, and of its state

// scan gives c the Mamba-2 layers of a list.
func (r *settings) scan(c *model.Config, layers []bool, d kernels.DeltaShape) {
	if !slices.Contains(layers, true) {
		return
	}
	d.Scan = true
	if d.Values%max(d.Keys, 1) != 0 {
		r.problem("the Mamba-2 layers have %d heads, which is not a multiple of their %d groups", d.Values, d.Keys)
		d.Keys = d.Values
	}
	c.Linear, c.Delta = layers, d
}

// refuseFlags refuses keys that are not the only value supported.
func (r *settings) refuseFlags(want bool, keys ...string) {
	for _, key := range keys {
		if r.flag(key, want) != want {
			r.problem("%s is %v: only %v is supported for this class", key, !want, want)
		}
	}
}

// refuseTexts refuses keys that are not the only text supported.
func (r *settings) refuseTexts(pairs ...[2]string) {
	for _, p := range pairs {
		if got := p[1]; r.maybe(p[0], &got) && got != p[1] {
			r.problem("%s is %q: only %q is supported for this class", p[0], got, p[1])
		}
	}
}

// timeSteps reads the limits of the time steps of Mamba-2; the upper one is 0 for none.
func (r *settings) timeSteps() (low, high float64) {
	const key = "time_step_limit"
	var list []json.RawMessage
	if !r.maybe(key, &list) {
		return 0, 0
	}
	if len(list) != 2 {
		r.problem("%s is %s, must have two numbers", key, shortened(r.values[key]))
		return 0, 0
	}
	var limits [2]float64
	for i, raw := range list {
		var tagged struct {
			Float string `json:"__float__"` // transformers' infinity
		}
		switch {
		case string(raw) == pyjson.Infinity, json.Unmarshal(raw, &tagged) == nil && tagged.Float == "Infinity":
			limits[i] = math.Inf(1)
		case json.Unmarshal(raw, &limits[i]) != nil:
			limits[i] = -1
		}
	}
	if limits[1] = cmp.Or(limits[1], -1); limits[0] < 0 || limits[1] < limits[0] || math.IsInf(limits[0], 1) {
		r.problem("%s is %s, must be two numbers in order", key, shortened(r.values[key]))
		return 0, 0
	}
	if math.IsInf(limits[1], 1) {
		limits[1] = 0
	}
	return limits[0], limits[1]
}

// Types of layers as transformers names them, and their old names and letters.
const (
	denseScope = "mlp"
	moeScope   = "moe"
)

// scopeOf returns the type of a layer by any of its names; "" for an unknown one.
func scopeOf(name string) string {
	switch name {
	case linearScope, "mamba", "M":
		return linearScope
	case fullScope, "attention", "*":
		return fullScope
	case denseScope, "-":
		return denseScope
	case moeScope, "E":
		return moeScope
	}
	return ""
}

// layerScopes returns the types of all layers by the first of the keys that is there; nil if none is.
func (r *settings) layerScopes(keys ...string) (list []string) {
	for _, key := range keys {
		var names []string
		if text := ""; r.text(key) && r.maybe(key, &text) {
			names = strings.Split(text, "")
		} else if !r.maybe(key, &names) {
			continue
		}
		for i, name := range names {
			list = append(list, scopeOf(name))
			if list[i] == "" {
				r.problem("%s: layer %d is %q; supported are M or mamba, * or attention, - or mlp, E or moe",
					key, i, name)
				list[i] = denseScope
			}
		}
		return list
	}
	return nil
}

// nemotronScopes are the types of Nemotron-H's layers.
func (r *settings) nemotronScopes() []string {
	return r.layerScopes("layers_block_type", "layer_types", "hybrid_override_pattern")
}

// layersOfPattern counts the layers of Nemotron-H by their list, which transformers does, too, and drops rotary
// positions: its attention has none.
func layersOfPattern(r *settings) {
	if list := r.nemotronScopes(); list != nil {
		r.values["num_hidden_layers"] = compact(len(list))
	} else {
		r.problem("hybrid_override_pattern, or layers_block_type, is missing")
	}
	for _, key := range []string{"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"} {
		delete(r.values, key)
	}
	// Old names, which take precedence in transformers.
	r.underNames(map[string]string{"mamba_dt_min": "time_step_min", "mamba_dt_limit": "time_step_limit",
		"mamba_conv_bias": "use_conv_bias"})
}

// nemotronLayers reads the layers of Nemotron-H. Its lower limit of time steps is time_step_min, as in transformers.
func nemotronLayers(r *settings, c *model.Config) {
	c.NormEps = 1e-5
	r.get("layer_norm_epsilon", &c.NormEps)
	r.refuseFlags(true, "use_conv_bias")
	r.refuseFlags(false, "use_bias", "mamba_proj_bias", "mlp_bias", "attention_bias")
	r.refuseTexts([2]string{"mamba_hidden_act", "silu"})
	if n := c.Head; r.maybe("attention_head_dim", &n) && n != c.Head {
		r.problem("attention_head_dim is %d: transformers reads head_dim, which is %d", n, c.Head)
	}
	if r.has("moe_latent_size") {
		r.problem("moe_latent_size: experts on latent vectors are not supported")
	}
	scopes := r.nemotronScopes()
	is := func(kinds ...string) []bool {
		list := make([]bool, len(scopes))
		for i, s := range scopes {
			list[i] = slices.Contains(kinds, s)
		}
		return list
	}
	c.NoRope = slices.Repeat([]bool{true}, len(scopes))
	c.NoMixer, c.NoFFN = is(denseScope, moeScope), is(linearScope, fullScope)
	d := kernels.DeltaShape{Keys: 8, Values: 128, KeyDim: 128, ValueDim: 64, Taps: 4, Low: 0.001}
	r.sizes(sizeKey{"n_groups", "mamba_n_groups", &d.Keys, maxHeads},
		sizeKey{"mamba_num_heads", "", &d.Values, maxHeads},
		sizeKey{"ssm_state_size", "", &d.KeyDim, maxState}, sizeKey{"mamba_head_dim", "", &d.ValueDim, maxState},
		sizeKey{"conv_kernel", "mamba_d_conv", &d.Taps, 1 << 4})
	r.get("time_step_min", &d.Low)
	if low, high := r.timeSteps(); low > d.Low || high > 0 {
		r.problem("time_step_limit is %s: transformers ignores it in this class",
			shortened(r.values["time_step_limit"]))
	}
	r.scan(c, is(linearScope), d)
	if !slices.Contains(scopes, moeScope) {
		return
	}
	e := model.Experts{Count: 8, Top: 2, FFN: 7688, Shared: 7688, Renorm: r.flag("norm_topk_prob", true),
		Sigmoid: true, Corrected: true, Ungated: true, Scale: 1, Groups: 1, TopGroups: 1}
	r.either("n_routed_experts", "num_local_experts", &e.Count)
	r.get("routed_scaling_factor", &e.Scale)
	r.positive("routed_scaling_factor", e.Scale)
	r.get("n_group", &e.Groups)
	r.get("topk_group", &e.TopGroups)
	r.sizes(sizeKey{"moe_intermediate_size", "", &e.FFN, maxFFN},
		sizeKey{"moe_shared_expert_intermediate_size", "", &e.Shared, maxFFN})
	if e.Groups == 1 && e.TopGroups == 1 {
		e.Groups, e.TopGroups = 0, 0
	}
	r.everywhere(c, e)
	if c.Sparse != nil {
		c.Sparse = is(moeScope)
	}
}

// expanded returns the channels of Mamba-2's heads in Granite and Bamba, and says where they come from.
func (r *settings) expanded(c *model.Config) (width float64, words string) {
	expand := 2.0
	r.get("mamba_expand", &expand)
	return expand * float64(c.Width), fmt.Sprintf("mamba_expand %g times hidden_size %d", expand, c.Width)
}

// headsOfMamba reads the Mamba-2 layers of Granite, Bamba and Falcon-H1, whose heads have so many channels together.
func (r *settings) headsOfMamba(c *model.Config, layers []bool, width float64, words string) {
	r.refuseFlags(true, "mamba_conv_bias")
	r.refuseFlags(false, "mamba_proj_bias")
	if slices.Contains(layers, true) {
		r.siluConvolutions(c)
	}
	d := kernels.DeltaShape{Keys: 1, Values: 128, KeyDim: 256, Taps: 4}
	auto := ""
	r.sizes(sizeKey{"mamba_n_groups", "", &d.Keys, maxHeads}, sizeKey{"mamba_n_heads", "", &d.Values, maxHeads},
		sizeKey{"mamba_d_state", "", &d.KeyDim, maxState}, sizeKey{"mamba_d_conv", "", &d.Taps, 1 << 4})
	d.ValueDim = int(width) / d.Values
	if r.text("mamba_d_head") {
		r.refuseTexts([2]string{"mamba_d_head", "auto"})
		r.maybe("mamba_d_head", &auto)
	} else {
		r.get("mamba_d_head", &d.ValueDim)
	}
	if d.ValueDim < 1 || d.ValueDim > maxState || float64(d.ValueDim*d.Values) != width {
		r.problem("mamba_d_head %d times mamba_n_heads %d must be %s", d.ValueDim, d.Values, words)
		d.ValueDim = 1
	}
	d.Low, d.High = r.timeSteps()
	r.scan(c, layers, d)
}

// graniteLayers reads the layers of Granite 4, whose feed-forward blocks have the width of a shared expert.
func graniteLayers(r *settings, c *model.Config) {
	r.refuseTexts([2]string{"normalization_function", "rmsnorm"})
	position := ""
	if r.maybe("position_embedding_type", &position); position != "rope" {
		if position != "" && position != "nope" {
			r.problem("position_embedding_type is %q; supported are rope and nope", position)
		}
		c.NoRope = slices.Repeat([]bool{true}, min(max(c.Layers, 0), maxLayers))
	}
	shared, count := 1024, 8
	r.sizes(sizeKey{"shared_intermediate_size", "", &shared, maxFFN})
	if r.get("num_local_experts", &count); count > 0 {
		r.everywhere(c, model.Experts{Count: count, Top: 2, FFN: c.FFN, Shared: shared, Renorm: true, Ungated: true})
	}
	c.FFN = shared
	scopes := r.layerScopes("layer_types", "layers_block_type")
	linear := slices.Repeat([]bool{scopes == nil}, min(max(c.Layers, 0), maxLayers))
	if scopes != nil && len(scopes) != len(linear) {
		r.problem("layer_types has %d entries, num_hidden_layers is %d", len(scopes), c.Layers)
		return
	}
	for i, s := range scopes {
		if linear[i] = s == linearScope; s != linearScope && s != fullScope {
			r.problem("layer_types: layer %d is %q; supported are mamba and attention", i, s)
		}
	}
	width, words := r.expanded(c)
	r.headsOfMamba(c, linear, width, words)
}

// graniteExperts reads the experts of Granite 3, which every layer has.
func graniteExperts(r *settings, c *model.Config) {
	e := model.Experts{Count: 8, Top: 2, FFN: c.FFN, Renorm: true}
	r.get("num_local_experts", &e.Count)
	r.everywhere(c, e)
}

// graniteSharedExperts is graniteExperts where one more is shared.
func graniteSharedExperts(r *settings, c *model.Config) {
	graniteExperts(r, c)
	shared := 1024
	r.sizes(sizeKey{"shared_intermediate_size", "", &shared, maxFFN})
	c.FFN, c.Experts.Shared, c.Experts.Ungated = shared, shared, true
}

// halfRotated is the part of a head that Bamba's attention rotates, whatever the file says.
const halfRotated = 0.5

// onlyHalfRotated refuses files that say something else.
func onlyHalfRotated(r *settings) {
	for _, in := range []*settings{r, r.inner("rope_parameters")} {
		if part := halfRotated; in != nil && in.maybe("partial_rotary_factor", &part) && part != halfRotated {
			r.problem("partial_rotary_factor is %g: transformers takes %g in this class", part, halfRotated)
		}
	}
}

// bambaLayers reads the layers of Bamba.
func bambaLayers(r *settings, c *model.Config) {
	var attention []int
	r.maybe("attn_layer_indices", &attention)
	linear := slices.Repeat([]bool{true}, min(max(c.Layers, 0), maxLayers))
	for _, l := range attention {
		if l < 0 || l >= len(linear) {
			r.problem("attn_layer_indices has layer %d of %d", l, len(linear))
			continue
		}
		linear[l] = false
	}
	if n := c.Head / 2; r.maybe("attn_rotary_emb", &n) && n != c.Head/2 {
		r.problem("attn_rotary_emb is %d: transformers rotates half of the %d channels of a head", n, c.Head)
	}
	width, words := r.expanded(c)
	r.headsOfMamba(c, linear, width, words)
}

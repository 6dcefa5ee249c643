package checkpoint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"exp/train/model"
)

// gemmaFours are the text models of Gemma 4: E2B, E4B, 26B-A4B and 31B, and 12B (unified).
func gemmaFours() []architecture {
	text := architecture{class: "Gemma4ForCausalLM", kind: "gemma4_text",
		words: "Gemma 4: norms before and after, and of queries, keys and values, two sizes of heads, most layers " +
			"windowed",
		fixed: model.Config{PostNorms: true, QKNorm: true, ValueNorm: true, LayerScales: true, QueryScale: 1},
		eps:   1e-6, theta: 1e6, positions: 131072, kvHeads: 4, head: 256, window: 512, tied: true,
		vocab: 262144, heads: 8, ownRope: true, experts: true,
		activation: "hidden_activation", gate: geluTanh, layerTypes: true, windows: windowButLast,
		features: []feature{embedScale, logitCap(0), layerEmbeddings, globalHeads, besideExperts},
		write:    []writer{gemmaFourValues}}
	unified := text
	unified.class, unified.kind, unified.experts = "Gemma4UnifiedForCausalLM", "gemma4_unified_text", false
	unified.positions, unified.window = 262144, 1024
	unified.features = []feature{embedScale, logitCap(0), globalHeads}
	return []architecture{text, unified}
}

// gemmaFour reports whether a class is Gemma 4's.
func (a architecture) gemmaFour() bool { return strings.HasPrefix(a.kind, "gemma4") }

// windowButLast is Gemma 4's: all but every sixth layer.
func windowButLast(_ *settings, w int) (int, func(int) bool) {
	return w, func(layer int) bool { return (layer+1)%6 != 0 }
}

// layerEmbeddings reads what E2B and E4B have.
func layerEmbeddings(r *settings, c *model.Config) {
	tokens := 262144
	c.PerLayer = 256
	if r.get("hidden_size_per_layer_input", &c.PerLayer); c.PerLayer < 0 || c.PerLayer > 1<<14 {
		r.problem("hidden_size_per_layer_input is %d, must be from 0 to %d", c.PerLayer, 1<<14)
		c.PerLayer = 0
	}
	if r.get("vocab_size_per_layer_input", &tokens); c.PerLayer > 0 && tokens != c.Vocab {
		r.problem("vocab_size_per_layer_input is %d, vocab_size %d: only equal ones are supported", tokens, c.Vocab)
	}
}

// globalHeads reads the heads of layers without a window, of which the last is one.
func globalHeads(r *settings, c *model.Config) {
	if r.get("num_kv_shared_layers", &c.SharedKV); c.SharedKV < 0 || c.SharedKV >= max(c.Layers, 1) {
		r.problem("num_kv_shared_layers is %d of %d layers", c.SharedKV, c.Layers)
		c.SharedKV = 0
	}
	c.WideFFN = c.SharedKV > 0 && r.flag("use_double_wide_mlp", false)
	if r.flag("attention_bias", false) {
		r.problem("attention_bias: biases are not supported for this class")
	}
	if s := ""; r.maybe("use_bidirectional_attention", &s) && s != "vision" {
		r.problem("use_bidirectional_attention is %q: only causal attention of texts is supported", s)
	}
	last := len(c.Windowed) - 1
	if last >= 0 && c.Windowed[last] {
		if r.has("layer_types") {
			r.problem("layer_types: the last layer must be %s; transformers makes it so", fullScope)
		}
		c.Windowed[last] = false
	}
	if !slices.Contains(c.Windowed, true) {
		r.problem("a model of this class needs layers with a window")
		c.Windowed = nil
	}
	g := model.Global{Head: 512, KVHeads: c.KVHeads, KeyValues: r.flag("attention_k_eq_v", false)}
	if r.has("per_layer_config") {
		r.layerHeads(c, &g)
	} else {
		r.get("global_head_dim", &g.Head)
		if g.KeyValues {
			r.maybe("num_global_key_value_heads", &g.KVHeads)
		}
	}
	if g.Head > maxHead || g.KVHeads > maxHeads {
		r.problem("layers without a window have %d key heads of %d channels, over the limits of %d and %d", g.KVHeads,
			g.Head, maxHeads, maxHead)
	}
	c.Global = g
}

// layerHeads reads per_layer_config, in which transformers 5 writes the heads of layers without a window.
func (r *settings) layerHeads(c *model.Config, g *model.Global) {
	type heads struct {
		Head    int `json:"head_dim"`
		KVHeads int `json:"num_key_value_heads"`
	}
	layers := map[string]heads{}
	in := r.inner("per_layer_config")
	r.maybe("per_layer_config", &layers)
	delete(r.values, "per_layer_config")
	first := heads{c.Head, c.KVHeads}
	for i, windowed := range c.Windowed {
		x, ok := layers[strconv.Itoa(i)]
		if x.KVHeads == 0 {
			x.KVHeads = c.KVHeads
		}
		others := in.orEmpty().inner(strconv.Itoa(i)).keys("head_dim", "num_key_value_heads")
		if ok == windowed || ok && len(others) > 0 {
			r.problem("per_layer_config: layer %d: only head_dim and num_key_value_heads of layers without a window "+
				"are supported", i)
			return
		}
		if ok && first != x {
			if first != (heads{c.Head, c.KVHeads}) {
				r.problem("per_layer_config: layers %s differ", fullScope)
				return
			}
			first = x
		}
	}
	g.Head, g.KVHeads = first.Head, first.KVHeads
}

// keys returns the keys but some.
func (r *settings) keys(without ...string) (list []string) {
	if r == nil {
		return nil
	}
	for _, key := range sortedKeys(r.values) {
		if !slices.Contains(without, key) {
			list = append(list, key)
		}
	}
	return list
}

// besideExperts reads experts beside the feed-forward block of every layer.
func besideExperts(r *settings, c *model.Config) {
	if !r.flag("enable_moe_block", false) {
		return
	}
	e := model.Experts{Renorm: true, Beside: true}
	for _, x := range []struct {
		key string
		v   *int
	}{{"num_experts", &e.Count}, {"top_k_experts", &e.Top}, {"moe_intermediate_size", &e.FFN}} {
		if !r.maybe(x.key, x.v) {
			r.problem("%s is missing", x.key)
			return
		}
	}
	if e.FFN < 1 || e.FFN > maxFFN {
		r.problem("moe_intermediate_size is %d, must be from 1 to %d", e.FFN, maxFFN)
	}
	r.values["num_experts_per_tok"] = compact(e.Top)
	r.everywhere(c, e)
}

// gemmaFourRope reads rotary positions of which some channels of a head may have the frequency 0.
func (r *settings) gemmaFourRope(c *model.Config, in *settings) {
	if r.has("rope_theta") || r.has("rope_scaling") {
		r.problem("rope_theta and rope_scaling: transformers ignores them in this class; write rope_parameters")
	}
	kind, part, factor := "proportional", 0.25, 1.0
	if in != nil {
		part, kind = 1, in.kind()
		in.maybe("partial_rotary_factor", &part)
		in.maybe("factor", &factor)
	}
	switch head := c.Global.Head; {
	case kind == "default" && part == 1:
	case kind != "proportional":
		r.problem("rope type %q with partial_rotary_factor %g is not supported for this class; supported are "+
			"proportional and default", kind, part)
	case !(part > 0) || part > 1 || int(part*float64(head))/2 < 1:
		r.problem("partial_rotary_factor is %g: no channels of %d", part, head)
	default:
		c.Rope = model.RopeScaling{Kind: kind, Factor: factor, Turned: 2 * (int(part*float64(head)) / 2)}
		r.positive("factor", factor)
	}
}

// orEmpty returns r, or no settings.
func (r *settings) orEmpty() *settings {
	if r == nil {
		return &settings{}
	}
	return r
}

// gemmaFourValues writes what gemmaFours read.
func gemmaFourValues(v map[string]any, a architecture, c model.Config) {
	g, e := c.Global, c.Experts
	v["global_head_dim"], v["attention_k_eq_v"], v["num_kv_shared_layers"] = g.Head, g.KeyValues, c.SharedKV
	v["use_double_wide_mlp"] = c.WideFFN
	if g.KeyValues {
		v["num_global_key_value_heads"] = g.KVHeads
	}
	v["attention_bias"], v["final_logit_softcapping"] = false, orNull(c.LogitCap)
	delete(v, "rope_theta")
	delete(v, "rope_scaling")
	delete(v, "hidden_act")
	if a.kind != "gemma4_text" {
		return
	}
	v["hidden_size_per_layer_input"], v["vocab_size_per_layer_input"] = c.PerLayer, c.Vocab
	v["enable_moe_block"] = e.Beside
	v["num_experts"], v["top_k_experts"], v["moe_intermediate_size"] = nil, nil, nil
	if e.Beside {
		v["num_experts"], v["top_k_experts"], v["moe_intermediate_size"] = e.Count, e.Top, e.FFN
	}
}

// unreadKeys reports whether a tensor belongs to the keys and values of a layer that reads another's: published
// folders have them, and transformers ignores them, too.
func unreadKeys(c model.Config, name string) bool {
	rest, ok := strings.CutPrefix(name, "model.layers.")
	number, part, more := strings.Cut(rest, ".self_attn.")
	l, err := strconv.Atoi(number)
	part, _, _ = strings.Cut(part, ".")
	return ok && more && err == nil && c.SharedKV > 0 && l >= c.Layers-c.SharedKV && l < c.Layers &&
		slices.Contains([]string{"k_proj", "v_proj", "k_norm", "v_norm"}, part)
}

// Folders of Gemma 4 hold all experts of a layer in one tensor: experts.gate_up_proj [E,2F,C], an expert's gates
// before its ups, and experts.down_proj [E,C,F].

// stackedName returns the name of the tensor that holds an expert's, and where.
func stackedName(name string) (fused string, at int, ok bool) {
	prefix, rest, ok := strings.Cut(name, ".experts.")
	number, part, more := strings.Cut(rest, ".")
	e, err := strconv.Atoi(number)
	if !ok || !more || err != nil || !endsInLayer(prefix) {
		return "", 0, false
	}
	switch part {
	case "gate_proj.weight":
		return prefix + ".experts.gate_up_proj", 2 * e, true
	case "up_proj.weight":
		return prefix + ".experts.gate_up_proj", 2*e + 1, true
	case "down_proj.weight":
		return prefix + ".experts.down_proj", e, true
	}
	return "", 0, false
}

// endsInLayer reports whether a prefix is that of a layer's own tensors.
func endsInLayer(prefix string) bool {
	begin, number, ok := cutLast(prefix)
	_, err := strconv.Atoi(number)
	return ok && err == nil && strings.HasSuffix(begin, "layers")
}

// cutLast cuts a name at its last dot.
func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// splitStacked replaces such tensors by one for each expert and map.
func (t *Tensors) splitStacked() error {
	for name := range maps.Clone(t.where) {
		prefix, part, _ := cutLast(name)
		layer, ok := strings.CutSuffix(prefix, ".experts")
		if p := t.where[name]; ok && endsInLayer(layer) && len(p.Shape) == 3 {
			if err := t.splitTensor(name, prefix+".", part); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

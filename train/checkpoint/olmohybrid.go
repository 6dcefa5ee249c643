package checkpoint

import (
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// This file has OLMo Hybrid: Gated DeltaNet in most layers, whose norms are before the blocks, and OLMo 3's attention
// and norms in the others. Published folders have, in a layer with linear attention,
//
//	attention_layer_norm.weight, feedforward_layer_norm.weight
//	linear_attn.q_conv1d.weight, linear_attn.k_conv1d.weight, linear_attn.v_conv1d.weight
//
// where the modules of transformers have
//
//	input_layernorm.weight, post_attention_layernorm.weight
//	linear_attn.conv1d.weight
//
// What transformers 5.24 saves has the published names, but calls post_attention_layernorm of the other layers
// feedforward_layer_norm, too, and cuts the convolution into thirds, whatever the channels of q, k and v.

// olmoHybrids have linear attention between OLMo 3's layers.
func olmoHybrids() []architecture {
	return []architecture{
		{class: "OlmoHybridForCausalLM", kind: "olmo_hybrid",
			words: "OLMo Hybrid: linear attention in most layers, in the others norms after the blocks alone, and " +
				"of all queries and all keys",
			fixed: model.Config{PostNorms: true, NoPreNorms: true, QKNorm: true, WideQKNorm: true,
				Names: model.OlmoHybridNames, DeltaEps: 1e-5},
			eps: 1e-6, theta: 1e4, positions: 65536, vocab: 100352, heads: 30,
			mixed: true, features: []feature{olmoHybridLayers, olmoHybridRope},
			write: []writer{olmoHybridValues}},
	}
}

// olmoHybridLayers reads which layers have linear attention, all but every fourth unless layer_types lists them, and
// its heads.
func olmoHybridLayers(r *settings, c *model.Config) {
	r.refuseFlags(false, "attention_bias")
	r.refuseFlags(true, "linear_use_gate")
	r.siluConvolutions(c)
	var types []string
	linear := make([]bool, min(max(c.Layers, 0), maxLayers))
	listed := r.maybe("layer_types", &types)
	if listed && len(types) != len(linear) {
		r.problem("layer_types has %d entries, num_hidden_layers is %d", len(types), c.Layers)
		return
	}
	for i := range linear {
		linear[i] = i%4 != 3
		if listed {
			linear[i] = types[i] == linearScope
			if !linear[i] && types[i] != fullScope {
				r.problem("layer_types: layer %d has %q; supported are %s and %s", i, types[i], linearScope, fullScope)
				return
			}
		}
	}
	if last := len(linear) - 1; !listed && last >= 0 && !slices.Contains(linear, false) {
		linear[last] = false
	}
	if !slices.Contains(linear, true) || !slices.Contains(linear, false) {
		r.problem("layers with linear attention and layers without it are both needed, in transformers too")
		return
	}
	c.Linear, c.DoubleWrites = linear, r.flag("linear_allow_neg_eigval", true)
	c.Delta = kernels.DeltaShape{Keys: c.Heads, Values: c.Heads, Taps: 4}
	d := &c.Delta
	const keys, dim = "linear_num_key_heads", "linear_key_head_dim"
	for _, key := range []string{keys, "linear_num_value_heads", dim, "linear_value_head_dim"} {
		if r.null(key) {
			delete(r.values, key) // null is the default
		}
	}
	r.maybe(keys, &d.Keys)
	d.KeyDim = int(0.75 * float64(c.Width) / float64(max(d.Keys, 1)))
	r.maybe(dim, &d.KeyDim)
	d.ValueDim = 2 * min(d.KeyDim, maxState)
	r.deltaSizes(d)
}

// olmoHybridRope drops rotary positions where their base is null, as it is in published files.
func olmoHybridRope(r *settings, c *model.Config) {
	const key = "rope_theta"
	params, scaling := r.inner("rope_parameters"), r.inner("rope_scaling")
	if scaling != nil {
		params = scaling
	}
	inside := params != nil && params.null(key)
	switch {
	case params.holds(key), !inside && r.has(key):
		return
	case inside && r.has(key):
		r.problem("rope_theta is null in one place, but another place in the file has a number")
	case !inside && !r.null(key):
		r.problem("rope_theta is missing: transformers takes 10000, other programs no rotary positions, for which " +
			"it must be null")
	case scaling != nil:
		r.problem("rope_scaling: there are no rotary positions, since rope_theta is null")
	}
	c.NoRope = slices.Repeat([]bool{true}, min(max(c.Layers, 0), maxLayers))
	for _, key := range []string{key, "rope_scaling", "rope_parameters", "partial_rotary_factor"} {
		delete(r.values, key)
	}
}

// olmoHybridValues writes OLMo Hybrid's settings.
func olmoHybridValues(v map[string]any, a architecture, c model.Config) {
	deltaValues(v, a, c)
	v["attention_bias"], v["linear_allow_neg_eigval"] = false, c.DoubleWrites
	if c.Head*c.Heads == c.Width {
		delete(v, "head_dim")
	}
	if c.NoRope != nil {
		delete(v, "rope_theta")
		delete(v, "rope_scaling")
		v["rope_parameters"] = map[string]any{"rope_theta": nil, "rope_type": "default"}
	}
}

const inLinear = ".linear_attn." // within the names of tensors of linear attention

// olmoConvolutions are the last parts of the names of a layer's convolutions.
func olmoConvolutions() []string {
	return []string{"q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight"}
}

const joinedConvolution = "conv1d.weight"

// olmoHybridNames gives tensors of OLMo Hybrid their published names.
func (t *Tensors) olmoHybridNames() error {
	linear, own := map[string]bool{}, false // layers with linear attention, by how the names of their tensors begin
	for name := range t.where {
		if layer, rest, ok := strings.Cut(name, inLinear); ok {
			linear[layer] = true
			own = own || strings.HasPrefix(rest, "q_proj.")
		}
	}
	if !own {
		return nil
	}
	err := t.rename(func(name string) (string, bool) {
		for _, x := range []struct {
			module, published string
			linear            bool
		}{{".input_layernorm.weight", ".attention_layer_norm.weight", true},
			{".post_attention_layernorm.weight", ".feedforward_layer_norm.weight", true},
			{".feedforward_layer_norm.weight", ".post_attention_layernorm.weight", false}} {
			if layer, ok := strings.CutSuffix(name, x.module); ok && linear[layer] == x.linear {
				return layer + x.published, true
			}
		}
		return name, true
	})
	for _, layer := range sortedKeys(linear) {
		if err == nil {
			err = t.cutConvolution(layer + inLinear)
		}
	}
	return err
}

// cutConvolution replaces the tensors of a layer's convolution by those of queries, keys and values, unless they have
// other shapes than such tensors.
func (t *Tensors) cutConvolution(prefix string) error {
	var parts []place
	var rows []int
	right := true
	names := olmoConvolutions()
	for i, name := range names {
		of, ok := t.where[prefix+name[:1]+"_proj.weight"]
		if !ok || len(of.Shape) != 2 {
			return nil
		}
		rows = append(rows, of.Shape[0])
		if p, ok := t.where[prefix+name]; ok && len(p.Shape) == 3 && len(p.replicas) == 0 {
			parts, right = append(parts, p), right && p.Shape[0] == rows[i]
		}
	}
	if p, ok := t.where[prefix+joinedConvolution]; ok && len(parts) == 0 && len(p.Shape) == 3 {
		names, parts, right = []string{joinedConvolution}, []place{p}, false
	}
	if right || len(parts) != len(names) {
		return nil
	}
	whole, channels := parts[0], 0
	var data []extent.Extent
	for _, p := range parts {
		if p.DType != whole.DType || p.Shape[1] != whole.Shape[1] || p.Shape[2] != whole.Shape[2] {
			return nil
		}
		data, channels = append(data, p.data), channels+p.Shape[0]
	}
	if len(parts) > 1 {
		whole.data = extent.Concat(data...)
	}
	if channels < 1 || rows[0]+rows[1]+rows[2] != channels {
		return nil
	}
	for _, name := range names {
		delete(t.where, prefix+name)
	}
	at, size := int64(0), whole.data.Size()/int64(channels)
	for i, name := range olmoConvolutions() {
		n := int64(rows[i])
		own := whole.derived(prefix+name, []int{rows[i], whole.Shape[1], whole.Shape[2]},
			func(x extent.Extent) extent.Extent { return x.Slice(at*size, n*size) })
		if err := t.put(t.path, own); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// moduleOlmoHybrid returns a list in which stack has given tensors of OLMo Hybrid the names that transformers' modules
// have. It returns a list without such tensors as it is.
func moduleOlmoHybrid[T any](list []T, of func(T) Tensor, stack func(to Tensor, parts []T) T) []T {
	var out []T
	names := map[string]string{".attention_layer_norm.weight": ".input_layernorm.weight",
		".feedforward_layer_norm.weight": ".post_attention_layernorm.weight"}
	convolutions := map[string][]T{} // of queries, keys and values, by layer
	for _, x := range list {
		t := of(x)
		prefix, part, _ := strings.Cut(t.Name, inLinear)
		if i := slices.Index(olmoConvolutions(), part); i >= 0 {
			if convolutions[prefix] == nil {
				convolutions[prefix] = make([]T, len(olmoConvolutions()))
			}
			parts := convolutions[prefix]
			if parts[i] = x; slices.ContainsFunc(parts, func(p T) bool { return of(p).Name == "" }) {
				continue
			}
			to := Tensor{Name: prefix + inLinear + joinedConvolution, DType: t.DType, Shape: slices.Clone(t.Shape)}
			to.Shape[0] = 0
			for _, p := range parts {
				to.Shape[0] += of(p).Shape[0]
			}
			out = append(out, stack(to, parts))
			continue
		}
		for published, module := range names {
			if layer, ok := strings.CutSuffix(t.Name, published); ok {
				x = stack(Tensor{Name: layer + module, DType: t.DType, Shape: t.Shape}, []T{x})
			}
		}
		out = append(out, x)
	}
	return out
}

package checkpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// linears have layers with linear attention (Gated DeltaNet) between those with attention, whose output has
// a gate.
func linears() []architecture {
	fixed := model.Config{QKNorm: true, UnitOffset: true, OutputGate: true}
	byKey := fixed
	byKey.Delta.ByKey = true
	const part = 0.25
	return []architecture{
		{class: "Qwen3_5ForCausalLM", kind: "qwen3_5_text", words: "Qwen3.5: linear attention in most layers",
			fixed: fixed,
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 4, head: 256, vocab: 248320, heads: 16, partial: true,
			part: part, features: []feature{attentionBias, linearLayers},
			write: []writer{outBias, deltaValues}},
		{class: "Qwen3_5MoeForCausalLM", kind: "qwen3_5_moe_text",
			words: "Qwen3.5-MoE: linear attention in most layers, experts, one of them shared",
			fixed: fixed,
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 2, head: 256, vocab: 248320, heads: 16, partial: true,
			part: part, experts: true, noFFN: true,
			features: []feature{attentionBias, linearLayers, sharedEverywhere},
			write:    []writer{outBias, deltaValues, expertValues}},
		{class: "Qwen3NextForCausalLM", kind: "qwen3_next",
			words: "Qwen3-Next: linear attention in most layers, experts, one of them shared",
			fixed: byKey,
			eps:   1e-6, theta: 1e4, positions: 32768, kvHeads: 2, head: 256, vocab: 151936, heads: 16, partial: true,
			part: part, experts: true,
			features: []feature{attentionBias, linearLayers,
				sparseLayers(model.Experts{Count: 512, Top: 10, FFN: 512, Shared: 512, Renorm: true})},
			write: []writer{outBias, deltaValues, expertValues}},
	}
}

const linearScope = "linear_attention"

// linearLayers reads which layers have linear attention, and its heads: all but every
// full_attention_interval-th, unless layer_types lists them.
func linearLayers(r *settings, c *model.Config) {
	var types []string
	layers := min(max(c.Layers, 0), maxLayers)
	interval := 4
	listed := r.maybe("layer_types", &types)
	if !listed && r.maybe("full_attention_interval", &interval) && interval < 1 {
		r.problem("full_attention_interval is %d, must be at least 1", interval)
		interval = 1
	}
	if listed && len(types) != layers {
		r.problem("layer_types has %d entries, num_hidden_layers is %d", len(types), c.Layers)
		return
	}
	linear := make([]bool, layers)
	for i := range linear {
		linear[i] = (i+1)%interval != 0
		if listed {
			linear[i] = types[i] == linearScope
			if !linear[i] && types[i] != fullScope {
				r.problem("layer_types: layer %d has %q; supported are %s and %s", i, types[i], linearScope, fullScope)
				return
			}
		}
	}
	if !r.flag("attn_output_gate", true) {
		r.problem("attn_output_gate is false: only attention with a gate of its output is supported for this class")
	}
	if !slices.Contains(linear, true) {
		c.Delta = kernels.DeltaShape{}
		return
	}
	r.siluConvolutions(c)
	c.Linear = linear
	d := &c.Delta
	d.Keys, d.Values, d.KeyDim, d.ValueDim, d.Taps = 16, 32, 128, 128, 4
	r.deltaSizes(d)
}

// siluConvolutions refuses other activations, which in these classes the convolutions have, too.
func (r *settings) siluConvolutions(c *model.Config) {
	if c.Gate != kernels.SiLU {
		r.problem("hidden_act must be silu: in this class the convolutions have the same activation")
	}
}

// deltaSizes reads the heads of linear attention.
func (r *settings) deltaSizes(d *kernels.DeltaShape) {
	for _, x := range []struct {
		key   string
		v     *int
		limit int
	}{
		{"linear_num_key_heads", &d.Keys, maxHeads}, {"linear_num_value_heads", &d.Values, maxHeads},
		{"linear_key_head_dim", &d.KeyDim, 1 << 12}, {"linear_value_head_dim", &d.ValueDim, 1 << 12},
		{"linear_conv_kernel_dim", &d.Taps, 1 << 4},
	} {
		if r.get(x.key, x.v); *x.v < 1 || *x.v > x.limit {
			r.problem("%s is %d, must be from 1 to %d", x.key, *x.v, x.limit)
			*x.v = 1
		}
	}
}

// sharedEverywhere reads a mixture of experts with a shared one in every layer.
func sharedEverywhere(r *settings, c *model.Config) {
	e := model.Experts{Count: 256, FFN: 512, Top: 8, Shared: 512, Renorm: true}
	r.get("num_experts", &e.Count)
	r.get("moe_intermediate_size", &e.FFN)
	r.get("shared_expert_intermediate_size", &e.Shared)
	if e.FFN < 1 || e.FFN > maxFFN || e.Shared < 1 || e.Shared > maxFFN {
		r.problem("moe_intermediate_size is %d, shared_expert_intermediate_size %d; both must be from 1 to %d", e.FFN,
			e.Shared, maxFFN)
	}
	r.everywhere(c, e)
}

// deltaValues writes the layers with linear attention.
func deltaValues(v map[string]any, _ architecture, c model.Config) {
	types := slices.Repeat([]string{fullScope}, c.Layers)
	for i := range c.Linear {
		if c.Linear[i] {
			types[i] = linearScope
		}
	}
	v["layer_types"] = types
	if c.Linear == nil {
		return
	}
	d := c.Delta
	v["linear_num_key_heads"], v["linear_num_value_heads"] = d.Keys, d.Values
	v["linear_key_head_dim"], v["linear_value_head_dim"] = d.KeyDim, d.ValueDim
	v["linear_conv_kernel_dim"] = d.Taps
}

// textClasses maps the classes of models of text and images whose text part is read as a model of its own to that
// part's class; of the second list are their model_types.
func textClasses() (classes, kinds map[string]string) {
	return map[string]string{"Qwen3_5ForConditionalGeneration": "Qwen3_5ForCausalLM",
			"Qwen3_5MoeForConditionalGeneration": "Qwen3_5MoeForCausalLM"},
		map[string]string{"qwen3_5": "Qwen3_5ForCausalLM", "qwen3_5_moe": "Qwen3_5MoeForCausalLM"}
}

// textPart returns the settings of the text part of such a model, and r itself for any other.
func (r *settings) textPart() (part *settings, inside bool) {
	class, kind := r.classNamed()
	classes, kinds := textClasses()
	to, ok := classes[class]
	if !ok && class == "" {
		to, ok = kinds[kind]
	}
	if !ok {
		return r, false
	}
	text := r.inner("text_config")
	if text == nil {
		r.problem("text_config is missing")
		return r, false
	}
	a, _ := architectureNamed(to, "")
	values := maps.Clone(text.values)
	for _, key := range []string{"tie_word_embeddings", "quantization_config"} {
		if v, ok := r.values[key]; ok {
			values[key] = v
		}
	}
	values["architectures"], values["model_type"] = compact([]string{to}), compact(a.kind)
	return &settings{values: values}, true
}

// textPartJSON returns the config.json of the text part, or raw for any other model.
func textPartJSON(raw []byte) []byte {
	r := settings{}
	if json.Unmarshal(raw, &r.values) != nil {
		return raw
	}
	if part, inside := r.textPart(); inside {
		return indented(part.values)
	}
	if as := r.asRelative(); as != &r {
		return indented(as.values)
	}
	return raw
}

// furtherLinear is the number of layers of Qwen3.5 that predict further tokens.
const furtherLinear = "mtp_num_hidden_layers"

// partNotes returns notes on parts of a model that are not read; images says that images are.
func (r *settings) partNotes(images bool) (list []string) {
	class, kind := r.classNamed()
	part, inside := r.textPart()
	list = append(list, r.relativeNote()...)
	if inside && !images {
		if class == "" {
			class = kind
		}
		list = append(list, fmt.Sprintf("this is the text part of %s: the vision tower is left out, and written "+
			"weights are a plain %s; model.part: images (--part images) reads both and writes both", class,
			strings.Trim(string(part.values["architectures"]), `["]`)))
	}
	if n := 0; part.maybe(furtherLinear, &n) && n > 0 {
		list = append(list, "the layers that predict further tokens (mtp) are left out")
	}
	return list
}

// textOnly renames tensors of models with linear attention: below language_model to those of a plain
// language model. It drops the layers that predict further tokens, and lays the vision tower aside.
func (t *Tensors) textOnly() error {
	linear := false
	for name := range t.where {
		linear = linear || strings.Contains(name, ".linear_attn.")
	}
	if !linear {
		return nil
	}
	if err := t.splitExperts(); err != nil {
		return err
	}
	return t.rename(func(name string) (string, bool) {
		if _, tower := towerName(name); tower {
			if t.tower == nil {
				t.tower = map[string]place{}
			}
			t.tower[name] = t.where[name]
			return "", false
		}
		if strings.HasPrefix(name, "mtp.") {
			return "", false
		}
		if rest, ok := strings.CutPrefix(name, "model.language_model."); ok {
			return backbonePrefix + rest, true
		}
		return name, true
	})
}

// splitExperts replaces tensors that hold all experts of a layer, gates and ups [E,2F,C] and downs [E,C,F], as
// published models have them, by one for each expert and map.
func (t *Tensors) splitExperts() error {
	for name := range maps.Clone(t.where) {
		prefix, part, ok := strings.Cut(name, expertsOf)
		if !ok {
			continue
		}
		if err := t.splitTensor(name, prefix+expertsOf, part); err != nil {
			return err
		}
	}
	return nil
}

// splitModules does so for state dicts of transformers 5, whose modules hold experts together in most classes, and
// gives ERNIE's correction its published name.
func (t *Tensors) splitModules() error {
	const module, published = ".mlp.gate.moe_statics.", ".mlp.moe_statics."
	renamed := false
	for name := range maps.Clone(t.where) {
		renamed = renamed || strings.Contains(name, module)
		prefix, part, ok := strings.Cut(name, expertsOf)
		if !ok || !endsInLayer(prefix) || strings.Contains(prefix, "language_model.") {
			continue // a model of text and images may have rows of what goes in
		}
		if err := t.splitTensor(name, prefix+expertsOf, part); err != nil {
			return err
		}
	}
	if !renamed {
		return nil
	}
	return t.rename(func(name string) (string, bool) { return strings.Replace(name, module, published, 1), true })
}

// splitTensor does so for a tensor, unless it is none of them. The names of the new ones begin with prefix.
func (t *Tensors) splitTensor(name, prefix, part string) error {
	p := t.where[name]
	if len(p.Shape) != 3 || p.Shape[0] < 1 || p.Shape[0] > maxExperts {
		return nil
	}
	names := halves(part)
	rows := p.Shape[1] / len(names)
	if part != "gate_up_proj" && part != "down_proj" || rows*len(names) != p.Shape[1] {
		return nil
	}
	delete(t.where, name)
	bytes := p.Bytes() / int64(p.Shape[0]*len(names))
	for i := range p.Shape[0] * len(names) {
		own := p
		own.Name = fmt.Sprintf("%s%d.%s.weight", prefix, i/len(names), names[i%len(names)])
		own.Shape, own.composed, own.split, own.replicas = []int{rows, p.Shape[2]}, true, true, nil
		own.data = p.data.Slice(int64(i)*bytes, bytes)
		for _, r := range p.replicas {
			own.replicas = append(own.replicas, r.Slice(int64(i)*bytes, bytes))
		}
		if f, at := own.data.First(); f != nil {
			own.file, own.begin = f, at
		}
		if err := t.put(t.path, own); err != nil {
			return err
		}
	}
	return nil
}

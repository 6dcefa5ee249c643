package checkpoint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/model"
)

// ConfigError is returned when a config.json describes a model that the engine
// cannot compute. It lists everything that stands in the way.
type ConfigError struct {
	Path     string
	Problems []string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("read %s: this model cannot be computed here:\n  %s", e.Path, strings.Join(e.Problems, "\n  "))
}

// The architectures that one description of package model covers. Biases on q, k
// and v mean Qwen2, norms on query and key heads Qwen3, neither Llama.
const (
	llama = "LlamaForCausalLM"
	qwen2 = "Qwen2ForCausalLM"
	qwen3 = "Qwen3ForCausalLM"
)

// modelType returns what config.json calls an architecture under model_type.
func modelType(architecture string) string {
	return strings.ToLower(strings.TrimSuffix(architecture, "ForCausalLM"))
}

// ReadConfig returns the architecture that dir/config.json describes. A setting
// that the file leaves out has Hugging Face's default for the architecture. The
// error is a *ConfigError if the engine cannot compute the model.
func ReadConfig(dir string) (model.Config, error) {
	path := filepath.Join(dir, configFile)
	raw, err := readSmall(path, maxHeader)
	if err != nil {
		return model.Config{}, err
	}
	return parseConfig(path, raw)
}

func parseConfig(path string, raw []byte) (model.Config, error) {
	r := settings{}
	if err := json.Unmarshal(raw, &r.values); err != nil {
		return model.Config{}, corrupt(path, "", "%v", err)
	}
	architecture := r.architecture()
	if architecture == "" {
		return model.Config{}, &ConfigError{Path: path, Problems: r.problems}
	}
	c := r.dims(architecture)
	r.refuse(architecture, c)
	r.bound(c)
	if len(r.problems) == 0 {
		if err := c.Validate(); err != nil {
			r.problems = strings.Split(err.Error(), "\n")
		}
	}
	if len(r.problems) > 0 {
		return model.Config{}, &ConfigError{Path: path, Problems: r.problems}
	}
	return c, nil
}

// settings reads keys of a config.json and collects what is wrong with them. A
// key that is null is as good as absent.
type settings struct {
	values   map[string]json.RawMessage
	problems []string
}

func (r *settings) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *settings) has(key string) bool {
	v, ok := r.values[key]
	return ok && string(v) != "null"
}

// get sets *v to the value of a key. Without one it leaves *v alone.
func (r *settings) get(key string, v any) {
	if !r.has(key) {
		return
	}
	if err := json.Unmarshal(r.values[key], v); err != nil {
		r.problem("%s is %s: %v", key, r.values[key], err)
	}
}

// need is get for a key that must be there.
func (r *settings) need(key string, v *int) {
	if !r.has(key) {
		r.problem("%s is missing", key)
		*v = 1
	}
	r.get(key, v)
}

// architecture returns the one of ours that the file names, or "" with a problem.
func (r *settings) architecture() string {
	var names []string
	var kind string
	r.get("architectures", &names)
	r.get("model_type", &kind)
	for _, known := range []string{llama, qwen2, qwen3} {
		if len(names) == 1 && names[0] == known || len(names) == 0 && kind == modelType(known) {
			return known
		}
	}
	r.problem("architecture is %s; known are %s, %s and %s", strings.Join(append(names, kind), ", "), llama, qwen2, qwen3)
	return ""
}

// dims reads the shape of the model.
func (r *settings) dims(architecture string) model.Config {
	c := model.Config{
		QKVBias: architecture == qwen2, QKNorm: architecture == qwen3,
		RopeTheta: 10000, NormEps: 1e-6, InitStd: 0.02, MaxPositions: 32768,
	}
	if architecture == llama {
		c.MaxPositions = 2048
	}
	r.need("vocab_size", &c.Vocab)
	r.need("hidden_size", &c.Width)
	r.need("num_hidden_layers", &c.Layers)
	r.need("num_attention_heads", &c.Heads)
	r.need("intermediate_size", &c.FFN)
	c.KVHeads, c.Head = c.Heads, c.Width/max(c.Heads, 1)
	if architecture == qwen3 {
		c.Head = 128
	}
	r.get("num_key_value_heads", &c.KVHeads)
	r.get("head_dim", &c.Head)
	if !r.has("head_dim") && architecture != qwen3 && c.Heads > 0 && c.Width%c.Heads != 0 {
		r.problem("hidden_size %d is no multiple of num_attention_heads %d, and there is no head_dim", c.Width, c.Heads)
	}
	r.get("max_position_embeddings", &c.MaxPositions)
	r.get("rms_norm_eps", &c.NormEps)
	r.get("initializer_range", &c.InitStd)
	r.get("tie_word_embeddings", &c.TieEmbeddings)
	r.get("rope_theta", &c.RopeTheta)
	r.rope(&c)
	return c
}

// bound keeps the sizes where their products are numbers: ten times those of any
// published model, and no overflow.
func (r *settings) bound(c model.Config) {
	for _, d := range []struct {
		key        string
		got, limit int
	}{
		{"vocab_size", c.Vocab, 1 << 24}, {"hidden_size", c.Width, 1 << 18}, {"num_hidden_layers", c.Layers, 1 << 12},
		{"num_attention_heads", c.Heads, 1 << 12}, {"num_key_value_heads", c.KVHeads, 1 << 12}, {"head_dim", c.Head, 1 << 12},
		{"intermediate_size", c.FFN, 1 << 20}, {"max_position_embeddings", c.MaxPositions, 1 << 27},
	} {
		if d.got > d.limit {
			r.problem("%s is %d, over the limit of %d", d.key, d.got, d.limit)
		}
	}
}

// rope reads rope_scaling (transformers 4) or rope_parameters (transformers 5,
// which holds rope_theta too). The former wins where both are there, as in
// transformers.
func (r *settings) rope(c *model.Config) {
	key := "rope_scaling"
	if !r.has(key) {
		key = "rope_parameters"
	}
	if !r.has(key) {
		return
	}
	inner := settings{}
	r.get(key, &inner.values)
	kind := "default"
	inner.get("type", &kind)
	inner.get("rope_type", &kind)
	inner.get("rope_theta", &c.RopeTheta)
	partial := 1.0
	inner.get("partial_rotary_factor", &partial)
	switch {
	case kind != "default":
		inner.problem("%q scales rotary positions; only unscaled ones are computed", kind)
	case partial != 1:
		inner.problem("partial_rotary_factor is %g, only 1 is computed", partial)
	}
	for name, v := range inner.values {
		if strings.HasPrefix(string(v), "{") {
			inner.problem("%s: rotary positions that differ by layer are not computed", name)
		}
	}
	slices.Sort(inner.problems)
	for _, p := range inner.problems {
		r.problem("%s: %s", key, p)
	}
}

// refuse looks for settings that change what the model computes and that the
// engine does not have.
func (r *settings) refuse(architecture string, c model.Config) {
	act := "silu"
	r.get("hidden_act", &act)
	if act != "silu" {
		r.problem("hidden_act is %q, only silu is computed", act)
	}
	for _, key := range []string{"attention_bias", "mlp_bias"} {
		bias := false
		if r.get(key, &bias); bias && architecture != qwen2 {
			r.problem("%s: an %s with it is not computed", key, architecture)
		}
	}
	partial := 1.0
	if r.get("partial_rotary_factor", &partial); partial != 1 {
		r.problem("partial_rotary_factor is %g, only 1 is computed", partial)
	}
	if r.sliding(architecture, c.Layers) {
		r.problem("sliding-window attention is in use; only full attention is computed")
	}
	if r.has("quantization_config") {
		r.problem("quantization_config: quantized weights are not read; use the unquantized model")
	}
	for _, key := range []string{"num_experts", "num_local_experts", "n_routed_experts"} {
		experts := 0
		if r.get(key, &experts); experts > 0 {
			r.problem("%s is %d: mixtures of experts are not computed", key, experts)
		}
	}
}

// sliding reports whether any layer has sliding-window attention. layer_types
// says so by itself; else Qwen's layers from max_window_layers on have it if
// use_sliding_window is set.
func (r *settings) sliding(architecture string, layers int) bool {
	var types []string
	if r.get("layer_types", &types); types != nil {
		return slices.ContainsFunc(types, func(t string) bool { return t != "full_attention" })
	}
	use, from := false, 28 // the default of Qwen2Config and Qwen3Config
	r.get("use_sliding_window", &use)
	r.get("max_window_layers", &from)
	return architecture != llama && use && r.has("sliding_window") && from < layers
}

package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"exp/train/model"
)

// ConfigError reports a config.json whose model the engine does not support. It lists every
// reason.
type ConfigError struct {
	Path     string
	Problems []string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("read %s: this model is not supported:\n  %s", e.Path, strings.Join(e.Problems, "\n  "))
}

// ReadConfig returns the architecture described by the config.json of a model at a path: in
// the folder, or where its container has it. Missing settings have
// Hugging Face's defaults for the architecture. It returns a *ConfigError if the engine
// does not support the model. A model of text and images of a supported class has Config.Images.
func ReadConfig(path string) (model.Config, error) {
	if c, err := FindContainer(path); err == nil && c.format == megatronRanks && c.Texts == "" {
		return c.argsConfig()
	}
	dir := TextsFolder(path)
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return model.Config{}, &Error{Op: "read", Path: path, Err: errors.New("is a file, and no config.json lies " +
			"next to it; name a folder with config.json, the tokenizer and the weights")}
	}
	path = filepath.Join(dir, configFile)
	raw, err := readSmall(path, maxConfig)
	if err != nil {
		return model.Config{}, err
	}
	return parseConfig(path, raw, usual)
}

// ReadImageConfig is ReadConfig for a model of text and images of a class whose text part alone is read without a
// request (Qwen3.5): its Config.Images is set. OpenFolder and OpenTower read its weights.
func ReadImageConfig(path string) (model.Config, error) {
	r, x, file, err := readWhole(path)
	if err != nil {
		return model.Config{}, err
	}
	if !x.asked {
		return model.Config{}, &ConfigError{Path: file, Problems: []string{"images of this class are read anyway: " +
			"leave out model.part or --part"}}
	}
	return r.imageConfig(file, x, x.inside)
}

// Limits of sizes: ten times as large as in any published model, small enough that products do
// not overflow.
const (
	maxConfig  = 16 << 20
	maxLayers  = 1 << 12
	maxHeads   = 1 << 12
	maxHead    = 1 << 12 // channels
	maxFFN     = 1 << 20
	maxExperts = 1 << 14

	// Each expert has named tensors, which a file of a few bytes can ask for. The largest
	// published models have 23 040.
	maxExpertsInAll = 1 << 15

	maxPositions = 1 << 27
)

// ParseConfig is ReadConfig for the text of a config.json of a plain language model; errors
// name path.
func ParseConfig(path string, raw []byte) (model.Config, error) {
	return parseConfig(path, raw, textAlone)
}

// imageReading says of what classes images are read.
type imageReading int

const (
	textAlone  imageReading = iota // of none
	usual                          // of all that need no request
	withImages                     // of all
)

// parseConfig is ParseConfig, also for models of text and images.
func parseConfig(path string, raw []byte, images imageReading) (model.Config, error) {
	r := settings{}
	if err := json.Unmarshal(raw, &r.values); err != nil {
		return model.Config{}, cmp.Or(standIn(path, raw), error(corrupt(path, "", "%s", jsonWords(err))))
	}
	if x, inside := r.imageClass(); x.tower != "" && (images == withImages || images == usual && !x.asked) {
		return r.imageConfig(path, x, inside)
	}
	return r.config(path)
}

// config returns the architecture described by the settings.
func (r *settings) config(path string) (model.Config, error) {
	r, _ = r.asRelative().textPart()
	a, known := r.architecture()
	if known {
		r.layout(a)
	}
	var c model.Config
	if known {
		c = r.read(a)
	}
	r.refuse(a)
	if known && len(r.problems) == 0 {
		if err := c.Validate(); err != nil {
			r.problems = strings.Split(err.Error(), "\n")
		}
	}
	if len(r.problems) > 0 {
		return model.Config{}, &ConfigError{Path: path, Problems: r.problems}
	}
	return c, nil
}

// classNamed returns the class and the model_type in the file.
func (r *settings) classNamed() (class, kind string) {
	var names []string
	r.maybe("architectures", &names)
	r.maybe("model_type", &kind)
	return strings.Join(names, ", "), kind
}

// architecture returns the row for the file's class, or notes a problem.
func (r *settings) architecture() (architecture, bool) {
	class, kind := r.classNamed()
	a, ok := architectureNamed(class, kind)
	switch {
	case ok:
	case r.holdsText():
		r.problem("architecture is %s: a model of text and images; only its text part is supported, and only "+
			"on request (model.part: text; --part text)", cmp.Or(class, kind))
	default:
		r.problem("%s", unknown(strings.Split(class, ", "), kind))
	}
	return a, ok
}

// layout notes settings that no class supports.
func (r *settings) layout(a architecture) {
	if a.fixed.UnitOffset && r.flag("use_bidirectional_attention", false) {
		r.problem("use_bidirectional_attention: only causal attention is supported")
	}
	if !r.flag("is_causal", true) {
		r.problem("is_causal is false: only causal attention is supported; transformers 4 ignores the key, 5 does " +
			"not")
	}
	if class, kind := r.classNamed(); class != "" && kind != "" && kind != a.kind {
		r.problem("architectures says %s, but model_type says %s: transformers uses model_type, "+
			"other programs use architectures; "+
			"set model_type to %s if that is right", class, kind, a.kind)
	}
}

// read reads all settings of the class.
func (r *settings) read(a architecture) model.Config {
	c := a.fixed
	if a.prepare != nil {
		a.prepare(r)
	}
	r.dims(a, &c)
	r.bound(c)
	c.InitStd, c.NormEps, c.MaxPositions = 0.02, a.eps, a.positions
	r.get("initializer_range", &c.InitStd)
	r.get("rms_norm_eps", &c.NormEps)
	r.get("max_position_embeddings", &c.MaxPositions)
	if c.MaxPositions > maxPositions {
		r.problem("max_position_embeddings is %d, over the limit of %d", c.MaxPositions, maxPositions)
	}
	c.TieEmbeddings = r.flag("tie_word_embeddings", a.tied)
	r.activation(a, &c)
	r.window(a, &c)
	for _, read := range a.features {
		read(r, &c)
	}
	r.rope(a, &c)
	return c
}

// dims reads the shape of the model.
func (r *settings) dims(a architecture, c *model.Config) {
	r.need("vocab_size", &c.Vocab, a.vocab)
	r.need("hidden_size", &c.Width, 0)
	r.need("num_hidden_layers", &c.Layers, 0)
	r.need("num_attention_heads", &c.Heads, a.heads)
	if !a.noFFN || r.has("intermediate_size") {
		r.need("intermediate_size", &c.FFN, 0)
	}
	c.KVHeads = a.kvHeads
	if c.KVHeads == 0 || r.null("num_key_value_heads") {
		c.KVHeads = c.Heads
	}
	r.maybe("num_key_value_heads", &c.KVHeads)
	switch {
	case a.head > 0 && !(a.nullHead && r.null("head_dim")):
		c.Head = a.head
		r.get("head_dim", &c.Head)
	case r.maybe("head_dim", &c.Head):
	case c.Heads > 0 && c.Width%c.Heads != 0:
		r.problem("hidden_size %d is not a multiple of num_attention_heads %d, and head_dim is missing",
			c.Width, c.Heads)
		c.Head = 2
	default:
		c.Head = c.Width / max(c.Heads, 1)
	}
}

// bound limits sizes so that their products do not overflow.
func (r *settings) bound(c model.Config) {
	for _, d := range []struct {
		key        string
		got, limit int
	}{
		{"vocab_size", c.Vocab, 1 << 24}, {"hidden_size", c.Width, 1 << 18},
		{"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxHeads}, {"num_key_value_heads", c.KVHeads, maxHeads},
		{"head_dim", c.Head, maxHead},
		{"intermediate_size", c.FFN, maxFFN},
	} {
		if d.got > d.limit {
			r.problem("%s is %d, over the limit of %d", d.key, d.got, d.limit)
		}
	}
}

// activation reads the gate of the feed-forward block.
func (r *settings) activation(a architecture, c *model.Config) {
	key, name := cmp.Or(a.activation, "hidden_act"), cmp.Or(a.gate, "silu")
	r.maybe(key, &name)
	if a.kind == "gemma" && name == "gelu" {
		name = geluTanh // the name in early Gemma files
	}
	if a.gate == relu2 || a.gate == xielu {
		if name != a.gate {
			r.problem("%s is %q: only %q is supported for this class", key, name, a.gate)
		}
		return
	}
	if a.plain {
		gate, ok := plainGates()[name]
		if c.Gate = gate; !ok {
			r.problem("%s is %q; supported in this class are %s, %s and %s", key, name, gelu, geluNew, geluTanh)
		}
		return
	}
	gate, ok := gates()[name]
	if !ok {
		r.problem("%s is %q; supported are silu and %s", key, name, geluTanh)
	}
	c.Gate = gate
}

// refuse finds settings that change results and that the engine does not support in any
// class.
func (r *settings) refuse(a architecture) {
	r.refuseQuantized(a)
	if layers := r.inner("per_layer_config"); layers != nil {
		r.problem("per_layer_config: layers with settings of their own are not supported")
	}
	rank := 0
	if r.maybe("kv_lora_rank", &rank); rank > 0 && !a.latent {
		r.problem("kv_lora_rank is %d: multi-head latent attention is not supported in this class", rank)
	}
	if r.has("vision_config") {
		r.problem("vision_config: images are not supported")
	}
	for _, key := range []string{"mamba_d_state", "ssm_state_size", "hybrid_override_pattern", "ssm_cfg"} {
		if r.has(key) && !a.mixed {
			r.problem("%s: Mamba layers are not supported in this class", key)
			break
		}
	}
	for _, key := range []string{"num_experts", "num_local_experts", "n_routed_experts"} {
		n := 0
		if !a.experts && r.maybe(key, &n) && n > 0 {
			r.problem("%s is %d: experts of this class are not supported", key, n)
		}
	}
}

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/model"
	"exp/train/vision"
)

// imageClass is a class of text and images whose text part is read on request.
type imageClass struct {
	class, kind string // "architectures" and "model_type" of the whole
	inside      string // class of the text model; empty: text_config's model_type says it
	textKind    string // model_type of a text_config without one
	// The part differs from its class in defaults, so its file must have all these settings, and in rotary
	// positions of images, whose sections (mrope_section) are equal in text.
	sections []string
	flat     bool                 // settings of the text model may lie next to vision_config (transformers 4)
	complete func(text *settings) // makes the settings those of its class; may be nil
	tower    vision.Kind          // of images; empty: only the text part is read
	// asked says that images are read on request, and the text part without it; deep features leave no such tower.
	asked bool
}

func imageClasses() []imageClass {
	qwen := []string{"rms_norm_eps", "num_key_value_heads", "max_position_embeddings", theta}
	glm := append(slices.Clone(qwen), "partial_rotary_factor")
	return []imageClass{
		{class: "Gemma3ForConditionalGeneration", kind: "gemma3", inside: "Gemma3ForCausalLM", tower: vision.Gemma3},
		{class: "Mistral3ForConditionalGeneration", kind: "mistral3", textKind: "mistral",
			tower: vision.Pixtral}, // Mistral Small 3.1
		{class: "Gemma4ForConditionalGeneration", kind: "gemma4", inside: "Gemma4ForCausalLM"},
		{class: "Gemma4UnifiedForConditionalGeneration", kind: "gemma4_unified",
			inside: "Gemma4UnifiedForCausalLM"},
		{class: "Qwen2VLForConditionalGeneration", kind: "qwen2_vl", inside: "Qwen2ForCausalLM", sections: qwen,
			flat: true, tower: vision.Qwen2VL},
		{class: "Qwen2_5_VLForConditionalGeneration", kind: "qwen2_5_vl", inside: "Qwen2ForCausalLM", sections: qwen,
			flat: true, tower: vision.Qwen25VL},
		{class: "Qwen3VLForConditionalGeneration", kind: "qwen3_vl", inside: "Qwen3ForCausalLM", sections: qwen,
			tower: vision.Qwen3VL},
		{class: "Qwen3VLMoeForConditionalGeneration", kind: "qwen3_vl_moe", inside: "Qwen3MoeForCausalLM",
			sections: qwen, complete: normalized, tower: vision.Qwen3VL},
		{class: "Qwen3_5ForConditionalGeneration", kind: "qwen3_5", inside: "Qwen3_5ForCausalLM",
			tower: vision.Qwen3VL, asked: true},
		{class: "Qwen3_5MoeForConditionalGeneration", kind: "qwen3_5_moe", inside: "Qwen3_5MoeForCausalLM",
			tower: vision.Qwen3VL, asked: true},
		{class: "Glm4vForConditionalGeneration", kind: "glm4v", inside: "Glm4ForCausalLM", sections: glm,
			flat: true, complete: evenHeads, tower: vision.GLM4V},
		{class: "Glm4vMoeForConditionalGeneration", kind: "glm4v_moe", inside: "Glm4MoeForCausalLM", sections: glm,
			flat: true, tower: vision.GLM4V},
		{class: "Glm46VForConditionalGeneration", kind: "glm46v", tower: vision.GLM4V},
		{class: "InternVLForConditionalGeneration", kind: "internvl", tower: vision.InternVL},
		{class: "Idefics3ForConditionalGeneration", kind: "idefics3", textKind: "llama", complete: brief,
			tower: vision.Idefics3},
		{class: "SmolVLMForConditionalGeneration", kind: "smolvlm", textKind: "llama", complete: brief,
			tower: vision.Idefics3},
		{class: "Lfm2VlForConditionalGeneration", kind: "lfm2_vl"},
	}
}

const theta = "rope_theta"

// imageClass returns the row of such a model, and the class of the text model inside, "" for any other. A class that
// may have any text model inside has the rest of the row of its text model's own class.
func (r *settings) imageClass() (x imageClass, inside string) {
	class, kind := r.classNamed()
	rows := imageClasses()
	i := slices.IndexFunc(rows, func(x imageClass) bool { return class == x.class || class == "" && kind == x.kind })
	if i < 0 {
		return imageClass{}, ""
	}
	if x = rows[i]; x.inside != "" {
		return x, x.inside
	}
	kind = x.textKind
	r.inner("text_config").orEmpty().maybe("model_type", &kind)
	for _, y := range rows {
		if kind == y.kind+"_text" && y.sections != nil {
			x.sections, x.complete = y.sections, y.complete
			return x, y.inside
		}
	}
	a, _ := architectureNamed("", kind)
	return x, a.class
}

// holdsText reports whether a text model is inside.
func (r *settings) holdsText() bool {
	_, inside := r.imageClass()
	return inside != ""
}

// text returns the settings of the text model.
func (x imageClass) text(r *settings, inside string) *settings {
	text := r.inner("text_config")
	if x.asked && text != nil {
		text, _ = r.textPart()
		return text
	}
	if text == nil && x.flat {
		text = &settings{values: maps.Clone(r.values)}
		maps.DeleteFunc(text.values, func(key string, _ json.RawMessage) bool {
			return strings.HasPrefix(key, "vision_")
		})
	}
	if text == nil {
		return nil
	}
	for _, key := range []string{"tie_word_embeddings", quantization} {
		if v, ok := r.values[key]; ok {
			text.values[key] = v
		}
	}
	text.values["architectures"] = compact([]string{inside})
	if x.sections != nil {
		a, _ := architectureNamed(inside, "")
		text.values["model_type"] = compact(a.kind)
		text.withoutSections(x.sections)
	}
	if x.complete != nil {
		x.complete(text)
	}
	return text
}

// normalized is Qwen3-VL-MoE's: weights of experts always sum to 1.
func normalized(text *settings) {
	if !text.flag("norm_topk_prob", true) {
		text.problem("norm_topk_prob is false: transformers ignores it in this class, other programs do not")
	}
	text.values["norm_topk_prob"] = compact(true)
}

// brief is Idefics3's and SmolVLM's: published files leave out what LlamaConfig has by default.
func brief(text *settings) {
	if class, _ := text.classNamed(); class != "LlamaForCausalLM" {
		return
	}
	for key, n := range map[string]int{"vocab_size": 32000, "hidden_size": llamaWidth, "intermediate_size": 11008,
		"num_hidden_layers": 32, "num_attention_heads": 32} {
		if !text.has(key) {
			text.values[key] = compact(n)
		}
	}
}

// llamaWidth is LlamaConfig's hidden_size.
const llamaWidth = 4096

// evenHeads is GLM-4.1V's: heads share hidden_size evenly.
func evenHeads(text *settings) {
	width, heads := 0, 0
	if !text.maybe("hidden_size", &width) || !text.maybe("num_attention_heads", &heads) || heads < 1 {
		return // whoever reads the text model will say so
	}
	head := width / heads
	if said := head; text.maybe("head_dim", &said) && said != head {
		text.problem("head_dim is %d: transformers takes hidden_size / num_attention_heads = %d in this class", said,
			head)
	}
	text.values["head_dim"] = compact(head)
}

// withoutSections makes rotary positions of images those of text, and notes required settings that are missing.
func (r *settings) withoutSections(required []string) {
	places := []*settings{r}
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		in := r.inner(key)
		if in == nil {
			continue
		}
		delete(in.values, "mrope_section")
		delete(in.values, "mrope_interleaved")
		for _, kind := range []string{"type", "rope_type"} {
			if string(in.values[kind]) == `"mrope"` {
				in.values[kind] = compact("default")
			}
		}
		r.values[key] = compact(in.values)
		places = append(places, in)
	}
	for _, key := range required {
		if !slices.ContainsFunc(places, func(s *settings) bool { return s.has(key) }) {
			r.problem("%s is missing: its default is not that of %s", key, r.values["architectures"])
		}
	}
}

// readText returns the settings of the config.json at a path, of the text model inside it, and the classes of both.
func readText(path string) (text *settings, class, inside string, err error) {
	path = filepath.Join(TextsFolder(path), configFile)
	raw, err := readSmall(path, maxConfig)
	if err != nil {
		return nil, "", "", err
	}
	r := &settings{}
	if err := json.Unmarshal(raw, &r.values); err != nil {
		return nil, "", "", corrupt(path, "", "%v", err)
	}
	refuse := func(format string, args ...any) (*settings, string, string, error) {
		return nil, "", "", &ConfigError{Path: path, Problems: append(r.problems, fmt.Sprintf(format, args...))}
	}
	if _, anyway := r.textPart(); anyway {
		return refuse("the text part of this class is what is read anyway: leave out model.part or --part")
	}
	class, kind := r.classNamed()
	if class == "" {
		class = kind
	}
	x, inside := r.imageClass()
	if inside == "" {
		var classes []string
		for _, x := range imageClasses() {
			if !x.asked {
				classes = append(classes, x.class)
			}
		}
		return refuse("architecture is %s, not %s: it has no text part to extract", class,
			strings.Join(classes, " or "))
	}
	if text = x.text(r, inside); text == nil {
		return refuse("text_config is missing")
	}
	return text, class, inside, nil
}

// ReadTextConfig is ReadConfig for the text model inside a model of text and images.
// OpenTextFolder reads its weights.
func ReadTextConfig(path string) (model.Config, error) {
	text, _, _, err := readText(path)
	if err != nil {
		return model.Config{}, err
	}
	return text.config(filepath.Join(TextsFolder(path), configFile))
}

// TextNote explains that only the text part of the model at a path is read; "" if there is none.
func TextNote(path string) string {
	_, class, inside, err := readText(path)
	if err != nil {
		return ""
	}
	// A new config.json names the first class that computes the same.
	written := strings.Replace(inside, "Gemma4Unified", "Gemma4", 1)
	return fmt.Sprintf("this is the text part of %s: the vision tower is left out, and merged weights are a plain %s",
		class, written)
}

// OpenTextFolder is OpenFolder for the text model inside a model of text and images:
// tensors of the text model get the names of a plain language model, others are dropped.
func OpenTextFolder(dir string) (*Tensors, error) {
	t, err := openContainer(dir)
	if err != nil {
		return nil, err
	}
	return t.textOf(dir)
}

// textOf keeps the tensors of the text model inside such a model, under plain names.
func (t *Tensors) textOf(dir string) (*Tensors, error) {
	beside := false // the vision tower lies beside a text model with plain names (transformers 4 and Qwen2.5-VL)
	for name := range t.where {
		beside = beside || strings.HasPrefix(name, "visual.")
	}
	any := false
	err := t.rename(func(name string) (string, bool) {
		if name == lmHead { // transformers 5 has it outside
			return name, true
		}
		rest, ok := textName(name, beside)
		any = any || ok
		return rest, ok
	})
	if err == nil && !any {
		err = &Error{Op: "read", Path: dir, Err: errors.New("no tensor is below language_model or text_model: there " +
			"is not a text model inside another")}
	}
	if err == nil {
		err = t.hybridNames()
	}
	if err == nil {
		err = t.splitTextExperts(dir)
	}
	return t.orClosed(err)
}

// textName returns the plain name of a text model's tensor.
func textName(name string, beside bool) (plain string, ok bool) {
	for _, prefix := range []string{languageModel, textModel} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return backbonePrefix + rest, true
		}
	}
	if rest, ok := strings.CutPrefix(name, "language_model."); ok {
		return rest, true
	}
	for _, part := range []string{"layers.", "embed_tokens.", "norm."} {
		if beside && strings.HasPrefix(name, backbonePrefix+part) {
			return name, true
		}
	}
	return "", false
}

// splitTextExperts splits tensors of all experts of a layer. Rows are what comes out of a map (transformers 5) or
// what goes in (transformers 4, Qwen3-VL); transformers tells one from the other by their number, too.
func (t *Tensors) splitTextExperts(dir string) error {
	text, _, _, err := readText(dir)
	if err != nil { // ReadTextConfig will say so
		return nil
	}
	width := 0
	text.maybe("hidden_size", &width)
	for name := range maps.Clone(t.where) {
		prefix, part, ok := strings.Cut(name, expertsOf)
		gates, downs := t.where[name], t.where[prefix+expertsOf+"down_proj"]
		if !ok || part != "gate_up_proj" || len(gates.Shape) != 3 || len(downs.Shape) != 3 {
			continue
		}
		turned := gates.Shape[1] == width && gates.Shape[2] != width ||
			downs.Shape[2] == width && downs.Shape[1] != width
		t.turned = turned
		for _, part := range []string{part, "down_proj"} {
			if turned {
				err = t.splitTurned(prefix+expertsOf, part)
			} else {
				err = t.splitTensor(prefix+expertsOf+part, prefix+expertsOf, part)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"exp/train/model"
)

// imageClasses are the classes of text and images whose text part is read on request, and their model_types.
func imageClasses() (classes, kinds []string) {
	return []string{"Gemma3ForConditionalGeneration", "Mistral3ForConditionalGeneration",
			"Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration"},
		[]string{"gemma3", "mistral3", "gemma4", "gemma4_unified"}
}

// textInside returns the class of the text model inside such a model, "" for any other.
func (r *settings) textInside() string {
	class, kind := r.classNamed()
	classes, kinds := imageClasses()
	for i := range classes {
		if class != classes[i] && (class != "" || kind != kinds[i]) {
			continue
		}
		if kinds[i] != "mistral3" {
			return strings.Replace(classes[i], "ForConditionalGeneration", "ForCausalLM", 1)
		}
		text := r.inner("text_config")
		kind = "mistral" // the default, of Mistral Small 3.1
		if text != nil {
			text.maybe("model_type", &kind)
		}
		if a, ok := architectureNamed("", kind); ok {
			return a.class
		}
	}
	return ""
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
	classes, _ := imageClasses()
	if inside = r.textInside(); inside == "" {
		return refuse("architecture is %s, not %s: it has no text part to extract", class,
			strings.Join(classes, " or "))
	}
	if text = r.inner("text_config"); text == nil {
		return refuse("text_config is missing")
	}
	for _, key := range []string{"tie_word_embeddings", quantization} {
		if v, ok := r.values[key]; ok {
			text.values[key] = v
		}
	}
	text.values["architectures"] = compact([]string{inside})
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
// tensors below language_model get the names of a plain language model, others are dropped.
func OpenTextFolder(dir string) (*Tensors, error) {
	t, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	any := false
	err = t.rename(func(name string) (string, bool) {
		if name == lmHead { // transformers 5 has it outside
			return name, true
		}
		rest, ok := strings.CutPrefix(name, "model.language_model.") // transformers 5
		if ok {
			rest = backbonePrefix + rest
		} else {
			rest, ok = strings.CutPrefix(name, "language_model.")
		}
		any = any || ok
		return rest, ok
	})
	if err == nil && !any {
		err = &Error{Op: "read", Path: dir, Err: errors.New("no tensor is below language_model: there is no text " +
			"model inside another")}
	}
	return t.orClosed(err)
}

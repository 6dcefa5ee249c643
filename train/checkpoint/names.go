package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// backbonePrefix begins tensor names that AutoModel saves without it.
const backbonePrefix = "model."

// canonical renames tensors to package model's names: AutoModel saves backbones without
// "model.".
func (t *Tensors) canonical() error {
	if err := errors.Join(t.widenFP8(), t.widenQuantized(), t.relativeNames(), t.textOnly(), t.splitFused(),
		t.splitModules(), t.hybridNames(), t.olmoHybridNames(), t.splitStacked(), t.publishedNames()); err != nil {
		return err
	}
	_, plain := t.where[embedding]
	_, bare := t.where[strings.TrimPrefix(embedding, backbonePrefix)]
	if plain || !bare {
		return nil
	}
	return t.rename(func(name string) (string, bool) {
		for _, part := range []string{"embed_tokens.", "layers.", "norm."} {
			if strings.HasPrefix(name, part) {
				return backbonePrefix + name, true
			}
		}
		return name, true
	})
}

// rename renames every tensor and drops it if keep is false.
func (t *Tensors) rename(to func(name string) (renamed string, keep bool)) error {
	where := map[string]place{}
	for _, name := range slices.Sorted(maps.Keys(t.where)) {
		p := t.where[name]
		renamed, keep := to(name)
		if !keep {
			continue
		}
		if other, ok := where[renamed]; ok {
			return corrupt(p.file.Name(), p.stored, "means %s, and so does %s", renamed, other.stored)
		}
		p.Name = renamed
		where[renamed] = p
	}
	t.where = where
	return nil
}

// foreignNames returns the error for a file in another class's layout, or nil if it does
// not look like one.
func (t *Tensors) foreignNames() error {
	if _, ok := t.where[embedding]; ok {
		return nil
	}
	for _, f := range []struct{ prefix, what, hint string }{
		{"transformer.", "the GPT-2 layout",
			"only the Llama layout is supported (model.layers.0.self_attn.q_proj.weight, …)"},
		{"model.language_model.", "a text model inside a model of text and images",
			"only the text part of some classes is supported, on request: model.part: text; --part text"},
		{textModel, "a text model inside a model of text and images",
			"only the text part of some classes is supported, on request: model.part: text; --part text"},
		{"language_model.", "a text model inside a model of text and images",
			"only the text part of some classes is supported, on request: model.part: text; --part text"},
		{"backbone.", "the Mamba layout", "only the Llama layout is supported " +
			"(model.layers.0.self_attn.q_proj.weight, …)"},
	} {
		for _, tensor := range t.List() {
			if strings.HasPrefix(tensor.Name, f.prefix) {
				return &Error{Op: "read", Path: t.path, Tensor: tensor.Name,
					Err: fmt.Errorf("the tensor names are from %s", f.what), Hint: f.hint}
			}
		}
	}
	return nil
}

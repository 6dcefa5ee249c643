package checkpoint

import "strings"

// LanguageModel makes the tensors of a whole model of text and images, such as a merged one, those of its language
// model, under the names of a plain one. Without tensors of a vision tower they stay as they are. path is a model of
// the same class, whose config.json counts.
func (t *Tensors) LanguageModel(path string) (*Tensors, error) {
	for name := range t.where {
		if strings.HasPrefix(name, "visual.") || strings.HasPrefix(name, "model.visual.") {
			return t.textOf(path)
		}
	}
	return t, nil
}

package checkpoint

// LanguageModel drops the vision tower from the tensors of a model of text and images, such as a merged one, and gives
// the rest the names of a plain language model. Without a tower it changes nothing. path is a model of the same class,
// whose config.json counts.
func (t *Tensors) LanguageModel(path string) (*Tensors, error) {
	for name := range t.where {
		if _, ok := towerName(name); ok {
			return t.textOf(path)
		}
	}
	return t, nil
}

package tokenizer

import (
	"maps"
	"slices"
)

// SpecialTexts returns the texts of a tokenizer's special tokens in order: tokens that Hugging Face's files mark as
// special, and tokens with a name.
func SpecialTexts(t Tokenizer) []string {
	texts := map[string]bool{}
	if p, ok := t.(*Pipeline); ok {
		maps.Copy(texts, p.added.special)
	}
	s := t.SpecialTokens()
	for _, text := range s.Named {
		texts[text] = true
	}
	for _, text := range s.Additional {
		texts[text] = true
	}
	delete(texts, "")
	return slices.Sorted(maps.Keys(texts))
}

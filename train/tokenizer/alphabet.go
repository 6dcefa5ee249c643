package tokenizer

import (
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// AlphabetOf returns the characters of texts in the order of their code points, for
// NewChar. The error is for a text that is not UTF-8.
func AlphabetOf(texts iter.Seq[string]) (string, error) {
	seen := map[rune]bool{}
	var runes []rune
	for text := range texts {
		if !utf8.ValidString(text) {
			return "", fmt.Errorf("tokenizer: a text is not UTF-8: %q", clip(text))
		}
		for _, r := range text {
			if !seen[r] {
				seen[r] = true
				runes = append(runes, r)
			}
		}
	}
	slices.Sort(runes)
	return string(runes), nil
}

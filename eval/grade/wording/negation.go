package wording

import (
	"slices"
	"strings"
)

// unsettling are words that keep the value in their clause from being the answer.
var unsettling = []string{"or", "nor", "neither", "either", "than", "between", "except", "without", "unless", "maybe",
	"could", "might",
	"perhaps", "possibly", "probably", "least", "most", "wrong", "incorrect", "but", "squared", "cubed",
	"factorial", "dozen", "not", "isn", "never", "cannot", "if", "guess", "doubt", "nobody", "undefined",
	"extraneous", "longer"}

// Unsettled reports whether a text has a word that keeps a value in it from being the answer.
func Unsettled(s string) bool {
	for _, w := range strings.FieldsFunc(Lower(s), func(r rune) bool { return (r < 'a' || r > 'z') && r < 0x80 }) {
		if slices.Contains(unsettling, w) {
			return true
		}
	}
	return false
}

// Negations are words that make what follows something else than the answer.
var Negations = []string{"not", "no", "never", "wrong", "incorrect", "except", "isn", "without", "unless",
	"false", "other"}

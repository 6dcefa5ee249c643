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
	"extraneous", "longer", "nicht", "kein", "keine", "pas", "não", "nao", "не", "nie", "niet", "non"}

// uncertain are words that make a value uncertain wherever they stand before it.
var uncertain = []string{"or", "nor", "neither", "maybe", "could", "might", "perhaps", "possibly", "probably", "wrong",
	"incorrect", "but", "not", "isn", "never", "cannot", "guess", "doubt", "nobody", "undefined", "extraneous", "if",
	"unless", "nicht", "kein", "keine", "pas", "não", "nao", "не", "nie", "niet", "non"}

// Unsettled reports whether a text has a word that keeps a value in it from being the answer.
func Unsettled(s string) bool { return hasOneOf(s, unsettling) }

// Uncertain reports whether a text has a word that makes a value after it uncertain, even after a verb.
func Uncertain(s string) bool { return hasOneOf(s, uncertain) }

func hasOneOf(s string, list []string) bool {
	words := strings.FieldsFunc(Lower(s), func(r rune) bool { return (r < 'a' || r > 'z') && r < 0x80 })
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
}

// Negations are words that make what follows something else than the answer.
var Negations = []string{"not", "no", "never", "wrong", "incorrect", "except", "isn", "without", "unless",
	"false", "other"}

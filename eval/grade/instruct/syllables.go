package instruct

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
)

// oddWords are the words that syllapy's dictionary of 6,392 English words (0.7.2) gives an odd number of syllables
// and its rule an even one, or the other way round.
//
//go:embed syllables.txt
var oddWords string

var exceptions = sync.OnceValue(func() map[string]bool { return setOf(oddWords) })

// alternatingSyllables wants words with odd and even numbers of syllables in turn.
func alternatingSyllables(s string) bool {
	words := fields(lowered(bare(s)))
	for i := 1; i < len(words); i++ {
		if hasOddSyllables(words[i-1]) == hasOddSyllables(words[i]) {
			return false
		}
	}
	return true
}

// hasOddSyllables counts as syllapy does: groups of vowels, less a silent e, and a syllable at least. A word with a
// digit has none.
func hasOddSyllables(w string) bool {
	if strings.ContainsFunc(w, func(r rune) bool { return unicode.Is(unicode.Nd, r) }) {
		return false
	}
	n := 0
	vowels := []bool{false}
	for _, r := range w {
		vowel := strings.ContainsRune("aeiouy", r)
		if vowel && !vowels[len(vowels)-1] {
			n++
		}
		vowels = append(vowels, vowel)
	}
	if strings.HasSuffix(w, "e") {
		n--
	}
	if strings.HasSuffix(w, "le") && len(vowels) > 3 && !vowels[len(vowels)-3] {
		n++
	}
	return max(n, 1)%2 == 1 != exceptions()[w]
}

package instruct

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// wordMakers are the instructions about each word of a response, or about two words in a row.
func wordMakers() map[string]maker {
	return map[string]maker{
		"words:alphabet":       func(*arguments) Check { return alphabetLoop },
		"words:vowel":          func(*arguments) Check { return threeVowels },
		"words:consonants":     func(*arguments) Check { return consonantClusters },
		"words:prime_lengths":  func(*arguments) Check { return primeLengths },
		"words:no_consecutive": func(*arguments) Check { return noSameInitials },
		"count:words_japanese": wordsInJapanese,

		"words:odd_even_syllables": func(*arguments) Check { return alternatingSyllables },
		"words:start_verb":         func(*arguments) Check { return startsWithVerb },

		"keywords:no_adjacent_consecutive":  func(*arguments) Check { return noNeighbors },
		"keywords:exclude_word_harder":      excludedWord,
		"detectable_format:square_brackets": func(*arguments) Check { return bracketed },
		"detectable_format:bigram_wrapping": func(*arguments) Check { return wrappedPairs },
	}
}

// alphabetLoop wants each word to begin with the letter after the one before; a follows z.
func alphabetLoop(s string) bool {
	words := fields(lowered(bare(s)))
	for i, w := range words {
		r := initial(w)
		if r < 'a' || r > 'z' || i > 0 && r != 'a'+(initial(words[i-1])-'a'+1)%26 {
			return false
		}
	}
	return len(words) > 0
}

// threeVowels wants one line with at most three of a, e, i, o, u.
func threeVowels(s string) bool {
	s = lowered(strip(s))
	n := 0
	for _, v := range "aeiou" {
		if strings.ContainsRune(s, v) {
			n++
		}
	}
	return n <= 3 && !strings.Contains(s, "\n")
}

// consonantClusters wants two consonants in a row in each word. What has no letters is a word too.
func consonantClusters(s string) bool {
	consonant := func(c byte) bool { return 'a' <= c && c <= 'z' && strings.IndexByte("aeiou", c) < 0 }
	return !slices.ContainsFunc(fields(lowered(s)), func(w string) bool {
		for i := 1; i < len(w); i++ {
			if consonant(w[i-1]) && consonant(w[i]) {
				return false
			}
		}
		return true
	})
}

// primeLengths knows the primes below 100.
func primeLengths(s string) bool {
	return !slices.ContainsFunc(fields(bare(s)), func(w string) bool {
		n := utf8.RuneCountInString(w)
		for d := 2; d*d <= n; d++ {
			if n%d == 0 {
				return true
			}
		}
		return n < 2 || n > 97
	})
}

func noSameInitials(s string) bool {
	words := fields(bare(lowered(s)))
	for i := 1; i < len(words); i++ {
		if initial(words[i-1]) == initial(words[i]) {
			return false
		}
	}
	return true
}

// wordsInJapanese wants kana or kanji in every so many-th word, unless it is a number or punctuation.
func wordsInJapanese(a *arguments) Check {
	cycle := a.count("N", 1)
	return func(s string) bool {
		words := fields(s)
		for i := cycle - 1; i < len(words); i += cycle {
			w := trimmed(words[i])
			if w != "" && !isDigits(w) && !strings.ContainsFunc(w, func(r rune) bool {
				return 0x3040 <= r && r <= 0x30ff || 0x4e00 <= r && r <= 0x9fff
			}) {
				return false
			}
		}
		return true
	}
}

// noNeighbors wants no word to begin with the character after the first one of the word before, in the order of
// Unicode. As in the published program, a first character that is two in small letters fails.
func noNeighbors(s string) bool {
	words := fields(s)
	if len(words) > 1 && slices.ContainsFunc(words, func(w string) bool { return initial(w) == 'İ' }) {
		return false
	}
	for i := 1; i < len(words); i++ {
		if initial(lowered(words[i]))-initial(lowered(words[i-1])) == 1 {
			return false
		}
	}
	return true
}

// excludedWord looks for a word between blanks only: one before a comma, or in capitals, goes unseen, as in the
// published program.
func excludedWord(a *arguments) Check {
	keyword := " " + a.text("keyword") + " "
	return func(s string) bool { return !strings.Contains(s, keyword) }
}

func bracketed(s string) bool {
	return !slices.ContainsFunc(fields(s), func(w string) bool {
		return !strings.HasPrefix(w, "[") || !strings.HasSuffix(w, "]")
	})
}

// wrappedPairs wants <<two words>> after another; a word that remains may be bare.
func wrappedPairs(s string) bool {
	for pair := range slices.Chunk(fields(s), 2) {
		if len(pair) == 2 && !(strings.HasPrefix(pair[0], "<<") && strings.HasSuffix(pair[1], ">>")) {
			return false
		}
	}
	return true
}

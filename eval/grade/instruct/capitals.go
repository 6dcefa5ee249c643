package instruct

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// capitalWords counts words without small letters; "I" is one.
func capitalWords(a *arguments) Check {
	want, compare := a.count("capital_frequency", 0), a.relation("capital_relation")
	split := treebank()
	return func(s string) bool {
		n := 0
		for _, w := range split(s) {
			if isUpper(w) {
				n++
			}
		}
		return compare(n, want)
	}
}

// treebank returns a function that splits a text into words as the Penn Treebank does (Marcus et al. 1993), by the
// rules of NLTK 3.10 as far as counts of capital words depend on them: punctuation stands alone, IT'S, DON'T and
// CANNOT are two words, A-B and A/B are one.
func treebank() func(text string) []string {
	rules := []struct {
		find *regexp.Regexp
		put  string
	}{
		{regexp.MustCompile("[«“‘„»”’`\"\\[\\](){}<>;@#$%&?!*\u2012-\u2015]|''|--|\\.{2,}"), " ${0} "},
		{regexp.MustCompile(`[:,]([^\p{Nd}])`), " ${1}"},
		{regexp.MustCompile(space + "+"), " "},
		{regexp.MustCompile(`([^' ])('[sSmMdD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) `), "${1} ${2} "}, // at the end of a word
	}
	return func(text string) []string {
		text = " " + text + " "
		for _, r := range rules {
			text = r.find.ReplaceAllString(text, r.put)
		}
		var words []string
		for _, w := range strings.Fields(text) {
			if n := fused()[strings.ToLower(strings.TrimFunc(w, unicode.IsPunct))]; n > 0 {
				words = append(words, w[:n], w[n:])
			} else {
				words = append(words, w)
			}
		}
		return words
	}
}

// fused maps words that are two to the length of the first.
var fused = sync.OnceValue(func() map[string]int {
	return map[string]int{"cannot": 3, "d'ye": 1, "gimme": 3, "lemme": 3, "gonna": 3, "gotta": 3, "wanna": 3,
		"more'n": 4}
})

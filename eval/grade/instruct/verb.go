package instruct

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// verbLines has words and how much they speak for a verb at the beginning of a text. "first 3" begins a line of words
// that may be the first one, "next -1" of words after it; "-ing" stands for all other words with that end, and * for
// all other words. "before it" begins a line of first words for which the sum is wrong before that word.
//
//go:embed verbs.txt
var verbLines string

// verbTable tells verbs from other words by the sum of two numbers, but for some pairs. They were fitted to what
// NLTK's perceptron tagger, which the published program asks, says of 1,200,000 beginnings: words of English, each
// with words that follow one in prose. The tagger itself has 130,000 weights for the first word.
type verbTable struct {
	first, next map[string]int
	wrong       map[[2]string]bool // first and next word
}

var verbs = sync.OnceValue(func() verbTable {
	t := verbTable{map[string]int{}, map[string]int{}, map[[2]string]bool{}}
	for line := range strings.Lines(verbLines) {
		f := strings.Fields(line)
		if f[0] == "before" {
			for _, w := range f[2:] {
				t.wrong[[2]string{w, f[1]}] = true
			}
			continue
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			panic(err) // it is part of the program
		}
		list := t.next
		if f[0] == "first" {
			list = t.first
		}
		for _, w := range f[2:] {
			list[w] = n
		}
	}
	return t
})

// startsWithVerb reports whether the first token is a verb, in any form. It agrees with the published program on 99 of
// 100 beginnings of prose, and on 9 of 10 of those whose first word can be a verb.
func startsWithVerb(s string) bool {
	list := tokens(s)
	if len(list) == 0 {
		return false
	}
	word, next := lowered(list[0]), verbs().next["*"]
	first, ok := verbs().first[word]
	if !ok {
		if first, ok = verbs().first[ending(word)]; !ok {
			return false
		}
	}
	if len(list) == 1 {
		return first+next >= 0
	}
	w := taggedAs(list[1])
	for _, key := range []string{ending(w), w} {
		if n, ok := verbs().next[key]; ok {
			next = n
		}
	}
	return first+next >= 0 != verbs().wrong[[2]string{word, w}]
}

// ending returns the last three characters of a word, after a hyphen.
func ending(w string) string {
	from := len(w)
	for range 3 {
		_, width := utf8.DecodeLastRuneInString(w[:from])
		from -= width
	}
	return "-" + w[from:]
}

// taggedAs is the name under which the tagger knows a word.
func taggedAs(w string) string {
	switch {
	case strings.Contains(w, "-") && w[0] != '-':
		return "!HYPHEN"
	case isDigits(w) && utf8.RuneCountInString(w) == 4:
		return "!YEAR"
	case isDigits(string(initial(w))) || unicode.Is(unicode.Nd, initial(w)):
		return "!DIGITS"
	}
	return lowered(w)
}

package instruct

import (
	"regexp"
	"strings"
)

// sequenceMakers are the instructions about sentences and paragraphs in their order.
func sequenceMakers() map[string]maker {
	return map[string]maker{
		"sentence:alliteration_increment": func(*arguments) Check { return alliterations },
		"sentence:keyword":                keywordInSentence,
		"sentence:increment":              increment,
		"words:last_first":                func(*arguments) Check { return lastFirst },
		"words:paragraph_last_first":      func(*arguments) Check { return paragraphsLastFirst },

		"count:counting_composition":         composition,
		"detectable_format:sentence_hyphens": func(*arguments) Check { return hyphenated },

		"paragraphs:paragraphs":  func(*arguments) Check { return paragraphs(stars(), 2) },
		"paragraphs:paragraphs2": func(*arguments) Check { return paragraphs(regexp.MustCompile("\n\n"), 2) },
	}
}

// alliterations wants more words of one initial in a row in each sentence than in the one before. All such rows of a
// sentence count together, as in the published program.
func alliterations(s string) bool {
	before := -1
	for _, sentence := range english39().split(s) {
		n, last := 0, false
		var previous string
		for _, w := range fields(lowered(sentence)) {
			if w = strings.TrimLeftFunc(w, isPunctuation); w == "" {
				continue
			}
			same := previous != "" && initial(w) == initial(previous)
			if same && !last {
				n++
			}
			if same {
				n++
			}
			previous, last = w, same
		}
		if n <= before {
			return false
		}
		before = n
	}
	return true
}

func keywordInSentence(a *arguments) Check {
	keyword, nth := regexp.MustCompile("(?i)"+regexp.QuoteMeta(a.verbatim("word"))), a.count("N", 1)
	return func(s string) bool {
		list := english39().split(s)
		return len(list) >= nth && standsAlone(list[nth-1], keyword)
	}
}

// increment wants so many more words in each sentence than in the one before.
func increment(a *arguments) Check {
	more := a.count("small_n", 0)
	return func(s string) bool {
		before := 0
		for i, sentence := range english39().split(s) {
			n := len(fields(bare(sentence)))
			if i > 0 && n != before+more {
				return false
			}
			before = n
		}
		return true
	}
}

// lastFirst wants each sentence to begin with the last word of the one before. Punctuation counts where it does not
// stand at the outer end.
func lastFirst(s string) bool {
	list := english39().split(s)
	outer := func(r rune) bool { return r == ' ' || isPunctuation(r) }
	for i := 1; i < len(list); i++ {
		last := fields(strings.TrimRightFunc(list[i-1], outer))
		first := fields(strings.TrimLeftFunc(list[i], outer))
		if len(last) == 0 || len(first) == 0 || !same(last[len(last)-1], first[0]) {
			return false
		}
	}
	return true
}

// paragraphsLastFirst wants each line to end with the word that it begins with.
func paragraphsLastFirst(s string) bool {
	for line := range strings.SplitSeq(s, "\n") {
		words := fields(trimmed(lowered(strip(line))))
		if len(words) > 0 && words[0] != words[len(words)-1] {
			return false
		}
	}
	return true
}

// composition wants three paragraphs between *** of so many sentences, of so many tokens each. Punctuation counts as
// a word, and unlike in other instructions no paragraph may be blank, as in the published program.
func composition(a *arguments) Check {
	sentences, words := a.count("n_sent", 1), a.count("n_words", 1)
	divider := stars()
	return func(s string) bool {
		parts := divider.Split(s, -1)
		for _, part := range parts {
			list := stopped(part)
			if len(list) != sentences {
				return false
			}
			for _, sentence := range list {
				if len(tokens(sentence)) != words {
					return false
				}
			}
		}
		return len(parts) == 3
	}
}

// hyphenated wants a hyphen and no space between sentences. The published program compares what hyphens part with the
// sentences of the text without hyphens, as far as both go: it is content with any text without a hyphen that is one
// sentence, and with no hyphen within a word.
func hyphenated(s string) bool {
	sentences := stopped(strings.ReplaceAll(s, "-", " "))
	for i, part := range strings.Split(s, "-") {
		if i < len(sentences) && (strip(part) != part || part != sentences[i]) {
			return false
		}
	}
	return true
}

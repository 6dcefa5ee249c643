package instruct

import (
	"regexp"
	"strings"
)

// lengthMakers are the instructions about how much there is of something.
func lengthMakers() map[string]maker {
	return map[string]maker{
		"length_constraints:number_words":             numberOfWords,
		"length_constraints:number_sentences":         numberOfSentences,
		"length_constraints:number_paragraphs":        numberOfParagraphs,
		"length_constraints:nth_paragraph_first_word": firstWordOfParagraph,
		"change_case:capital_word_frequency":          capitalWords,
	}
}

func numberOfWords(a *arguments) Check {
	want, compare := a.count("num_words", 0), a.relation("relation")
	one := regexp.MustCompile(word + "+")
	return func(s string) bool { return compare(len(one.FindAllStringIndex(s, -1)), want) }
}

func numberOfSentences(a *arguments) Check {
	want, compare := a.count("num_sentences", 0), a.relation("relation")
	return func(s string) bool { return compare(english().count(s), want) }
}

// numberOfParagraphs counts what the divider *** separates.
func numberOfParagraphs(a *arguments) Check { return paragraphs(stars(), a.count("num_paragraphs", 0)) }

func stars() *regexp.Regexp { return regexp.MustCompile(space + `?\*\*\*` + space + `?`) }

// paragraphs wants so many paragraphs between dividers. Only the first and the last part may be blank, and do not
// count then.
func paragraphs(divider *regexp.Regexp, want int) Check {
	return func(s string) bool {
		parts := divider.Split(s, -1)
		n := len(parts)
		for i, part := range parts {
			if strip(part) != "" {
				continue
			}
			if i > 0 && i < len(parts)-1 {
				return false
			}
			n--
		}
		return n == want
	}
}

// firstWordOfParagraph wants so many paragraphs, which blank lines separate, and the first word of one of them. The
// word ends before punctuation.
func firstWordOfParagraph(a *arguments) Check {
	want, nth := a.count("num_paragraphs", 1), a.count("nth_paragraph", 1)
	first := strings.ToLower(a.text("first_word"))
	return func(s string) bool {
		parts := strings.Split(s, "\n\n")
		n := 0
		for _, part := range parts {
			if strip(part) != "" {
				n++
			}
		}
		if n != want || nth > n {
			return false
		}
		words := strings.FieldsFunc(parts[nth-1], isSpace)
		if len(words) == 0 {
			return false
		}
		w := strings.TrimLeft(strings.TrimLeft(words[0], "'"), `"`)
		if end := strings.IndexAny(w, `.,?!'"`); end >= 0 {
			w = w[:end]
		}
		return strings.ToLower(w) == first
	}
}

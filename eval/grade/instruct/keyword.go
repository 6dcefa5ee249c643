package instruct

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// keywordMakers are the instructions about words and letters that a response must have or lack.
func keywordMakers() map[string]maker {
	return map[string]maker{
		"keywords:existence":        keywords,
		"keywords:frequency":        keywordFrequency,
		"keywords:forbidden_words":  forbiddenWords,
		"keywords:letter_frequency": letterFrequency,
		"punctuation:no_comma": func(*arguments) Check {
			return func(s string) bool { return !strings.Contains(s, ",") }
		},
	}
}

func keywords(a *arguments) Check {
	words := patterns(a.texts("keywords"))
	return func(s string) bool {
		return !slices.ContainsFunc(words, func(w *regexp.Regexp) bool { return !w.MatchString(s) })
	}
}

func keywordFrequency(a *arguments) Check {
	keyword, want, compare := pattern(a.text("keyword")), a.count("frequency", 0), a.relation("relation")
	return func(s string) bool { return compare(len(keyword.FindAllStringIndex(s, -1)), want) }
}

// forbiddenWords finds words that stand alone: "art" is not in "party".
func forbiddenWords(a *arguments) Check {
	words := patterns(a.texts("forbidden_words"))
	return func(s string) bool {
		return !slices.ContainsFunc(words, func(w *regexp.Regexp) bool { return standsAlone(s, w) })
	}
}

func standsAlone(s string, p *regexp.Regexp) bool {
	for from := 0; from <= len(s); {
		at := p.FindStringIndex(s[from:])
		if at == nil {
			return false
		}
		if atBoundary(s, from+at[0]) && atBoundary(s, from+at[1]) {
			return true
		}
		_, width := utf8.DecodeRuneInString(s[from+at[0]:])
		from += at[0] + max(1, width)
	}
	return false
}

func letterFrequency(a *arguments) Check {
	letter, want, compare := strings.ToLower(a.text("letter")), a.count("let_frequency", 0), a.relation("let_relation")
	if utf8.RuneCountInString(letter) != 1 {
		a.fail("letter must be one letter, not %q", letter)
	}
	return func(s string) bool { return compare(strings.Count(strings.ToLower(s), letter), want) }
}

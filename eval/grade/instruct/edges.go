package instruct

import (
	"slices"
	"strings"
)

// edgeMakers are the instructions about words in certain places: first, last, or so many-th.
func edgeMakers() map[string]maker {
	return map[string]maker{
		"first_word:first_word_sent":         firstWordOfSentences,
		"first_word:first_word_answer":       firstWord,
		"last_word:last_word_sent":           lastWordOfSentences,
		"last_word:last_word_answer":         lastWord,
		"keywords:start_end":                 func(*arguments) Check { return startsAsItEnds },
		"keywords:keyword_specific_position": wordAtExactly,
		"words:keywords_specific_position":   wordAt,
		"words:words_position":               secondWords,
	}
}

// firstWordOfSentences takes what stands before the first space for the word, with its punctuation.
func firstWordOfSentences(a *arguments) Check {
	want := a.word("first_word")
	return func(s string) bool {
		return !slices.ContainsFunc(stopped(s), func(sentence string) bool {
			return sentence == "" || !same(fields(sentence)[0], want)
		})
	}
}

func firstWord(a *arguments) Check {
	want := a.text("first_word")
	return func(s string) bool {
		words := fields(s)
		return len(words) > 0 && same(words[0], want)
	}
}

// lastWordOfSentences takes what stands after the last space for the word, without its punctuation.
func lastWordOfSentences(a *arguments) Check {
	want := a.word("last_word")
	return func(s string) bool {
		return !slices.ContainsFunc(stopped(s), func(sentence string) bool { return !endsInWord(sentence, want) })
	}
}

func lastWord(a *arguments) Check {
	want := a.text("last_word")
	return func(s string) bool { return endsInWord(s, want) }
}

func endsInWord(s, want string) bool {
	words := fields(s)
	return len(words) > 0 && same(want, strings.Map(func(r rune) rune {
		if isWord(r) {
			return r
		}
		return -1
	}, words[len(words)-1]))
}

// startsAsItEnds compares the first token with the last one: a text may not end in a period.
func startsAsItEnds(s string) bool {
	list := tokens(s)
	return len(list) > 1 && same(list[0], list[len(list)-1])
}

// wordAtExactly is open-instruct's: punctuation counts as a word, and letter case matters.
func wordAtExactly(a *arguments) Check {
	keyword, n, m := a.word("keyword"), a.count("n", 1), a.count("m", 1)
	return func(s string) bool {
		list := stopped(s)
		if len(list) < n {
			return false
		}
		words := tokens(list[n-1])
		return len(words) >= m && words[m-1] == keyword
	}
}

// wordAt is IFBench's: punctuation does not count, and neither does letter case.
func wordAt(a *arguments) Check {
	keyword, n, m := a.text("keyword"), a.count("n", 1), a.count("m", 1)
	return func(s string) bool {
		list := english39().split(s)
		if len(list) < n {
			return false
		}
		words := wordTokens(list[n-1])
		return len(words) >= m && same(words[m-1], keyword)
	}
}

// secondWords wants a keyword as the second word and as the last but one, where a mark at the end does not count and
// others do.
func secondWords(a *arguments) Check {
	keyword := a.text("keyword")
	return func(s string) bool {
		list := tokens(s)
		if len(list) < 2 {
			return false
		}
		second := list[1]
		if strings.Contains(punctuation, list[len(list)-1]) {
			list = list[:len(list)-1]
		}
		return len(list) > 1 && same(second, keyword) && same(list[len(list)-2], keyword)
	}
}

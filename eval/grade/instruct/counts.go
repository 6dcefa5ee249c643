package instruct

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// countMakers are the instructions about how many words, numbers, names or letters a response has.
func countMakers() map[string]maker {
	return map[string]maker{
		"count:word_count_range":   wordCountRange,
		"count:unique_word_count":  uniqueWordCount,
		"count:conjunctions":       conjunctions,
		"count:person_names":       personNames,
		"count:numbers":            numbers,
		"count:punctuation":        func(*arguments) Check { return everyMark },
		"count:pronouns":           pronouns,
		"count:keywords_multiple":  keywordsMultiple,
		"count:lowercase_counting": lowercaseWords,
		"count:count_unique":       func(*arguments) Check { return noTokenTwice },

		"count:count_increment_word":            keywordsOnceAndTwice,
		"letters:letter_counting":               letterCount,
		"letters:letter_counting2":              letterFrequency,
		"keywords:word_once":                    keywordOnce,
		"keywords:word_count_different_numbers": keywordFrequency,
		"words:repeats":                         repeatedWords,
		"words:palindrome":                      func(*arguments) Check { return tenPalindromes },
		"keywords:palindrome":                   func(*arguments) Check { return somePalindrome },
	}
}

func wordCountRange(a *arguments) Check {
	least, most := a.count("min_words", 0), a.count("max_words", 0)
	if most < least {
		a.fail("max_words is %d, below min_words, %d", most, least)
	}
	one := regexp.MustCompile(word + "+")
	return func(s string) bool {
		n := len(one.FindAllStringIndex(s, -1))
		return least <= n && n <= most
	}
}

// uniqueWordCount counts different words. As in the published program, a word of punctuation alone is one more.
func uniqueWordCount(a *arguments) Check {
	want := a.count("N", 0)
	return func(s string) bool {
		seen := map[string]bool{}
		for _, w := range fields(lowered(s)) {
			seen[trimmed(w)] = true
		}
		return len(seen) >= want
	}
}

// conjunctions counts different coordinating conjunctions. As in the published program, they differ also by letter
// case and punctuation: "and", "And" and "and," are three.
func conjunctions(a *arguments) Check {
	want := a.count("small_n", 0)
	return func(s string) bool {
		seen := map[string]bool{}
		for _, w := range fields(s) {
			switch lowered(trimmed(w)) {
			case "and", "but", "for", "nor", "or", "so", "yet":
				seen[w] = true
			}
		}
		return len(seen) >= want
	}
}

// names lists the names in IFBench's prompts.
var names = sync.OnceValue(func() []string {
	return strings.Fields("Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte " +
		"Alexander Amelia Benjamin Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella " +
		"Jacob Scarlett Nathan Victoria Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora " +
		"Andrew Aria Joseph Claire Ryan Stella Jonathan")
})

func personNames(a *arguments) Check {
	want := a.count("N", 0)
	return func(s string) bool {
		found := map[string]bool{}
		for _, w := range wordRuns(s) {
			found[w] = true
		}
		n := 0
		for _, name := range names() {
			if found[name] {
				n++
			}
		}
		return n >= want
	}
}

// numbers counts runs of digits after all punctuation is gone: 1,000.50 is one, and so is 1-2.
func numbers(a *arguments) Check {
	want := a.count("N", 0)
	one := regexp.MustCompile(digit + "+")
	return func(s string) bool { return len(one.FindAllStringIndex(bare(s), -1)) == want }
}

// everyMark wants . , ! ? ; : and ?!, whose own marks do not count.
func everyMark(s string) bool {
	rest := strings.Replace(s, "?!", "", 1)
	if len(rest) == len(s) {
		rest = strings.Replace(s, "!?", "", 1)
	}
	if len(rest) == len(s) && !strings.Contains(s, "‽") {
		return false
	}
	return !slices.ContainsFunc([]string{".", ",", "!", "?", ";", ":"},
		func(mark string) bool { return !strings.Contains(rest, mark) })
}

var pronounWords = sync.OnceValue(func() map[string]bool {
	return setOf("i me we us you he him she her it they them my mine our ours your yours his hers its their theirs " +
		"myself ourselves yourself yourselves himself herself itself themselves this that these those who whom " +
		"whose which what whoever whomever whatever whichever anybody anyone anything everybody everyone everything " +
		"nobody nothing somebody someone something each either neither both all some any none")
})

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

func pronouns(a *arguments) Check {
	want := a.count("N", 0)
	return func(s string) bool {
		n := 0
		for _, t := range tokens(lowered(strings.ReplaceAll(s, "/", " "))) {
			if pronounWords()[t] {
				n++
			}
		}
		return n >= want
	}
}

// keywordsMultiple wants five keywords, also within words, so often each.
func keywordsMultiple(a *arguments) Check {
	counts := map[string]int{"keyword1": 1, "keyword2": 2, "keyword3": 3, "keyword4": 5, "keyword5": 7}
	keywords := map[string]string{}
	for _, name := range []string{"keyword1", "keyword2", "keyword3", "keyword4", "keyword5"} {
		keywords[name] = lowered(a.text(name))
	}
	return func(s string) bool {
		s = lowered(s)
		for name, keyword := range keywords {
			if strings.Count(s, keyword) != counts[name] {
				return false
			}
		}
		return true
	}
}

// lowercaseWords counts all words in lower case together, although its prompt seems to mean each of them.
func lowercaseWords(a *arguments) Check {
	most := a.count("N", 1)
	return func(s string) bool {
		n := 0
		for _, w := range wordRuns(s) {
			if !strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) {
				n++
			}
		}
		return n <= most
	}
}

// noTokenTwice takes punctuation for words: of two sentences, the second period is one too many.
func noTokenTwice(s string) bool {
	seen := map[string]bool{}
	for _, t := range tokens(s) {
		if seen[t] {
			return false
		}
		seen[t] = true
	}
	return true
}

func keywordsOnceAndTwice(a *arguments) Check {
	once, twice := pattern(a.text("keyword1")), pattern(a.text("keyword2"))
	return func(s string) bool {
		return len(once.FindAllStringIndex(s, -1)) == 1 && len(twice.FindAllStringIndex(s, -1)) == 2
	}
}

func letterCount(a *arguments) Check {
	want, compare := a.count("N", 1), a.relation("relation")
	return func(s string) bool {
		n := 0
		for _, r := range s {
			if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
				n++
			}
		}
		return compare(n, want)
	}
}

func keywordOnce(a *arguments) Check {
	keyword := pattern(a.text("keyword"))
	return func(s string) bool { return len(keyword.FindAllStringIndex(s, -1)) == 1 }
}

func repeatedWords(a *arguments) Check {
	most := a.count("small_n", 0)
	return func(s string) bool {
		counts := map[string]int{}
		for _, w := range fields(bare(lowered(s))) {
			if counts[w]++; counts[w] > most {
				return false
			}
		}
		return true
	}
}

// tenPalindromes wants ten words that read the same backwards, of five characters at least; one may be all ten.
func tenPalindromes(s string) bool {
	n := 0
	for _, w := range fields(lowered(bare(s))) {
		if r := []rune(w); len(r) >= 5 && mirrored(r) {
			n++
		}
	}
	return n >= 10
}

// somePalindrome is followed by most texts: the published program takes "a" and "-" for palindromes.
func somePalindrome(s string) bool {
	return slices.ContainsFunc(fields(s), func(w string) bool { return mirrored([]rune(w)) })
}

func mirrored(r []rune) bool {
	for i := range len(r) / 2 {
		if r[i] != r[len(r)-1-i] {
			return false
		}
	}
	return true
}

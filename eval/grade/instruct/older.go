package instruct

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// olderMakers are the checks of Tulu 3's rows (Lambert et al. 2024, arXiv 2411.15124): IFEval's instructions by other
// rules, under the names of open-instruct's functions.
func olderMakers() map[string]maker {
	return map[string]maker{
		"verify_keywords":                  olderKeywords,
		"verify_keyword_frequency":         olderKeywordFrequency,
		"validate_forbidden_words":         olderForbiddenWords,
		"verify_letter_frequency":          olderLetterFrequency,
		"validate_response_language":       responseLanguage,
		"verify_paragraph_count":           olderParagraphCount,
		"validate_word_constraint":         olderWords,
		"verify_sentence_constraint":       olderSentences,
		"validate_paragraphs":              olderParagraphs,
		"verify_postscript":                olderPostscript,
		"validate_placeholders":            atLeast(regexp.MustCompile(`\[.*?\]`)),
		"verify_bullet_points":             olderBullets,
		"validate_title":                   func(*arguments) Check { return regexp.MustCompile("<<.*>>").MatchString },
		"validate_choice":                  olderChoice,
		"validate_highlighted_sections":    atLeast(regexp.MustCompile(`\*.*?\*`)),
		"validate_sections":                olderSections,
		"validate_json_format":             func(*arguments) Check { return isJSON },
		"validate_repeat_prompt":           olderRepeatPrompt,
		"validate_two_responses":           func(*arguments) Check { return olderTwoResponses },
		"validate_uppercase":               func(*arguments) Check { return capitalsOnly },
		"validate_lowercase":               func(*arguments) Check { return smallOnly },
		"validate_frequency_capital_words": olderCapitalWords,
		"validate_end":                     olderEnd,
		"validate_quotation":               func(*arguments) Check { return olderQuotation },
		"validate_no_commas":               func(*arguments) Check { return lacks(",") },
	}
}

// quantified returns how the arguments N and quantifier want a count to be compared. Around means within slack.
func (a *arguments) quantified(slack func(n int) int) func(got int) bool {
	want := a.count("N", 0)
	quantifier, _ := a.values["quantifier"].(string)
	switch quantifier {
	case "at least":
		return func(got int) bool { return got >= want }
	case "at most":
		return func(got int) bool { return got <= want }
	case "around":
		return func(got int) bool { return max(got-want, want-got) <= slack(want) }
	}
	a.fail("quantifier must be %s, not %v", `"at least", "at most" or "around"`, shown(a.values["quantifier"]))
	return nil
}

// tenth is a tenth, rounded as Python rounds, and 1 at least.
func tenth(n int) int { return max(int(math.RoundToEven(float64(n)*0.1)), 1) }

func atLeast(find *regexp.Regexp) maker {
	return func(a *arguments) Check {
		want := a.count("N", 0)
		return func(s string) bool { return len(find.FindAllStringIndex(s, -1)) >= want }
	}
}

func olderKeywords(a *arguments) Check {
	keywords := a.texts("keyword_list")
	return func(s string) bool {
		s = lowered(s)
		return !slices.ContainsFunc(keywords, func(k string) bool { return !strings.Contains(s, lowered(k)) })
	}
}

// olderKeywordFrequency counts whole words, so that a keyword of two words never occurs.
func olderKeywordFrequency(a *arguments) Check {
	keyword, want := lowered(a.verbatim("word")), a.count("N", 0)
	return func(s string) bool {
		n := 0
		for _, w := range wordRuns(lowered(s)) {
			if w == keyword {
				n++
			}
		}
		return n == want
	}
}

// olderForbiddenWords finds them within words too.
func olderForbiddenWords(a *arguments) Check {
	words := a.texts("forbidden_words")
	return func(s string) bool {
		s = lowered(s)
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, lowered(w)) })
	}
}

func olderLetterFrequency(a *arguments) Check {
	letter, want := a.verbatim("letter"), a.count("N", 0)
	if utf8.RuneCountInString(letter) != 1 {
		a.fail("letter must be one letter, not %q", letter)
	}
	return func(s string) bool { return strings.Count(s, letter) == want }
}

// olderParagraphCount wants paragraphs between * * *, none blank.
func olderParagraphCount(a *arguments) Check {
	want := a.count("N", 0)
	return func(s string) bool {
		parts := strings.Split(s, "* * *")
		return len(parts) == want && !slices.ContainsFunc(parts, func(p string) bool { return strip(p) == "" })
	}
}

func olderWords(a *arguments) Check {
	compare := a.quantified(tenth)
	return func(s string) bool { return compare(len(fields(s))) }
}

func olderSentences(a *arguments) Check {
	compare := a.quantified(func(int) int { return 1 })
	return func(s string) bool { return compare(olderSentenceCount([]rune(s))) }
}

// olderSentenceCount counts white space after . ? or !, but not after such as "e.g." and "Mr.".
func olderSentenceCount(r []rune) int {
	n := 1
	for i := 1; i < len(r); i++ {
		if !isSpace(r[i]) || !isEnd(r[i-1]) {
			continue
		}
		abbreviation := i >= 4 && isWord(r[i-4]) && r[i-3] == '.' && isWord(r[i-2])
		title := i >= 3 && 'A' <= r[i-3] && r[i-3] <= 'Z' && 'a' <= r[i-2] && r[i-2] <= 'z' && r[i-1] == '.'
		if !abbreviation && !title {
			n++
		}
	}
	return n
}

func olderParagraphs(a *arguments) Check {
	want, nth, first := a.count("N", 1), a.count("i", 1), a.verbatim("first_word")
	if nth > want {
		a.fail("i is %d, above N, %d", nth, want)
	}
	return func(s string) bool {
		parts := strings.Split(s, "\n\n")
		return len(parts) == want && strings.HasPrefix(strip(parts[nth-1]), first)
	}
}

// olderPostscript wants text after the marker.
func olderPostscript(a *arguments) Check {
	marker := a.verbatim("postscript_marker")
	return func(s string) bool {
		at := strings.Index(s, marker)
		return at >= 0 && utf8.RuneCountInString(strip(s[at:])) > utf8.RuneCountInString(marker)
	}
}

func olderBullets(a *arguments) Check {
	want := a.count("N", 0)
	return func(s string) bool {
		n := 0
		for line := range strings.SplitSeq(s, "\n") {
			if line = strip(line); strings.HasPrefix(line, "*") || strings.HasPrefix(line, "-") {
				n++
			}
		}
		return n == want
	}
}

func olderChoice(a *arguments) Check {
	options := a.texts("options")
	return func(s string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.Contains(s, o) })
	}
}

// olderSections counts what stands between splitters; a text before the first one counts too.
func olderSections(a *arguments) Check {
	want, splitter := a.count("N", 0), a.verbatim("section_splitter")
	return func(s string) bool {
		parts := strings.Split(s, splitter)
		if parts[0] == "" {
			parts = parts[1:]
		}
		return len(parts) == want
	}
}

func olderRepeatPrompt(a *arguments) Check {
	prompt := a.verbatim("original_prompt")
	return func(s string) bool { return strings.HasPrefix(s, prompt) }
}

func olderTwoResponses(s string) bool {
	parts := strings.Split(s, "******")
	return len(parts) == 2 && strip(parts[0]) != strip(parts[1])
}

// capitalsOnly reports whether str.upper() changes nothing: small letters are absent, and so are those whose capital
// is two letters, such as ß. Some of Greek with accents pass for capitals here.
func capitalsOnly(s string) bool {
	return s == strings.ToUpper(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == 'ß' || r == 'ŉ' || 'ﬀ' <= r && r <= 'ﬗ'
	})
}

func smallOnly(s string) bool { return s == lowered(s) }

func olderCapitalWords(a *arguments) Check {
	compare := a.quantified(tenth)
	return func(s string) bool {
		n := 0
		for _, w := range wordRuns(s) {
			if !strings.ContainsFunc(w, func(r rune) bool { return r < 'A' || r > 'Z' }) {
				n++
			}
		}
		return compare(n)
	}
}

func olderEnd(a *arguments) Check {
	phrase := a.verbatim("end_phrase")
	return func(s string) bool { return strings.HasSuffix(s, phrase) }
}

func olderQuotation(s string) bool { return strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) }

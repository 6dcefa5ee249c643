package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"exp/eval/grade/wording"
)

// Whether a text ends or breaks off.

// assumption matches words that begin a thought rather than end it.
var assumption = lazy(`(?i)\b(note|let|consider|suppose|assume|recall|first|since|if|` +
	`because|when|using|try)\b`)

// labelled matches a label in any language, a number and a word.
var labelled = lazy(`^\**[\p{L} ]{2,30}\**: ?\**[-−]?[$€£]?[0-9][0-9.,]*(?: (\p{L}+))?$`)

// equation matches a calculation with its result.
var equation = lazy(`[0-9%)a-z$] ?= ?[$€£]?[-−]?[0-9.]|[0-9] equals [$€£]?[-−]?[0-9.]`)

// operator matches signs that make the words after a number more than a noun; tune-ups and eggs/child are nouns.
var operator = lazy(`[,.;:=+*×^(]|(?:^|[^a-z])-|-(?:[^a-z]|$)|/(?: ?[^a-z ]|$)`)

// going are words that lead on from a result; dangling are words that do not end a sentence.
var (
	going = []string{"and", "so", "then", "but", "next", "now", "we", "which", "because", "since", "let", "therefore",
		"thus"}

	dangling = []string{"the", "a", "an", "of", "or", "to", "in", "on", "at", "by", "with", "for", "from", "that",
		"is", "are", "was", "it", "he", "she", "they", "this", "if", "as", "than", "plus", "minus", "per", "his",
		"her", "their", "its", "subtract", "add", "multiply", "divide", "into", "about", "has", "have"}
)

// joining are words that a text continues after.
var joining = []string{"and", "or", "then", "plus", "minus", "times", "of", "which", "with", "to", "but", "so", "from"}

// finished reports whether a last line is complete: it ends in a sign that ends sentences or formulas, or in a
// value, with its unit if it has one.
func finished(line string) bool {
	if strings.HasSuffix(line, "**") && strings.Count(line, "**")%2 == 0 {
		return true
	}
	if m := labelled.FindStringSubmatch(line); m != nil && !slices.Contains(joining, m[1]) {
		return true
	}
	line = strings.TrimRight(line, "*\"' ")
	end, _ := utf8.DecodeLastRuneInString(line)
	if strings.ContainsRune(".!。！$)]}", end) {
		return true
	}
	k := strings.LastIndexFunc(line, func(r rune) bool { return '0' <= r && r <= '9' })
	calculated := equation.MatchString(line)
	if k < 0 || assumption.MatchString(line) && !calculated {
		return false
	}
	rest := strings.TrimSpace(strings.TrimLeft(line[k+1:], "*%°$€ "))
	if calculated && rest != "" && !operator.MatchString(rest) {
		words := strings.Fields(wording.Lower(rest))
		leads := slices.ContainsFunc(words, func(w string) bool { return slices.Contains(going, w) })
		return len(words) <= 8 && !leads && !slices.Contains(dangling, words[len(words)-1])
	}
	return rest == "" || wording.QuantityOf(rest).Known
}

package extract

import (
	"slices"
	"strings"

	"exp/eval/grade/wording"
)

// Values that a sentence lists, times of day, and numbers in words.

const (
	// listed is a value in prose, with a name and an equals sign before it.
	listed = `(?:[a-z](?:_\{?[0-9]\}?)? ?= ?)?(?:\$[^$]{1,60}\$|\\\([^)]{1,60}\\\)|` +
		`[$€£]?[-−]?[0-9][0-9.]*(?:,[0-9]{3})*(?:/[0-9]+)?[%°]?)`
	// enumerated is at least two of them.
	enumerated = listed + `(?:(?:, ` + listed + `)*,? (?:and|or|&) ` + listed + `|(?:, ` + listed + `){2,})`
)

var (
	// enumerations matches a list after a verb. At most two words, such as a unit, follow it in the sentence.
	enumerations = lazy(`(?:\b(?:are|is|were|be|include|equals?|gives?|get|yields?|have|by)|[:=])(?: either)? ` +
		`(` + enumerated + `)((?: [a-z]+){0,2})[.!]?$`)
	braces = lazy(`(?:\b(?:is|are|equals|be)|[:=]) (\{[^{}]*[0-9][^{}]*\})[.!]?$`)
	// labelledList matches two values or more after a label in the plural.
	labelledList = lazy(`(?i)^\**(?:the |my )?(?:[a-z]+ )?(?:solutions|roots|answers|zeros|values|numbers|guesses|` +
		`candidates|possibilities|options)\**:\** (` + listed + `(?:[,;] ` + listed + `)+)[.!]?$`)
	separator = lazy(`,? (?:and|or|&) |[,;] `)
)

// enumeration returns the values that a sentence ends in: 2, 3 and 5. A choice between them is left as written.
func enumeration(s string) string {
	s = strings.TrimRight(s, " *")
	if m := braces.FindStringSubmatch(s); m != nil {
		return "\\" + strings.TrimSuffix(m[1], "}") + "\\}"
	}
	if m := labelledList.FindStringSubmatch(s); m != nil {
		return listOf(m[1], ", ")
	}
	if !strings.Contains(s, " and ") && !strings.Contains(s, " or ") && !strings.Contains(s, " & ") &&
		strings.Count(s, ", ") < 2 {
		return ""
	}
	m := enumerations.FindStringSubmatch(s)
	if m == nil || m[2] != "" && !wording.QuantityOf(m[2]).Known {
		return ""
	}
	word := ", "
	if strings.Contains(m[1], " or ") {
		word = " or "
	}
	return listOf(m[1], word)
}

// listOf joins the values of an enumeration by a word.
func listOf(enumeration, word string) string {
	var values []string
	for _, v := range separator.Split(enumeration, -1) {
		values = append(values, Statement(v))
	}
	return strings.Join(values, word)
}

// partOfMore are words after a number in words that make it a part of something else.
var partOfMore = []string{"of", "or", "more", "less", "times", "than", "another"}

// numberInWords returns the only number in words of a sentence, with a unit after it: seven students.
func numberInWords(s string) (string, bool) {
	words := strings.FieldsFunc(wording.Lower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && r != '-' && r != '\'' && r < 0x80
	})
	found := ""
	for i := 0; i < len(words); {
		v, n := wording.Numeral(strings.FieldsFunc(strings.Join(words[i:min(len(words), i+8)], " "),
			func(r rune) bool { return r == ' ' || r == '-' }))
		if v == nil {
			i++
			continue
		}
		k := wordsOf(words[i:], n)
		next := ""
		if i+k < len(words) {
			next = words[i+k]
		}
		behind := ""
		if i+k+1 < len(words) {
			behind = words[i+k+1]
		}
		some := next == "of" && (!v.IsInt() || behind == "them" || behind == "these") // two thirds of the cake
		more := slices.Contains(partOfMore, next) && !some
		switch {
		case more, words[i] == "one" && next != "" && !wording.QuantityOf(next).Known:
		case found != "":
			return "", false
		default:
			found = strings.Join(words[i:i+k], " ")
			if i > 0 && words[i-1] == "negative" {
				found = "negative " + found
			}
			if next != "" && wording.QuantityOf(next).Known {
				found += " " + next
			}
		}
		i += max(k, 1)
	}
	return found, found != "" && !wording.Unsettled(s)
}

// wordsOf returns the number of words that n parts make up; a hyphen joins parts to a word.
func wordsOf(words []string, n int) int {
	k := 0
	for ; k < len(words) && n > 0; k++ {
		n -= 1 + strings.Count(words[k], "-")
	}
	return k
}

package instruct

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What Python's str and re do where Go's strings and regexp do otherwise.
const (
	space = `[\s\x0b\x1c-\x1f\x85\p{Z}]` // \s
	word  = `[\p{L}\p{N}_]`              // \w
	digit = `\p{Nd}`                     // \d
)

func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// strip is str.strip().
func strip(s string) string { return strings.TrimFunc(s, isSpace) }

// isUpper is str.isupper(): there are letters with case, and none is small.
func isUpper(s string) bool { return cased(s, upper, lower) }

// isLower is str.islower().
func isLower(s string) bool { return cased(s, lower, upper) }

func upper(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }

func lower(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }

func cased(s string, wanted, other func(rune) bool) (some bool) {
	for _, r := range s {
		if other(r) || unicode.IsTitle(r) {
			return false
		}
		some = some || wanted(r)
	}
	return some
}

// pattern compiles a keyword without regard to case. It is a regular expression, as in the published program, or, if
// Go cannot read it as one, a plain text.
func pattern(keyword string) *regexp.Regexp {
	if p, err := regexp.Compile("(?i)" + keyword); err == nil {
		return p
	}
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(keyword))
}

func patterns(keywords []string) (list []*regexp.Regexp) {
	for _, k := range keywords {
		list = append(list, pattern(k))
	}
	return list
}

// atBoundary reports whether a word begins or ends at a byte of s: \b, which Go's regexp knows for ASCII alone.
func atBoundary(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	return isWord(before) != isWord(after)
}

package instruct

import (
	"regexp"
	"strings"
	"sync"
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

// fields is str.split().
func fields(s string) []string { return strings.FieldsFunc(s, isSpace) }

// punctuation is string.punctuation.
const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

func isPunctuation(r rune) bool {
	return '!' <= r && r <= '~' && !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
}

// bare is a text without any punctuation of ASCII.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		if isPunctuation(r) {
			return -1
		}
		return r
	}, s)
}

// trimmed is a text without punctuation of ASCII and blanks at its ends.
func trimmed(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r == ' ' || isPunctuation(r) })
}

// lowered is str.lower() but for the small sigma at the end of words.
func lowered(s string) string { return strings.ToLower(strings.ReplaceAll(s, "İ", "i\u0307")) }

// same reports whether two texts are equal in any letter case.
func same(a, b string) bool {
	a, b = lowered(a), lowered(b)
	return a == b
}

// initial returns the first character of a word that has one.
func initial(w string) rune {
	r, _ := utf8.DecodeRuneInString(w)
	return r
}

// wordRuns are the runs of letters, digits and _: \w+.
func wordRuns(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !isWord(r) })
}

// isDigits is str.isdigit(): decimal digits, and those in circles or raised.
func isDigits(s string) bool {
	for _, r := range s {
		if !unicode.Is(unicode.Nd, r) && !unicode.Is(otherDigits(), r) {
			return false
		}
	}
	return s != ""
}

// otherDigits are the digits that are not decimal.
var otherDigits = sync.OnceValue(func() *unicode.RangeTable {
	return &unicode.RangeTable{
		R16: []unicode.Range16{{0xb2, 0xb3, 1}, {0xb9, 0xb9, 1}, {0x1369, 0x1371, 1}, {0x19da, 0x19da, 1},
			{0x2070, 0x2070, 1}, {0x2074, 0x2079, 1}, {0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247c, 1},
			{0x2488, 0x2490, 1}, {0x24ea, 0x24ea, 1}, {0x24f5, 0x24fd, 1}, {0x24ff, 0x24ff, 1}, {0x2776, 0x277e, 1},
			{0x2780, 0x2788, 1}, {0x278a, 0x2792, 1}},
		R32: []unicode.Range32{{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1},
			{0x1f100, 0x1f10a, 1}},
		LatinOffset: 2,
	}
})

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

// decimal returns the value of a decimal digit of any script. Unicode has the ten of a script in a row.
func decimal(r rune) int {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10
		}
	}
	return 0
}

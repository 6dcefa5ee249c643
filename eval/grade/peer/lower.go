package peer

import (
	"strings"
	"unicode"
)

// pythonLower is str.lower(): İ becomes two code points, and Σ at the end of a word becomes ς.
func pythonLower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	r := []rune(s)
	var b strings.Builder
	for i, c := range r {
		switch {
		case c == 'İ':
			b.WriteString("i\u0307")
		case c == 'Σ' && isFinalSigma(r, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return b.String()
}

// isFinalSigma is CPython's handle_capital_sigma: a cased letter before, none after, without looking at characters
// that are ignored for case.
func isFinalSigma(r []rune, i int) bool {
	j := i - 1
	for j >= 0 && isCaseIgnorable(r[j]) {
		j--
	}
	if j < 0 || !isCased(r[j]) {
		return false
	}
	j = i + 1
	for j < len(r) && isCaseIgnorable(r[j]) {
		j++
	}
	return j == len(r) || !isCased(r[j])
}

func isCased(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) || unicode.Is(unicode.Other_Lowercase, r) ||
		unicode.Is(unicode.Other_Uppercase, r)
}

func isCaseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·’\u2018\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a", r)
}

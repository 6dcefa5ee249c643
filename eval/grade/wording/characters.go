package wording

import "strings"

// AllDigits reports whether s has nothing but digits.
func AllDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// Lower is strings.ToLower for ASCII, which keeps byte offsets.
func Lower(s string) string {
	upper := false
	for i := 0; i < len(s) && !upper; i++ {
		upper = 'A' <= s[i] && s[i] <= 'Z'
	}
	if !upper {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// validText returns b as text. Invalid UTF-8 becomes U+FFFD, one for each maximal part that
// begins a character but does not end it (Unicode 3.9, "U+FFFD Substitution of Maximal
// Subparts"), as in Python's errors="replace".
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = subpart(b)
			out.WriteRune(utf8.RuneError)
		} else {
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}

// subpart returns the length of the maximal part at the start of b, which is invalid there,
// that could have become a character.
func subpart(b []byte) int {
	low, high, most := byte(0x80), byte(0xBF), 0 // bounds of the second byte; bytes after the first
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		most = 1
	case c >= 0xE0 && c <= 0xEF:
		most = 2
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		most = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n <= most && n < len(b) && b[n] >= low && b[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}

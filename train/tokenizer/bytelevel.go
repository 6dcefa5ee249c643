package tokenizer

import "unicode/utf8"

// byteRune returns the printable character that GPT-2's byte level writes for a byte: the
// byte itself if printable in Latin-1, else one from U+0100 on.
func byteRune(b byte) rune {
	switch {
	case b >= '!' && b <= '~', b >= 0xA1 && b <= 0xAC, b >= 0xAE:
		return rune(b)
	case b <= ' ':
		return 0x100 + rune(b)
	case b <= 0xA0: // 0x7F to 0xA0 come after the 33 up to the space
		return 0x121 + rune(b-0x7F)
	}
	return 0x143 // 0xAD, the soft hyphen
}

// runeByte is the inverse of byteRune.
func runeByte(r rune) (byte, bool) {
	switch {
	case r >= '!' && r <= '~', r >= 0xA1 && r <= 0xAC, r >= 0xAE && r <= 0xFF:
		return byte(r), true
	case r >= 0x100 && r <= 0x120:
		return byte(r - 0x100), true
	case r >= 0x121 && r <= 0x142:
		return byte(r - 0x121 + 0x7F), true
	case r == 0x143:
		return 0xAD, true
	}
	return 0, false
}

// byteLevel writes each byte of s as its printable character.
func byteLevel(s string) string {
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		b = utf8.AppendRune(b, byteRune(s[i]))
	}
	return string(b)
}

// fromByteLevel undoes byteLevel; false if s has a character that stands for no byte.
func fromByteLevel(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		c, ok := runeByte(r)
		if !ok {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}

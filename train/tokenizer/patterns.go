package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split patterns of published tokenizers with a hand-written scanner. Other patterns use a
// regular expression.
const (
	patternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	// patternQwen is the pattern of Qwen2, Qwen2.5 and Qwen3; Llama-3 takes up to three
	// digits together.
	patternQwen   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// DeepSeek-V2 and later split three times.
	patternDigits   = `\p{N}{1,3}`
	patternCJK      = `[一-龥぀-ゟ゠-ヿ]+`
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" +
		"[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)

// scanner finds the leftmost match of a pattern at or after from. It returns len(s), len(s)
// without a match. Matches are never empty.
type scanner func(s string, from int) (start, end int)

// knownScanner returns the scanner of a pattern by its exact text, or nil. Line ends in a
// pattern may be literal or written as \r and \n.
func knownScanner(pattern string) scanner {
	switch strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(pattern) {
	case patternGPT2:
		return scanGPT2
	case patternQwen:
		return func(s string, from int) (int, int) { return scanQwen(s, from, 1) }
	case patternLlama3:
		return func(s string, from int) (int, int) { return scanQwen(s, from, 3) }
	case patternDigits:
		return scanDigits
	case patternCJK:
		return scanCJK
	case patternDeepSeek:
		return scanDeepSeek
	}
	return nil
}

// class is a character's class; the patterns distinguish no more.
type class uint8

const (
	classOther  class = iota // marks, controls and unassigned ones
	classLetter              // \p{L}
	classNumber              // \p{N}
	classSpace               // \s
	classSign                // \p{P} and \p{S}
)

// asciiClass holds the class of each ASCII character: space for 9 to 13 and 32.
var asciiClass = func() (t [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = wideClass(r)
	}
	return t
}()

func wideClass(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return classLetter
	case unicode.IsSpace(r):
		return classSpace
	case unicode.IsNumber(r):
		return classNumber
	case unicode.IsPunct(r) || unicode.IsSymbol(r):
		return classSign
	}
	return newerClass(r)
}

// classAt returns the class and the length of the character of s at i; i is in s.
func classAt(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return wideClass(r), n
}

// run returns the end of the characters of class c from i on.
func run(s string, i int, c class) int {
	for i < len(s) {
		k, n := classAt(s, i)
		if k != c {
			break
		}
		i += n
	}
	return i
}

// otherRun returns the end of the characters from i on that are neither space, letter nor
// number.
func otherRun(s string, i int) int {
	for i < len(s) {
		k, n := classAt(s, i)
		if k != classOther && k != classSign {
			break
		}
		i += n
	}
	return i
}

// lineEnds returns the end of the line ends from i on.
func lineEnds(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// suffix returns the end of 's, 't, 're, 've, 'm, 'll or 'd at i, where s has an
// apostrophe, or i without one. Folded, it accepts upper case, and ſ as s.
func suffix(s string, i int, folded bool) int {
	rest := s[i+1:]
	if rest == "" {
		return i
	}
	c := rest[0]
	if folded {
		if strings.HasPrefix(rest, "ſ") {
			return i + 1 + len("ſ")
		}
		c = lower(c)
	}
	switch c {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if len(rest) < 2 {
			return i
		}
		d := rest[1]
		if folded {
			d = lower(d)
		}
		if d == 'e' && c != 'l' || d == 'l' && c == 'l' {
			return i + 3
		}
	}
	return i
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// blank returns the end of the match of \s+(?!\S)|\s+ at i, for white space that ends at
// end: its last character is left to the text after it.
func blank(s string, i, end int) int {
	if end == len(s) {
		return end
	}
	_, n := utf8.DecodeLastRuneInString(s[:end])
	if end-n > i {
		return end - n
	}
	return end
}

// blankOrLines is blank after trying \s*[\r\n]+: a run with line ends matches up to the
// last of them.
func blankOrLines(s string, i, end int) int {
	if last := strings.LastIndexAny(s[i:end], "\r\n"); last >= 0 {
		return i + last + 1
	}
	return blank(s, i, end)
}

// scanGPT2 matches patternGPT2, which covers every character.
func scanGPT2(s string, i int) (start, end int) {
	if i >= len(s) {
		return len(s), len(s)
	}
	if s[i] == '\'' {
		if end := suffix(s, i, false); end > i {
			return i, end
		}
	}
	k, n := classAt(s, i)
	at := i
	if s[i] == ' ' && i+1 < len(s) {
		if k2, n2 := classAt(s, i+1); k2 != classSpace {
			k, n, at = k2, n2, i+1
		}
	}
	switch k {
	case classLetter, classNumber:
		return i, run(s, at+n, k)
	case classSpace:
		return i, blank(s, i, run(s, i+n, classSpace))
	}
	return i, otherRun(s, at+n)
}

// scanQwen matches patternQwen or patternLlama3, which cover every character.
func scanQwen(s string, i, digits int) (start, end int) {
	if i >= len(s) {
		return len(s), len(s)
	}
	if s[i] == '\'' {
		if end := suffix(s, i, true); end > i {
			return i, end
		}
	}
	k, n := classAt(s, i)
	switch k {
	case classLetter:
		return i, run(s, i+n, classLetter)
	case classNumber:
		return i, number(s, i, digits)
	}
	next, width := classOther, 0 // class and width of the next character
	if i+n < len(s) {
		next, width = classAt(s, i+n)
	}
	if next == classLetter && width > 0 && s[i] != '\r' && s[i] != '\n' {
		return i, run(s, i+n+width, classLetter)
	}
	switch {
	case k != classSpace:
		return i, lineEnds(s, otherRun(s, i+n))
	case s[i] == ' ' && width > 0 && (next == classOther || next == classSign):
		return i, lineEnds(s, otherRun(s, i+n+width))
	}
	return i, blankOrLines(s, i, run(s, i+n, classSpace))
}

// number returns the end of up to most numbers from i on.
func number(s string, i, most int) int {
	for ; most > 0 && i < len(s); most-- {
		k, n := classAt(s, i)
		if k != classNumber {
			break
		}
		i += n
	}
	return i
}

// scanDigits matches patternDigits.
func scanDigits(s string, i int) (start, end int) {
	for i < len(s) {
		k, n := classAt(s, i)
		if k == classNumber {
			return i, number(s, i, 3)
		}
		i += n
	}
	return len(s), len(s)
}

// isCJK reports whether r is one of [一-龥぀-ゟ゠-ヿ].
func isCJK(r rune) bool { return r >= '一' && r <= '龥' || r >= '\u3040' && r <= '\u30FF' }

// scanCJK matches patternCJK.
func scanCJK(s string, i int) (start, end int) {
	for i < len(s) {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isCJK(r) {
			i += n
			continue
		}
		start = i
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if !isCJK(r) {
				break
			}
			i += n
		}
		return start, i
	}
	return len(s), len(s)
}

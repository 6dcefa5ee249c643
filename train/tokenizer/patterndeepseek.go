package tokenizer

import (
	"unicode/utf8"
)

// wordAt reports whether s has a letter or a mark at i, and its length.
func wordAt(s string, i int) (bool, int) {
	k, n := classAt(s, i)
	if k == classLetter {
		return true, n
	}
	if k != classOther || s[i] < utf8.RuneSelf {
		return false, n
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return isMark(r), n
}

func wordRun(s string, i int) int {
	for i < len(s) {
		ok, n := wordAt(s, i)
		if !ok {
			break
		}
		i += n
	}
	return i
}

func isASCIILetter(c byte) bool { c = lower(c); return c >= 'a' && c <= 'z' }

// isASCIISign reports whether c is one of ASCII's 32 signs.
func isASCIISign(c byte) bool {
	return c > ' ' && c < 0x7F && !isASCIILetter(c) && (c < '0' || c > '9')
}

// scanDeepSeek matches patternDeepSeek. Numbers and unclassified characters match only
// before a word.
func scanDeepSeek(s string, i int) (start, end int) {
	for i < len(s) {
		if end := deepSeekAt(s, i); end > i {
			return i, end
		}
		_, n := classAt(s, i)
		i += n
	}
	return len(s), len(s)
}

// deepSeekAt returns the end of the match at i, or i.
func deepSeekAt(s string, i int) int {
	if isASCIISign(s[i]) && i+1 < len(s) && isASCIILetter(s[i+1]) {
		end := i + 2
		for end < len(s) && isASCIILetter(s[end]) {
			end++
		}
		return end
	}
	k, n := classAt(s, i)
	// [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+: a mark may be the leading character.
	if k != classLetter && k != classSign && s[i] != '\r' && s[i] != '\n' {
		if end := wordRun(s, i+n); end > i+n {
			return end
		}
	}
	if end := wordRun(s, i); end > i {
		return end
	}
	switch {
	case k == classSign:
		return lineEnds(s, run(s, i+n, classSign))
	case s[i] == ' ' && i+1 < len(s):
		if k2, _ := classAt(s, i+1); k2 == classSign {
			return lineEnds(s, run(s, i+1, classSign))
		}
	}
	if k == classSpace {
		return blankOrLines(s, i, run(s, i+n, classSpace))
	}
	return i
}

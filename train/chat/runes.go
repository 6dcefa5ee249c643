package chat

import (
	"unicode/utf8"
	"unsafe"
)

// runeText is text that can be cut by code points.
type runeText struct {
	s     string
	runes []rune // nil: s is ASCII
}

func (t runeText) len() int {
	if t.runes == nil {
		return len(t.s)
	}
	return len(t.runes)
}

// cut returns the code points from i up to j.
func (t runeText) cut(i, j int) string {
	if t.runes == nil {
		return t.s[i:j]
	}
	return string(t.runes[i:j])
}

// runeCache keeps the last text, because templates often look at one text many times.
type runeCache struct{ last runeText }

// runesOf returns s for cutting by code points.
func (st *state) runesOf(s string) (runeText, error) {
	last := st.runes.last
	if len(s) == len(last.s) && unsafe.StringData(s) == unsafe.StringData(last.s) {
		return last, nil
	}
	if err := st.charge(len(s) / textPerStep); err != nil {
		return runeText{}, err
	}
	t := runeText{s: s}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			t.runes = []rune(s)
			break
		}
	}
	st.runes.last = t
	return t, nil
}

// isSpace reports whether Python's str.isspace counts r as white space.
func isSpace(r rune) bool {
	switch {
	case r >= 9 && r <= 13, r >= 28 && r <= 32, r == 0x85, r == 0xa0:
		return true
	case r < 0x1680:
		return false
	case r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

// isLineEnd reports whether Python's str.splitlines ends a line at r.
func isLineEnd(r rune) bool {
	return r >= 10 && r <= 13 || r >= 28 && r <= 30 || r == 0x85 || r == 0x2028 || r == 0x2029
}

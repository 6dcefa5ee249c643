package tokenizer

import (
	"testing"

	"golang.org/x/text/unicode/norm"
)

// The library's tables of combining classes and decompositions are old: what it does with
// these texts, of tokenizers 0.23.3, is not what Go's newer tables say.
func TestFormsOfOldTables(t *testing.T) {
	for _, tt := range []struct{ text, nfc, nfkd string }{
		{"a\u1abf\u0355", "a\u1abf\u0355", "a\u1abf\u0355"}, // class 220 since Unicode 13
		{"a\u0301\u1ac5\u0327", "á\u1ac5\u0327", "a\u0301\u1ac5\u0327"},
		{"\u0e38\u0eba\u0e48", "\u0e38\u0eba\u0e48", "\u0e38\u0eba\u0e48"},
		{"a\u07fd\u0323", "a\u07fd\u0323", "a\u07fd\u0323"},
		{"a\U00010f46\u0300", "a\U00010f46\u0300", "a\U00010f46\u0300"},
		{"\U00011935\U00011930", "\U00011935\U00011930", "\U00011935\U00011930"}, // one character since Unicode 13
		{"e\u0301\u32ff\u0301e", "é\u32ff\u0301e", "e\u0301\u32ff\u0301e"},
	} {
		if got := normalForm(norm.NFC, tt.text); got != tt.nfc {
			t.Errorf("NFC of %+q is %+q, want %+q", tt.text, got, tt.nfc)
		}
		if got := normalForm(norm.NFKD, tt.text); got != tt.nfkd {
			t.Errorf("NFKD of %+q is %+q, want %+q", tt.text, got, tt.nfkd)
		}
	}
}

func TestMarksAndSignsOfOldTables(t *testing.T) {
	for r, want := range map[rune]bool{'\u0301': true, '\u0483': true, '\u1cf2': true, '\u07fd': false,
		'\u1abf': false, '\U00011935': false, 'a': false} {
		if got := stripAccents(r) < 0; got != want {
			t.Errorf("StripAccents drops %U: %v, want %v", r, got, want)
		}
	}
	for r, want := range map[rune]bool{'\u166d': true, '\U000111c9': true, '\u2e43': false, '«': true, '$': true, '§': true, '¢': false} {
		if got := isPunctuation(r); got != want {
			t.Errorf("%U is punctuation: %v, want %v", r, got, want)
		}
	}
	for r, want := range map[rune]bool{'1': true, '½': true, '\U00011de0': true, '\U00016ff6': true,
		'\U00011dea': false} {
		if got := isNumber(r); got != want {
			t.Errorf("%U is a number: %v, want %v", r, got, want)
		}
	}
	const upper = "ÀÆ\u1c89\ua7cb\ua7da\ua7dc\U00010d50\U00016eb8"
	const lower = "àæ\u1c8a\u0264\ua7db\u019b\U00010d70\U00016ed3"
	if got := lowercase(upper); got != lower {
		t.Errorf("Lowercase of %+q is %+q, want %+q", upper, got, lower)
	}
	han, err := newRegex(`\p{Han}`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"中": true, "\U0002ebf0": true, "\U0002ee5d": true, "\U0002ee5e": false, "a": false} {
		got := false
		if err := han.matches(text, func(int, int) { got = true }); err != nil || got != want {
			t.Errorf("%+q is Han: %v, %v; want %v", text, got, err, want)
		}
	}
}

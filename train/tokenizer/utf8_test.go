package tokenizer

import "testing"

// What Python's bytes.decode("utf-8", "replace") gives.
func TestValidText(t *testing.T) {
	for in, want := range map[string]string{
		"a÷":                   "a÷",
		"\xe2\x82":             "\uFFFD",
		"\xe2\x82a":            "\uFFFDa",
		"\xe2\x28\xa1":         "\uFFFD(\uFFFD",
		"\xf0\x90\x80":         "\uFFFD",
		"\xf0\x80\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xf4\x90\x80\x80":     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xed\xa0\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xc0\xaf":             "\uFFFD\uFFFD",
		"\xf1\x80\x80\xe1\x80": "\uFFFD\uFFFD",
		"\xff\xfe":             "\uFFFD\uFFFD",
	} {
		if got := validText([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

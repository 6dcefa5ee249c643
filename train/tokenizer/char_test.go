package tokenizer

import (
	"errors"
	"slices"
	"testing"
)

func newChar(t *testing.T, alphabet string) *Char {
	t.Helper()
	c, err := NewChar(alphabet)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCharIDsFollowCodePoints(t *testing.T) {
	c := newChar(t, "b1a÷1b") // sorted and unique: 1 a b ÷
	got, err := c.Encode("ab÷1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{2, 3, 4, 1}; !slices.Equal(got, want) {
		t.Errorf("Encode = %v, want %v", got, want)
	}
	if got, want := c.VocabSize(), 5; got != want {
		t.Errorf("VocabSize = %d, want %d", got, want)
	}
	if got, want := c.Decode([]int32{0, 2, 3, 0, 4, 1, 0, 99, -1}), "ab÷1"; got != want {
		t.Errorf("Decode skips the end token and unknown ids: got %q, want %q", got, want)
	}
	if got := c.Piece(0); len(got) != 0 {
		t.Errorf("Piece of the end token = %q, want nothing", got)
	}
	if got, want := c.EndIDs(), []int32{0}; !slices.Equal(got, want) {
		t.Errorf("EndIDs = %v, want %v", got, want)
	}
}

func TestCharUnknownRune(t *testing.T) {
	tests := []struct {
		name, alphabet, text string
		want                 UnknownRuneError
	}{
		{"first", "abc", "xabc", UnknownRuneError{'x', 0}},
		{"after a wide character", "a÷", "a÷×", UnknownRuneError{'×', 3}},
		{"the first of two", "a", "ayz", UnknownRuneError{'y', 1}},
		{"stray byte", "a", "a\xff", UnknownRuneError{'\uFFFD', 1}},
		{"stray byte where U+FFFD is a character", "a\uFFFD", "a\uFFFD\xff", UnknownRuneError{'\uFFFD', 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newChar(t, tt.alphabet).Encode(tt.text, Options{})
			var got *UnknownRuneError
			if !errors.As(err, &got) || *got != tt.want {
				t.Errorf("Encode(%q): error %v, want %v", tt.text, err, &tt.want)
			}
		})
	}
	err := error(&UnknownRuneError{'×', 3})
	if got, want := err.Error(), `tokenizer: character '×' (U+00D7) at byte 3 is not in the alphabet`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestNewCharRefuses(t *testing.T) {
	for _, alphabet := range []string{"", "a\xff"} {
		if _, err := NewChar(alphabet); err == nil {
			t.Errorf("NewChar(%q) gave no error", alphabet)
		}
	}
}

// Equal ids for every text means equal descriptions, and the other way round.
func TestCharDescription(t *testing.T) {
	if got, want := newChar(t, "b\na").Description(), `char/1 "\nab"`; got != want {
		t.Errorf("Description = %s, want %s", got, want)
	}
	if a, b := newChar(t, "ba").Description(), newChar(t, "aab").Description(); a != b {
		t.Errorf("one alphabet written twice: %s and %s", a, b)
	}
	if a, b := newChar(t, "ab").Description(), newChar(t, "abc").Description(); a == b {
		t.Errorf("two alphabets, one description %s", a)
	}
}

// Decode undoes Encode for every text over the alphabet, and an error names the
// first character that is not in it.
func FuzzChar(f *testing.F) {
	f.Add("abc÷", "cab")
	f.Add("a\uFFFD", "\uFFFDa\xff")
	f.Add("日本語", "語本x")
	f.Fuzz(func(t *testing.T, alphabet, text string) {
		c, err := NewChar(alphabet)
		if err != nil {
			t.Skip()
		}
		ids, err := c.Encode(text, Options{})
		var unknown *UnknownRuneError
		switch {
		case err == nil:
			if got := c.Decode(ids); got != text {
				t.Fatalf("Decode(Encode(%q)) = %q", text, got)
			}
		case errors.As(err, &unknown):
			if _, err := c.Encode(text[:unknown.Offset], Options{}); err != nil {
				t.Fatalf("%q: error at %d, but the text before has one too: %v", text, unknown.Offset, err)
			}
		default:
			t.Fatalf("error of an unknown kind: %v", err)
		}
	})
}

package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// byteTokens has one token per byte, and none at all for id 256: the hardest
// case of a byte-level vocabulary.
type byteTokens struct{ Tokenizer }

func (byteTokens) Piece(id int32) []byte {
	if id > 255 {
		return nil
	}
	return []byte{byte(id)}
}

func TestStreamHoldsBackUnfinishedCharacters(t *testing.T) {
	s := NewStream(byteTokens{})
	tests := []struct {
		id   int32
		want string
	}{
		{'a', "a"},
		{0xC3, "a"},         // first byte of ÷ (C3 B7)
		{0xB7, "a÷"},        //
		{256, "a÷"},         // special
		{0xE2, "a÷"},        // first of three bytes of − (E2 88 92)
		{0x88, "a÷"},        //
		{0x92, "a÷−"},       //
		{0xC3, "a÷−"},       // begins a character …
		{'b', "a÷−\uFFFDb"}, // … that never comes
	}
	for i, tt := range tests {
		s.Push(tt.id)
		if got := s.Text(); got != tt.want {
			t.Fatalf("after token %d (%#x): text %q, want %q", i, tt.id, got, tt.want)
		}
	}
	s.Reset()
	if got := s.Text(); got != "" {
		t.Errorf("after Reset: text %q", got)
	}
}

func TestStreamStop(t *testing.T) {
	tests := []struct {
		name, text string
		stops      []string
		at         int // index of the token that stops; -1 for none
		before     string
	}{
		{"none", "abc", []string{"x"}, -1, ""},
		{"no stop strings", "abc", nil, -1, ""},
		{"empty is none", "abc", []string{""}, -1, ""},
		{"one byte", "ab\ncd", []string{"\n"}, 2, "ab"},
		{"spans tokens", "a</s>b", []string{"</s>"}, 4, "a"},
		{"at the start", "##x", []string{"##"}, 1, ""},
		{"completed first wins", "abcd", []string{"bcd", "bc"}, 2, "a"},
		{"begins first wins", "abc", []string{"c", "bc"}, 2, "a"},
		{"wide characters", "7÷−", []string{"÷−"}, 5, "7"},
		{"overlap with itself", "aab", []string{"ab"}, 2, "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewStream(byteTokens{})
			at, before := -1, ""
			for i := range len(tt.text) {
				s.Push(int32(tt.text[i]))
				if text, ok := s.Stop(tt.stops); ok {
					at, before = i, text
					break
				}
			}
			if at != tt.at || before != tt.before {
				t.Errorf("stopped at token %d with %q, want %d with %q", at, before, tt.at, tt.before)
			}
		})
	}
}

// However a text is cut into tokens, the stream ends up with that text and finds
// the first stop string to be completed.
func TestStreamCutAnywhere(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteString([]string{"a", "b", "÷", "−", "𝒳"}[r.IntN(5)])
		}
		pieces := cut(r, text.String())
		s := NewStream(pieces)
		stopped := false
		for id := range pieces.list {
			s.Push(int32(id))
			if before, ok := s.Stop([]string{"a÷"}); ok && !stopped {
				stopped = true
				if want, _, _ := strings.Cut(text.String(), "a÷"); before != want {
					t.Fatalf("seed %d, %q as %q: stopped after %q, want %q", seed, text.String(), pieces.list, before, want)
				}
			}
		}
		if got := s.Text(); got != text.String() {
			t.Fatalf("seed %d, %q: text %q", seed, pieces.list, got)
		}
		if want := strings.Contains(text.String(), "a÷"); stopped != want {
			t.Fatalf("seed %d, %q as %q: stopped %v, want %v", seed, text.String(), pieces.list, stopped, want)
		}
	}
}

// pieceList is a vocabulary whose token i is list[i].
type pieceList struct {
	Tokenizer
	list []string
}

func (p pieceList) Piece(id int32) []byte { return []byte(p.list[id]) }

// cut splits text at random bytes.
func cut(r *rand.Rand, text string) pieceList {
	var p pieceList
	for text != "" {
		n := 1 + r.IntN(min(5, len(text)))
		p.list = append(p.list, text[:n])
		text = text[n:]
	}
	return p
}

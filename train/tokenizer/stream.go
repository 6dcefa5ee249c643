package tokenizer

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Stream decodes a sequence token by token and looks for stop strings in it as
// it grows. A token may end inside of a character: its bytes wait for the rest.
// The zero value is not usable; use NewStream. Not safe for concurrent use.
type Stream struct {
	tok  Tokenizer
	text []byte // of all tokens so far
	last int    // length of text before the last token
}

// NewStream returns a stream of no tokens.
func NewStream(t Tokenizer) *Stream { return &Stream{tok: t} }

// Reset forgets all tokens and keeps the memory.
func (s *Stream) Reset() { s.text, s.last = s.text[:0], 0 }

// Push adds a token.
func (s *Stream) Push(id int32) {
	s.last = len(s.text)
	s.text = append(s.text, s.tok.Piece(id)...)
}

// Text is the text so far: complete characters only, with U+FFFD for bytes that
// can no longer become one. Bytes at the end that may yet are left out.
func (s *Stream) Text() string {
	return strings.ToValidUTF8(string(s.text[:complete(s.text)]), string(utf8.RuneError))
}

// Stop looks for the stop strings in what the last token added, also where a stop
// string began in an earlier token. It returns the text before the first of them
// to begin, and whether there is one; an empty stop string is none. Called after
// every Push it finds a stop string with the token that completes it, and costs
// the length of that token and of the stop strings, not of the text.
func (s *Stream) Stop(stops []string) (before string, found bool) {
	at := len(s.text)
	for _, stop := range stops {
		if stop == "" {
			continue
		}
		from := max(0, s.last-len(stop)+1)
		if i := bytes.Index(s.text[from:], []byte(stop)); i >= 0 && from+i < at {
			at, found = from+i, true
		}
	}
	if !found {
		return "", false
	}
	return strings.ToValidUTF8(string(s.text[:at]), string(utf8.RuneError)), true
}

// complete is the length of b without an unfinished character at its end.
func complete(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return len(b)
			}
			return i
		}
	}
	return len(b)
}

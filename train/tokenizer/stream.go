package tokenizer

import (
	"bytes"
	"unicode/utf8"
)

// Stream decodes a sequence token by token and looks for stop strings in it as
// it grows. A token may end inside of a character: its bytes wait for the rest.
// The text is Decode's, but for bytes of byte tokens (<0xE2>) that are not UTF-8:
// here they become one U+FFFD for each maximal part of a character, in Decode one for
// each byte of their run. What a decoder drops at the end of a whole text stays.
// The zero value is not usable; use NewStream. Not safe for concurrent use.
type Stream struct {
	tok  Tokenizer
	text []byte // of all tokens so far
	last int    // length of text before the last token

	started bool   // a token that is not special has been pushed
	drop    []byte // a character to drop while the text has not begun, left times
	left    int
}

// beginner is a Tokenizer whose texts begin in another way than they go on:
// SentencePiece's, which put a space before every text.
type beginner interface {
	leadingPiece(id int32) []byte
	stripped() (c rune, n int)
	isSpecial(id int32) bool
}

// NewStream returns a stream of no tokens.
func NewStream(t Tokenizer) *Stream {
	s := &Stream{tok: t}
	s.Reset()
	return s
}

// Reset forgets all tokens and keeps the memory.
func (s *Stream) Reset() {
	s.text, s.last, s.started, s.left = s.text[:0], 0, false, 0
	if b, ok := s.tok.(beginner); ok {
		var c rune
		c, s.left = b.stripped()
		s.drop = utf8.AppendRune(s.drop[:0], c)
	}
}

// Push adds a token.
func (s *Stream) Push(id int32) {
	s.last = len(s.text)
	piece := s.tok.Piece(id)
	if b, ok := s.tok.(beginner); ok && !s.started {
		if b.isSpecial(id) {
			return
		}
		piece, s.started = b.leadingPiece(id), true
	}
	s.text = append(s.text, piece...)
	if s.last > 0 {
		return
	}
	for s.left > 0 && bytes.HasPrefix(s.text, s.drop) {
		s.text = s.text[:copy(s.text, s.text[len(s.drop):])]
		s.left--
	}
	if len(s.text) > 0 && !bytes.HasPrefix(s.drop, s.text) {
		s.left = 0
	}
}

// Text is the text so far: complete characters only, with U+FFFD for bytes that
// can no longer become one. Bytes at the end that may yet are left out.
func (s *Stream) Text() string { return validText(s.text[:complete(s.text)]) }

// All is the text of a sequence that has ended: Text, and U+FFFD for a character at
// the end that is not complete.
func (s *Stream) All() string { return validText(s.text) }

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
	return validText(s.text[:at]), true
}

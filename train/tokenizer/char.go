package tokenizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// EndToken is the spelling of a Char's end token in Hugging Face files. The end token
// itself has no text.
const EndToken = "<|endoftext|>"

// Char is a tokenizer with one token per character. Id 0 is the end token; ids 1 to n are
// the characters of its alphabet in code-point order. Use NewChar.
type Char struct {
	alphabet []rune         // id i is alphabet[i-1]
	ids      map[rune]int32 // its inverse
	pieces   [][]byte       // [VocabSize] UTF-8 of each id; nil for the end token
}

// NewChar returns a tokenizer for the characters of alphabet, whose order and repetitions
// do not matter. It returns an error if alphabet is empty or not UTF-8.
func NewChar(alphabet string) (*Char, error) {
	if alphabet == "" {
		return nil, fmt.Errorf("tokenizer: the alphabet is empty")
	}
	if !utf8.ValidString(alphabet) {
		return nil, fmt.Errorf("tokenizer: the alphabet is not UTF-8: %q", alphabet)
	}
	runes := []rune(alphabet)
	slices.Sort(runes)
	runes = slices.Compact(runes)

	c := &Char{
		alphabet: runes,
		ids:      make(map[rune]int32, len(runes)),
		pieces:   make([][]byte, len(runes)+1),
	}
	for i, r := range runes {
		c.ids[r] = int32(i + 1)
		c.pieces[i+1] = []byte(string(r))
	}
	return c, nil
}

// UnknownRuneError reports a character of a text that is not in the alphabet.
type UnknownRuneError struct {
	Rune   rune // U+FFFD for invalid UTF-8
	Offset int  // in bytes from the start of the text
}

func (e *UnknownRuneError) Error() string {
	return fmt.Sprintf("tokenizer: character %q (%U) at byte %d is not in the alphabet", e.Rune, e.Rune, e.Offset)
}

// Encode returns one id per character. It returns an *UnknownRuneError for the first
// character outside the alphabet. With o.Added the text of EndToken becomes the end token.
// It adds no special tokens.
func (c *Char) Encode(text string, o Options) ([]int32, error) {
	ids := make([]int32, 0, len(text))
	end := 0 // end of the token just read
	for offset, r := range text {
		if offset < end {
			continue
		}
		if o.Added && r == '<' && strings.HasPrefix(text[offset:], EndToken) {
			ids = append(ids, 0)
			end = offset + len(EndToken)
			continue
		}
		id, ok := c.ids[r]
		if r == utf8.RuneError && !strings.HasPrefix(text[offset:], string(utf8.RuneError)) {
			ok = false // a stray byte, not the character U+FFFD
		}
		if !ok {
			return nil, &UnknownRuneError{Rune: r, Offset: offset}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Decode returns the characters of ids without the end token.
func (c *Char) Decode(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(c.Piece(id))
	}
	return b.String()
}

// DecodeAll is Decode with the end token written as EndToken.
func (c *Char) DecodeAll(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(c.Token(id))
	}
	return b.String()
}

// Token returns a character, or EndToken.
func (c *Char) Token(id int32) string {
	if id == 0 {
		return EndToken
	}
	return string(c.Piece(id))
}

// Piece returns the UTF-8 of a character, nothing for the end token or an id outside the
// vocabulary.
func (c *Char) Piece(id int32) []byte {
	if id < 0 || int(id) >= len(c.pieces) {
		return nil
	}
	return c.pieces[id]
}

// VocabSize counts the characters and the end token.
func (c *Char) VocabSize() int { return len(c.pieces) }

// EndIDs returns the end token's id, 0.
func (c *Char) EndIDs() []int32 { return []int32{0} }

// SpecialTokens returns the end token as eos_token and pad_token.
func (c *Char) SpecialTokens() Special {
	return endOnly()
}

// TokenID returns the id of a character or of EndToken.
func (c *Char) TokenID(text string) (int32, bool) {
	if text == EndToken {
		return 0, true
	}
	r, n := utf8.DecodeRuneInString(text)
	if n != len(text) || r == utf8.RuneError && text != string(r) {
		return 0, false
	}
	id, ok := c.ids[r]
	return id, ok
}

// Description returns `char/1 ` and the alphabet in quotes.
func (c *Char) Description() string {
	return "char/1 " + strconv.QuoteToASCII(string(c.alphabet))
}

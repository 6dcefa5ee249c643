package form

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Tokens is the part of a tokenizer that a Vocabulary needs.
type Tokens interface {
	// Piece returns the bytes that a token adds to a text; empty for special tokens.
	Piece(id int32) []byte
	// VocabSize is one more than the largest id.
	VocabSize() int
}

// Vocabulary holds the texts of tokens as a tree. It is immutable.
type Vocabulary struct {
	size  int
	of    Tokens
	chars []rune // that tokens can write, in order; nil: all
	left  map[int32]bool

	// The tree's nodes in depth-first order: byte, depth, the first node that is not below, and the tokens that end
	// there, tokens[first[i]:first[i+1]].
	bytes   []byte
	depth   []uint16
	skip    []int32
	first   []int32
	tokens  []int32
	deepest int
}

// longestPiece bounds the bytes of a token that a form may use.
const longestPiece = 1 << 12

// NewVocabulary reads the texts of all tokens.
//
// Tokens with a byte that no UTF-8 has are left out. Tokens that can write every byte can write every text. Of others
// the characters count that are tokens of their own, and tokens with parts of characters are left out: then any text
// of those characters can go on one by one.
func NewVocabulary(of Tokens) *Vocabulary {
	v := &Vocabulary{size: of.VocabSize(), of: of, left: map[int32]bool{}}
	var ids []int32
	var single [256]bool
	chars := map[rune]bool{}
	for id := range int32(v.size) {
		p := of.Piece(id)
		if len(p) == 0 {
			continue
		}
		ids = append(ids, id)
		if len(p) == 1 {
			single[p[0]] = true
		}
		if r, n := utf8.DecodeRune(p); n == len(p) && (r != utf8.RuneError || n > 1) {
			chars[r] = true
		}
	}
	bytewise := !slices.Contains(single[:], false)
	if !bytewise {
		v.chars = make([]rune, 0, len(chars))
		for r := range chars {
			v.chars = append(v.chars, r)
		}
		slices.Sort(v.chars)
	}
	ids = slices.DeleteFunc(ids, func(id int32) bool {
		p := of.Piece(id)
		v.left[id] = len(p) > longestPiece || bytes.IndexByte(p, marked) >= 0 || !bytewise && !utf8.Valid(p)
		return v.left[id]
	})
	slices.SortStableFunc(ids, func(a, b int32) int { return bytes.Compare(of.Piece(a), of.Piece(b)) })
	v.plant(ids)
	return v
}

// plant builds the tree of tokens in the order of their texts.
func (v *Vocabulary) plant(ids []int32) {
	var open []int32 // nodes of the last text
	var last []byte
	closed := func(n int) {
		for len(open) > n {
			v.skip[open[len(open)-1]] = int32(len(v.bytes))
			open = open[:len(open)-1]
		}
	}
	for _, id := range ids {
		p := v.of.Piece(id)
		same := 0
		for same < min(len(p), len(last)) && p[same] == last[same] {
			same++
		}
		closed(same)
		for i := same; i < len(p); i++ {
			open = append(open, int32(len(v.bytes)))
			v.bytes, v.depth = append(v.bytes, p[i]), append(v.depth, uint16(i))
			v.skip, v.first = append(v.skip, 0), append(v.first, int32(len(v.tokens)))
		}
		v.tokens, last, v.deepest = append(v.tokens, id), p, max(v.deepest, len(p))
	}
	closed(0)
	v.first = append(v.first, int32(len(v.tokens)))
}

// piece returns the bytes of a token that a form may use.
func (v *Vocabulary) piece(id int32) []byte {
	if id < 0 || int(id) >= v.size || v.left[id] {
		return nil
	}
	return v.of.Piece(id)
}

package tokenizer

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// model turns pieces from the pre-tokenizers into ids.
type model interface {
	// encode appends the ids of a piece, which is not empty.
	encode(ids []int32, piece string, w *memory) ([]int32, error)
	words() *vocabulary
}

// bpe is byte-pair encoding: a piece starts as its characters (on the byte level, its
// bytes), and the lowest-ranked pair is merged until no pair has a rank.
type bpe struct {
	vocab        *vocabulary
	merges       *merges
	unk          int32 // -1: drop text outside the vocabulary
	unkText      string
	fuseUnk      bool
	fallback     bool // encode a character without a token as its bytes <0x..>
	ignoreMerges bool // encode a piece that is a token as that token, without merging
	prefix       string
	suffix       string
	bytes        [256]int32       // of byte fallback
	runes        []int32          // ids of the first characters, for speed; -1 if none
	joins        *pairs[struct{}] // pairs of characters joined by some merge
	raw          bool             // pieces are bytes
	rawBytes     [256]int32       // token of each byte; -1 if none
	rawIDs       *vocabulary      // with ignoreMerges: tokens by their bytes
}

// bpeJSON is the model in tokenizer.json.
type bpeJSON struct {
	Dropout      *float64        `json:"dropout"`
	Unk          *string         `json:"unk_token"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	FuseUnk      *bool           `json:"fuse_unk"`
	Fallback     *bool           `json:"byte_fallback"`
	IgnoreMerges *bool           `json:"ignore_merges"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
}

// tableRunes is the length of bpe.runes: up to kana and SentencePiece's marks.
const tableRunes = 0x3100

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// parseBPE builds a BPE and adds its identifying content to h.
func parseBPE(raw json.RawMessage, h *digest) (*bpe, error) {
	var f bpeJSON
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if f.Dropout != nil && *f.Dropout != 0 {
		return nil, fmt.Errorf("model: dropout %v makes ids random; set it to null", *f.Dropout)
	}
	if absent(f.Vocab) || absent(f.Merges) {
		return nil, fmt.Errorf("model: BPE needs vocab and merges")
	}
	m := &bpe{vocab: newVocabulary(), unk: -1, unkText: deref(f.Unk), fuseUnk: deref(f.FuseUnk),
		fallback:     deref(f.Fallback),
		ignoreMerges: deref(f.IgnoreMerges), prefix: deref(f.Prefix), suffix: deref(f.Suffix)}
	if err := readVocab(f.Vocab, m.vocab.set); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if f.Unk != nil {
		if id, ok := m.vocab.id(*f.Unk); ok {
			m.unk = id
		} else {
			m.unk = missingUnk
		}
	}
	h.add("BPE", f.Unk, m.fuseUnk, m.fallback, m.ignoreMerges, m.prefix, m.suffix)
	h.vocabulary(m.vocab)
	if err := m.readMerges(f.Merges, h); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	m.index()
	return m, nil
}

// missingUnk is an unk_token outside the vocabulary: an error only when needed.
const missingUnk = -2

func (m *bpe) readMerges(raw json.RawMessage, h *digest) error {
	type pair struct{ a, b, id int32 }
	var list []pair
	var joined []byte
	err := readMerges(raw, func(a, b string) error {
		left, ok1 := m.vocab.id(a)
		right, ok2 := m.vocab.id(b)
		if len(b) < len(m.prefix) {
			return fmt.Errorf("token %q is shorter than continuing_subword_prefix %q", b, m.prefix)
		}
		joined = append(append(joined[:0], a...), b[len(m.prefix):]...)
		id, ok3 := m.vocab.id(string(joined))
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("tokens %q, %q and %q are not all in the vocabulary", a, b, joined)
		}
		list = append(list, pair{left, right, id})
		h.pair(left, right)
		return nil
	})
	if err != nil {
		return err
	}
	m.merges = newMerges(len(list))
	for rank, p := range list {
		m.merges.set(p.a, p.b, uint32(rank), p.id)
	}
	return nil
}

// index fills the tables that make encoding fast.
func (m *bpe) index() {
	m.bytes = m.vocab.byteIDs()
	m.runes = make([]int32, tableRunes)
	for r := range m.runes {
		m.runes[r] = m.vocab.idOrNone(string(rune(r)))
	}
	if m.prefix != "" || m.suffix != "" {
		return
	}
	m.joins = newPairs[struct{}](0)
	for _, key := range m.merges.keys {
		if key == noPair {
			continue
		}
		left, _ := m.vocab.of(int32(key >> 32))
		right, _ := m.vocab.of(int32(uint32(key)))
		a, _ := utf8.DecodeLastRuneInString(left)
		b, _ := utf8.DecodeRuneInString(right)
		m.joins.set(pairKey(a, b), struct{}{})
	}
}

// useBytes makes pieces bytes by undoing the byte level's characters in the vocabulary
// once. It reports whether this model supports that.
func (m *bpe) useBytes() bool {
	if m.prefix != "" || m.suffix != "" || m.fallback {
		return false
	}
	m.raw, m.joins = true, nil
	for b := range m.rawBytes {
		m.rawBytes[b] = m.vocab.idOrNone(string(byteRune(byte(b))))
	}
	if m.ignoreMerges {
		m.rawIDs = newVocabulary()
		for text, id := range m.vocab.byText() {
			if bytes, ok := fromByteLevel(text); ok {
				_ = m.rawIDs.set(bytes, int64(id)) // an id of the vocabulary is in range
			}
		}
	}
	return true
}

func (m *bpe) words() *vocabulary { return m.vocab }

func (m *bpe) encode(ids []int32, piece string, w *memory) ([]int32, error) {
	if m.ignoreMerges {
		known := m.vocab
		if m.raw {
			known = m.rawIDs
		}
		if id, ok := known.id(piece); ok {
			return append(ids, id), nil
		}
	}
	if m.joins == nil {
		return m.cached(ids, piece, w)
	}
	// Cut where no merge can join: the parts are independent.
	var err error
	from := 0
	var before rune
	beforeID := int32(-1)
	for i, r := range piece {
		id := m.runeID(r)
		if id >= 0 && beforeID >= 0 {
			if _, join := m.joins.get(pairKey(before, r)); !join {
				if ids, err = m.cached(ids, piece[from:i], w); err != nil {
					return ids, err
				}
				from = i
			}
		}
		before, beforeID = r, id
	}
	return m.cached(ids, piece[from:], w)
}

// runeID returns the token of one character, -1 if none.
func (m *bpe) runeID(r rune) int32 {
	if r < tableRunes {
		return m.runes[r]
	}
	return m.vocab.idOrNone(string(r))
}

// cached returns the ids of a piece that w has seen.
func (m *bpe) cached(ids []int32, piece string, w *memory) ([]int32, error) {
	if known, ok := w.seen(piece); ok {
		return append(ids, known...), nil
	}
	var err error
	if m.raw {
		w.symbols, err = m.byteSymbols(w.symbols[:0], piece)
	} else {
		w.symbols, err = m.symbols(w.symbols[:0], piece)
	}
	if err != nil {
		return ids, err
	}
	merged := m.merges.apply(w.symbols, &w.scratch)
	w.keep(piece, merged)
	return append(ids, merged...), nil
}

// byteSymbols appends the tokens of the bytes of a piece.
func (m *bpe) byteSymbols(out []int32, piece string) ([]int32, error) {
	unknown := 0 // pending characters that become one unk token
	for i := range len(piece) {
		id := m.rawBytes[piece[i]]
		if id >= 0 {
			if unknown > 0 {
				out, unknown = append(out, m.unk), 0
			}
			out = append(out, id)
			continue
		}
		var err error
		if out, unknown, err = m.unknown(out, unknown, piece); err != nil {
			return out, err
		}
	}
	if unknown > 0 {
		out = append(out, m.unk)
	}
	return out, nil
}

// unknown counts one more unknown character and writes the pending one unless they fuse. An
// unk token is pending until a known character, so byte fallback may overtake it, as in
// Hugging Face's library.
func (m *bpe) unknown(out []int32, waiting int, piece string) ([]int32, int, error) {
	switch {
	case m.unk == missingUnk:
		return out, waiting, fmt.Errorf("tokenizer: %q has characters outside the vocabulary, which also lacks "+
			"the unk_token %q", clip(piece), m.unkText)
	case m.unk < 0:
		return out, 0, nil
	case waiting > 0 && !m.fuseUnk:
		out = append(out, m.unk)
	}
	return out, 1, nil
}

// symbols appends the tokens of the characters of a piece.
func (m *bpe) symbols(out []int32, piece string) ([]int32, error) {
	unknown := 0
	var err error
	for i, r := range piece {
		end := i + utf8.RuneLen(r)
		id, text := m.symbol(r, i == 0, end == len(piece))
		if id >= 0 {
			if unknown > 0 {
				out, unknown = append(out, m.unk), 0
			}
			out = append(out, id)
			continue
		}
		if m.fallback {
			if text == "" {
				text = piece[i:end]
			}
			if with, ok := m.fall(out, text); ok {
				out = with
				continue
			}
		}
		if out, unknown, err = m.unknown(out, unknown, piece); err != nil {
			return out, err
		}
	}
	if unknown > 0 {
		out = append(out, m.unk)
	}
	return out, nil
}

// symbol returns the token of a character at its place in a piece, or -1; text is its
// spelling in the vocabulary, "" if that is the character alone.
func (m *bpe) symbol(r rune, first, last bool) (id int32, text string) {
	if (first || m.prefix == "") && (!last || m.suffix == "") {
		return m.runeID(r), ""
	}
	text = string(r)
	if !first {
		text = m.prefix + text
	}
	if last {
		text += m.suffix
	}
	return m.vocab.idOrNone(text), text
}

// fall appends the byte tokens of a text if the vocabulary has them all.
func (m *bpe) fall(out []int32, text string) ([]int32, bool) {
	n := len(out)
	for i := range len(text) {
		id := m.bytes[text[i]]
		if id < 0 {
			return out[:n], false
		}
		out = append(out, id)
	}
	return out, true
}

// clip shortens a text for an error.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	at := most
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "…"
}

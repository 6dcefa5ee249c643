package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// unigram is SentencePiece's unigram model: the segmentation of a piece with the
// highest sum of scores, by dynamic programming from left to right (Kudo 2018,
// arXiv:1804.10959).
type unigram struct {
	vocab    *vocabulary
	scores   []float64 // by id
	unk      int32     // -1 for none
	unkScore float64   // score of a character without a token
	fallback bool
	bytes    [256]int32
	trie     *trie
}

// unkPenalty is how far an unknown character scores below the lowest score.
const unkPenalty = 10

func parseUnigram(raw json.RawMessage, h *digest) (*unigram, error) {
	var f struct {
		Vocab    json.RawMessage `json:"vocab"`
		Unk      *int64          `json:"unk_id"`
		Fallback bool            `json:"byte_fallback"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if absent(f.Vocab) {
		return nil, fmt.Errorf("model: Unigram needs a vocab")
	}
	m := &unigram{vocab: newVocabulary(), unk: -1, fallback: f.Fallback, trie: newTrie()}
	lowest := math.Inf(1)
	h.add("Unigram", f.Unk, f.Fallback)
	err := readScores(f.Vocab, func(text string, score float64) error {
		lowest = min(lowest, score)
		m.scores = append(m.scores, score)
		h.add(text, score)
		return m.vocab.set(text, int64(len(m.scores)-1))
	})
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if f.Unk != nil {
		if *f.Unk < 0 || *f.Unk >= int64(len(m.scores)) {
			return nil, fmt.Errorf("model: unk_id %d is outside of the vocabulary of %d", *f.Unk, len(m.scores))
		}
		m.unk = int32(*f.Unk)
	}
	for text, id := range m.vocab.byText() {
		if text != "" {
			m.trie.add(text, id)
		}
	}
	m.unkScore = lowest - unkPenalty
	m.bytes = m.vocab.byteIDs()
	return m, nil
}

func (m *unigram) words() *vocabulary { return m.vocab }

// bestPath is the best segmentation up to some byte: its score and its last token.
type bestPath struct {
	score float64
	from  int32 // -1: no segmentation ends here
	id    int32
}

func (m *unigram) encode(ids []int32, piece string, w *memory) ([]int32, error) {
	if known, ok := w.seen(piece); ok {
		return append(ids, known...), nil
	}
	if err := m.search(piece, w); err != nil {
		return ids, err
	}
	// Walk back; a run of unknown characters is one text.
	out := w.symbols[:0]
	for end := int32(len(piece)); end > 0; {
		b := w.best[end]
		from := b.from
		if b.id == m.unk {
			for from > 0 && w.best[from].id == m.unk {
				from = w.best[from].from
			}
		}
		var err error
		if out, err = m.backward(out, piece[from:end]); err != nil {
			return ids, err
		}
		end = from
	}
	slices.Reverse(out)
	w.symbols = out
	w.keep(piece, out)
	return append(ids, out...), nil
}

// search fills w.best for every byte of the piece.
func (m *unigram) search(piece string, w *memory) error {
	best := slices.Grow(w.best[:0], len(piece)+1)[:len(piece)+1]
	for i := range best {
		best[i] = bestPath{from: -1}
	}
	w.best = best
	for i := 0; i < len(piece); {
		_, width := utf8.DecodeRuneInString(piece[i:])
		here, single := best[i].score, false
		offer := func(end int, score float64, id int32) {
			if b := &best[end]; b.from < 0 || here+score > b.score {
				*b = bestPath{here + score, int32(i), id}
			}
		}
		node := int32(0)
		for end := i; end < len(piece); {
			if node = m.trie.child(node, piece[end]); node < 0 {
				break
			}
			end++
			if id := m.trie.ids[node]; id >= 0 {
				offer(end, m.scores[id], id)
				single = single || end-i == width
			}
		}
		if !single {
			if m.unk < 0 {
				return fmt.Errorf("tokenizer: %q has characters outside the vocabulary, and the model has "+
					"no unk_id", clip(piece))
			}
			offer(i+width, m.unkScore, m.unk)
		}
		i += width
	}
	return nil
}

// backward appends the ids of one text in reverse order.
func (m *unigram) backward(out []int32, text string) ([]int32, error) {
	if id, ok := m.vocab.id(text); ok {
		return append(out, id), nil
	}
	if m.fallback {
		n := len(out)
		for i := len(text) - 1; i >= 0; i-- {
			id := m.bytes[text[i]]
			if id < 0 {
				out = out[:n]
				break
			}
			out = append(out, id)
		}
		if len(out) > n {
			return out, nil
		}
	}
	if m.unk < 0 {
		return out, fmt.Errorf("tokenizer: %q is not in the vocabulary, and the model has no unk_id", clip(text))
	}
	return append(out, m.unk), nil
}

// trie finds the tokens that a text begins with. Node 0 is the root.
type trie struct {
	root  [256]int32
	next  *pairs[int32] // by node and byte
	ids   []int32       // id of the text that ends at a node, -1 if none
	depth int           // length of the longest text
}

func newTrie() *trie {
	t := &trie{next: newPairs[int32](0), ids: []int32{-1}}
	for b := range t.root {
		t.root[b] = -1
	}
	return t
}

func (t *trie) add(text string, id int32) {
	node := int32(0)
	for i := range len(text) {
		child := t.child(node, text[i])
		if child < 0 {
			child = int32(len(t.ids))
			t.ids = append(t.ids, -1)
			if node == 0 {
				t.root[text[i]] = child
			} else {
				t.next.set(pairKey(node, int32(text[i])), child)
			}
		}
		node = child
	}
	t.ids[node] = id
	t.depth = max(t.depth, len(text))
}

// child returns the node after a byte, -1 if none.
func (t *trie) child(node int32, b byte) int32 {
	if node == 0 {
		return t.root[b]
	}
	if child, ok := t.next.get(pairKey(node, int32(b))); ok {
		return child
	}
	return -1
}

// longest returns the longest token that s begins with: its id and length, or -1.
func (t *trie) longest(s string) (id int32, n int) {
	id = -1
	node := int32(0)
	for i := range len(s) {
		if node = t.child(node, s[i]); node < 0 {
			break
		}
		if t.ids[node] >= 0 {
			id, n = t.ids[node], i+1
		}
	}
	return id, n
}

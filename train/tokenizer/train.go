package tokenizer

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// DefaultPattern cuts texts as Qwen2 does, with every digit its own token, which makes sums
// easier to learn.
const DefaultPattern = patternQwen

// TrainOptions are the settings of Train.
type TrainOptions struct {
	VocabSize int      // total tokens: 256 bytes, merges, EndToken and Special
	Pattern   string   // Split pattern in Oniguruma's syntax; "" for DefaultPattern
	Special   []string // further special tokens, such as <|im_start|>
	// MinCount is the number of occurrences a pair needs to be merged; 0 means 2.
	MinCount int
	// Progress is called now and then with the merges done and wanted; while texts are
	// read, with the bytes read and 0. It may be nil.
	Progress func(done, of int)
}

// Train learns a byte-level BPE from texts: it starts from the 256 bytes and merges
// the most frequent pair of neighbouring tokens within a piece until the vocabulary is
// full (Sennrich et al. 2016, arXiv:1508.07909). Ties go to the pair with the smaller
// ids, left id first, so equal texts in any order give equal tokenizers. With few texts
// it stops early, with a smaller vocabulary. Its Files load in Hugging Face's library
// and give the same ids.
func Train(texts iter.Seq[string], o TrainOptions) (*Pipeline, error) {
	if o.Pattern == "" {
		o.Pattern = DefaultPattern
	}
	if o.MinCount <= 0 {
		o.MinCount = 2
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	words, err := countPieces(texts, o)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New("tokenizer: no text to learn from")
	}
	t := newBPETrainer(words)
	t.learn(o.VocabSize-t.size()-1-len(o.Special), o)
	p, err := ReadFiles(t.files(o))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: the learned tokenizer cannot be read back: %w", err)
	}
	return p.(*Pipeline), nil
}

// mostVocab is the largest vocabulary that can be learned.
const mostVocab = 1 << 20

func (o TrainOptions) check() error {
	least := 256 + 1 + len(o.Special)
	if o.VocabSize < least || o.VocabSize > mostVocab {
		return fmt.Errorf("tokenizer: a vocabulary of %d: with 256 bytes, the end token and the special tokens it "+
			"must be at least %d and at most %d", o.VocabSize, least, mostVocab)
	}
	seen := map[string]bool{EndToken: true}
	for _, s := range o.Special {
		if s == "" || seen[s] || !utf8.ValidString(s) || len(s) > mostAdded {
			return fmt.Errorf("tokenizer: special token %q is empty, a duplicate (like %s), not UTF-8 or too long",
				clip(s), EndToken)
		}
		seen[s] = true
	}
	return nil
}

// countPieces cuts the texts and counts equal pieces.
func countPieces(texts iter.Seq[string], o TrainOptions) (map[string]int, error) {
	m, err := newMatcher(o.Pattern)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	cut := splitAt{pattern: m, how: isolated}
	special := []addedToken{{Content: EndToken}}
	for _, text := range o.Special {
		special = append(special, addedToken{Content: text})
	}
	added, err := newAddedTokens(special, nil)
	if err != nil {
		return nil, err
	}
	words := map[string]int{}
	read, told := 0, 0
	for text := range texts {
		if !utf8.ValidString(text) {
			text = validText([]byte(text))
		}
		count := func(p stretch) error {
			if _, ok := words[p.text]; ok {
				words[p.text]++
			} else {
				words[strings.Clone(p.text)] = 1
			}
			return nil
		}
		// Special tokens in a text are tokens and are not learned from.
		err := added.exact.cut(text, func(start, end int) error {
			return cut.split(stretch{text: text[start:end]}, count)
		}, func(addedToken) error { return nil })
		if err != nil {
			return nil, err
		}
		if read += len(text); o.Progress != nil && read-told >= 1<<20 {
			o.Progress(read, 0)
			told = read
		}
	}
	return words, nil
}

// bpeTrainer holds the pieces as tokens, and the places of each pair of neighbours.
type bpeTrainer struct {
	words  []trainWord
	counts map[uint64]int     // count of each pair in all words
	where  map[uint64][]int32 // words that have contained the pair
	queue  pairQueue
	texts  []string // bytes of each token
	merges [][2]int32
	taken  map[string]bool // texts of tokens
}

type trainWord struct {
	ids   []int32
	count int
}

func newBPETrainer(pieces map[string]int) *bpeTrainer {
	t := &bpeTrainer{counts: map[uint64]int{}, where: map[uint64][]int32{}, taken: map[string]bool{}}
	for b := range 256 {
		t.texts = append(t.texts, string([]byte{byte(b)}))
		t.taken[t.texts[b]] = true
	}
	// Sorted, so that nothing depends on the order of a map.
	sorted := make([]string, 0, len(pieces))
	for p := range pieces {
		sorted = append(sorted, p)
	}
	slices.Sort(sorted)
	for _, p := range sorted {
		w := trainWord{count: pieces[p]}
		for i := range len(p) {
			w.ids = append(w.ids, int32(p[i]))
		}
		n := int32(len(t.words))
		t.words = append(t.words, w)
		for i := 0; i+1 < len(w.ids); i++ {
			key := pairKey(w.ids[i], w.ids[i+1])
			t.counts[key] += w.count
			t.note(key, n)
		}
	}
	for key, n := range t.counts {
		t.queue = append(t.queue, countedPair{n, key})
	}
	t.queue.heapify()
	return t
}

func (t *bpeTrainer) size() int { return len(t.texts) }

// note says that a word has a pair.
func (t *bpeTrainer) note(key uint64, word int32) {
	if list := t.where[key]; len(list) == 0 || list[len(list)-1] != word {
		t.where[key] = append(list, word)
	}
}

// learn makes up to n merges.
func (t *bpeTrainer) learn(n int, o TrainOptions) {
	for done := 0; done < n && len(t.queue) > 0; {
		top := t.queue.pop()
		if now := t.counts[top.key]; now != top.count {
			if now >= o.MinCount { // its count has changed since it was queued
				t.queue.push(countedPair{now, top.key})
			}
			continue
		}
		if top.count < o.MinCount {
			break
		}
		a, b := int32(top.key>>32), int32(uint32(top.key))
		text := t.texts[a] + t.texts[b]
		if t.taken[text] {
			// Another merge already gives this token; a second one would give the
			// vocabulary two ids for one text.
			delete(t.counts, top.key)
			continue
		}
		t.taken[text] = true
		t.merges = append(t.merges, [2]int32{a, b})
		t.texts = append(t.texts, text)
		t.merge(a, b, int32(len(t.texts)-1))
		if done++; o.Progress != nil && (done%256 == 0 || done == n) {
			o.Progress(done, n)
		}
	}
}

// merge replaces a pair by a token in all words that contain it.
func (t *bpeTrainer) merge(a, b, id int32) {
	key := pairKey(a, b)
	list := t.where[key]
	delete(t.where, key)
	delete(t.counts, key)
	changed := map[uint64]bool{}
	count := func(key uint64, n int, word int32) {
		t.counts[key] += n
		if n > 0 {
			t.note(key, word)
			changed[key] = true
		}
	}
	for _, n := range list {
		w := &t.words[n]
		out := w.ids[:0]
		for i := 0; i < len(w.ids); i++ {
			if i+1 == len(w.ids) || w.ids[i] != a || w.ids[i+1] != b {
				out = append(out, w.ids[i])
				continue
			}
			if k := len(out); k > 0 {
				// The token before may be this one, just made: its pair with a was counted
				// for it.
				count(pairKey(out[k-1], a), -w.count, n)
				count(pairKey(out[k-1], id), w.count, n)
			}
			if i+2 < len(w.ids) {
				count(pairKey(b, w.ids[i+2]), -w.count, n)
				count(pairKey(id, w.ids[i+2]), w.count, n)
			}
			out = append(out, id)
			i++
		}
		w.ids = out
	}
	delete(t.counts, key)
	for key := range changed {
		if n := t.counts[key]; n > 0 {
			t.queue.push(countedPair{n, key})
		}
	}
}

// files returns the Hugging Face files of the learned tokenizer.
func (t *bpeTrainer) files(o TrainOptions) map[string][]byte {
	vocab := make(map[string]int, len(t.texts))
	for id, text := range t.texts {
		vocab[byteLevel(text)] = id
	}
	merges := make([][2]string, len(t.merges))
	for i, m := range t.merges {
		merges[i] = [2]string{byteLevel(t.texts[m[0]]), byteLevel(t.texts[m[1]])}
	}
	cut := split{Type: "Split", Pattern: pattern{Regex: o.Pattern}, Behavior: "Isolated"}
	return bpeFiles(bpeFile{Vocab: vocab, Merges: merges}, []any{cut}, len(t.texts), o.Special...)
}

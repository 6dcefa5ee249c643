package tokenizer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// merged lists the tokens that training added, in order.
func merged(p *Pipeline) (texts []string) {
	for id := 256; id < int(p.EndIDs()[0]); id++ {
		texts = append(texts, string(p.Piece(int32(id))))
	}
	return texts
}

func TestTrainByHand(t *testing.T) {
	tests := []struct {
		name  string
		texts []string
		vocab int
		want  []string
	}{
		// ab 3, bc 2, " a" 2 (pieces "abc", " abc", " ab"): ab; then " "+ab 2 and ab+c 2,
		// the smaller ids first; then " ab"+c is left with 1 and ab+c with 1.
		{"counts and ties", []string{"abc abc ab"}, 400, []string{"ab", " ab"}},
		// aaaa: aa is there three times, twice without overlap; then aa+aa once.
		{"overlap", []string{"aaaa", "aaaa"}, 400, []string{"aa", "aaaa"}},
		{"vocabulary full", []string{"aaaa", "aaaa"}, 259, []string{"aa"}},
		{"digits are never merged", []string{"1212 1212 1212"}, 400, nil},
		{"special tokens are not learned", []string{"<|x|><|x|>q<|x|>"}, 400, nil},
		{"one of each", []string{"abcd"}, 400, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Train(slices.Values(tt.texts), TrainOptions{VocabSize: tt.vocab, Special: []string{"<|x|>"}[:min(1, tt.vocab-257)]})
			if err != nil {
				t.Fatal(err)
			}
			if got := merged(p); !slices.Equal(got, tt.want) {
				t.Errorf("learned %q, want %q", got, tt.want)
			}
		})
	}
}

// slowTrain is the definition: count all pairs again for every merge.
func slowTrain(pieces map[string]int, n, least int) (texts []string) {
	type word struct {
		ids   []int32
		count int
	}
	var words []word
	for p, count := range pieces {
		w := word{count: count}
		for i := range len(p) {
			w.ids = append(w.ids, int32(p[i]))
		}
		words = append(words, w)
	}
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	refused := map[uint64]bool{}
	for len(texts)-256 < n {
		counts := map[uint64]int{}
		for _, w := range words {
			for i := 0; i+1 < len(w.ids); i++ {
				counts[pairKey(w.ids[i], w.ids[i+1])] += w.count
			}
		}
		best, most := uint64(0), 0
		for key, c := range counts {
			if !refused[key] && (c > most || c == most && key < best) {
				best, most = key, c
			}
		}
		if most < least {
			break
		}
		a, b := int32(best>>32), int32(uint32(best))
		text := texts[a] + texts[b]
		if slices.Contains(texts, text) {
			refused[best] = true
			continue
		}
		texts = append(texts, text)
		for i := range words {
			var out []int32
			for ids := words[i].ids; len(ids) > 0; {
				if len(ids) > 1 && ids[0] == a && ids[1] == b {
					out, ids = append(out, int32(len(texts)-1)), ids[2:]
				} else {
					out, ids = append(out, ids[0]), ids[1:]
				}
			}
			words[i].ids = out
		}
	}
	return texts[256:]
}

func TestTrainIsTheDefinition(t *testing.T) {
	texts := []string{
		strings.Repeat("the cat sat on the mat, the hat; ", 3), "aaaaaaaaaaa aaaa aaa", "ababababab abab", "naïve café naïve",
		"x = y + z\nx = y - z\n\nreturn x", "日本語 日本 本語", "mississippi miss is sip",
	}
	o := TrainOptions{VocabSize: 340, Pattern: DefaultPattern, MinCount: 2}
	pieces, err := countPieces(slices.Values(texts), o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Train(slices.Values(texts), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := merged(p), slowTrain(pieces, o.VocabSize-257, 2); !slices.Equal(got, want) {
		t.Errorf("learned\n%q, want\n%q", got, want)
	}
	// In another order, the same.
	backwards := slices.Clone(texts)
	slices.Reverse(backwards)
	q, err := Train(slices.Values(backwards), o)
	if err != nil {
		t.Fatal(err)
	}
	if q.Description() != p.Description() {
		t.Errorf("other order: %s, want %s", q.Description(), p.Description())
	}
}

func TestTrainRefuses(t *testing.T) {
	for want, o := range map[string]TrainOptions{
		"at least 257":       {VocabSize: 100},
		"special token":      {VocabSize: 300, Special: []string{EndToken}},
		"unterminated group": {VocabSize: 300, Pattern: "("},
		"no text to learn":   {VocabSize: 300},
		"at most 1048576":    {VocabSize: 1 << 21},
		"at least 258 and":   {VocabSize: 257, Special: []string{"<x>"}},
	} {
		if _, err := Train(slices.Values([]string(nil)), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", o, err, want)
		}
	}
}

func TestTrainedTokenizer(t *testing.T) {
	var progress []string
	texts := []string{"How many apples? 12 + 30 = 42.", "How many pears? 12 - 3 = 9."}
	p, err := Train(slices.Values(texts), TrainOptions{VocabSize: 264, Special: []string{"<|im_start|>", "<|im_end|>"},
		Progress: func(done, of int) { progress = append(progress, fmt.Sprint(done, "/", of)) }})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.VocabSize(), 264; got != want {
		t.Errorf("VocabSize = %d, want %d", got, want)
	}
	if got, want := p.EndIDs(), []int32{261}; !slices.Equal(got, want) {
		t.Errorf("EndIDs = %v, want %v", got, want)
	}
	if got, want := p.SpecialTokens().Additional, []string{"<|im_start|>", "<|im_end|>"}; !slices.Equal(got, want) {
		t.Errorf("additional special tokens %q, want %q", got, want)
	}
	if id, ok := p.TokenID("<|im_end|>"); !ok || id != 263 {
		t.Errorf("TokenID of the last special token = %d, %v, want 263", id, ok)
	}
	if want := []string{"5/5"}; !slices.Equal(progress, want) {
		t.Errorf("progress %q, want %q", progress, want)
	}
	for _, text := range append(texts, "日本 🙂 \r\n", "<|im_start|>") {
		ids, err := p.Encode(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decode(ids); got != text {
			t.Errorf("decoded %q, want %q", got, text)
		}
	}
	back, err := ReadFiles(p.Files())
	if err != nil || back.Description() != p.Description() {
		t.Errorf("read back: %v, %v", back, err)
	}
}

func BenchmarkTrain(b *testing.B) {
	f, err := os.Open(dataPath("benchmarks", "gsm8k_train.jsonl"))
	if err != nil {
		b.Skipf("the project's data is not here: %v", err)
	}
	defer f.Close()
	var texts []string
	size := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ Question, Answer string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			b.Fatal(err)
		}
		texts = append(texts, row.Question, row.Answer)
		size += len(row.Question) + len(row.Answer)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		if _, err := Train(slices.Values(texts), TrainOptions{VocabSize: 8192}); err != nil {
			b.Fatal(err)
		}
	}
}

package vocab

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/tokenizer"
)

// Options say what to learn.
type Options struct {
	Size     int      // number of tokens, including special ones
	Pattern  string   // regexp that splits words; "": Qwen2's, each digit separate
	Special  []string // special tokens
	Progress func(done, of int)
}

// Learned is a vocabulary, in the schema exp.tokenizer.train/1.
type Learned struct {
	Path         string  `json:"path"`
	VocabSize    int     `json:"vocab_size"`
	Bytes        int64   `json:"bytes"`
	Texts        int64   `json:"texts"`
	BytesPer     float64 `json:"bytes_per_token"` // on the first texts
	Description  string  `json:"description"`
	EndID        int32   `json:"end_id"`
	SpecialCount int     `json:"special_tokens"`

	files map[string][]byte
}

// Learn learns a vocabulary from the texts; dir is where Files will be written.
// Progress gets the bytes read (total 0), then the merges done.
func (t *Texts) Learn(ctx context.Context, dir string, o Options) (*Learned, error) {
	var failed error
	p, err := tokenizer.Train(t.all(ctx, &failed),
		tokenizer.TrainOptions{VocabSize: o.Size, Pattern: o.Pattern, Special: o.Special, Progress: o.Progress})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, err
	}
	l := &Learned{Path: dir, VocabSize: p.VocabSize(), Bytes: t.bytes, Texts: t.count, Description: p.Description(),
		EndID: p.EndIDs()[0], SpecialCount: 1 + len(p.SpecialTokens().Additional), files: p.Files()}
	tokens, bytes := 0, 0
	for _, s := range t.sample {
		if ids, err := p.Encode(s, tokenizer.Options{}); err == nil {
			tokens, bytes = tokens+len(ids), bytes+len(s)
		}
	}
	if tokens > 0 {
		l.BytesPer = float64(bytes) / float64(tokens)
	}
	return l, nil
}

// Write creates the tokenizer's folder and writes its files. replace writes one file
// completely or not at all.
func (l *Learned) Write(replace func(path string, write func(io.Writer) error) error) error {
	if err := os.MkdirAll(l.Path, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		err := replace(filepath.Join(l.Path, name), func(w io.Writer) error {
			_, err := w.Write(l.files[name])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Tokenizer is a tokenizer read from a folder.
type Tokenizer struct{ tokenizer.Tokenizer }

// Open reads the tokenizer in a folder, or from a path to its tokenizer.json.
func Open(path string) (Tokenizer, error) {
	if dir, ok := strings.CutSuffix(path, "tokenizer.json"); ok {
		path = dir
		if dir == "" {
			path = "."
		}
	}
	t, err := tokenizer.ReadFolder(path)
	return Tokenizer{t}, err
}

// Encode returns the ids of a text. added turns text that spells an added token into
// that token; special puts the tokens of the tokenizer's own template around the text.
func (t Tokenizer) Encode(text string, added, special bool) ([]int32, error) {
	return t.Tokenizer.Encode(text, tokenizer.Options{Added: added, Special: special})
}

// Kind classifies a token: "end" of a completion, "special", or "".
func (t Tokenizer) Kind(id int32) string {
	switch {
	case slices.Contains(t.EndIDs(), id):
		return "end"
	case len(t.Piece(id)) == 0:
		return "special"
	}
	return ""
}

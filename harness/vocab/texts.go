// Package vocab learns a tokenizer's vocabulary from files or from a recipe's training
// problems, and opens the tokenizer in a folder.
package vocab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/rows"
	"exp/harness/config"
	"exp/harness/prompt"
)

// Texts are the texts to learn a vocabulary from.
type Texts struct {
	Files  []string // rows as package rows reads them, plain text, or a recipe (.yaml)
	Fields []string // fields of the rows; nil: all with text
	// Load reads a recipe.
	Load func(recipe string) (*config.Resolved, error)

	count  int64
	bytes  int64
	sample []string // the first texts, to measure compression on
}

// sampleBytes is how much text is kept for measuring.
const sampleBytes = 1 << 20

// Folder returns the tokenizer.path of the recipe among the files, or "" without a
// recipe.
func (t *Texts) Folder() (string, error) {
	for _, f := range t.Files {
		if !isRecipe(f) {
			continue
		}
		r, err := t.Load(f)
		if err != nil {
			return "", err
		}
		if r.Run.Tokenizer.Path != "" {
			return r.Run.Tokenizer.Path, nil
		}
	}
	return "", nil
}

// all yields every text once. It stops at an error and stores it in failed.
func (t *Texts) all(ctx context.Context, failed *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range t.Files {
			for text, err := range t.of(f) {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					*failed = err
					return
				}
				if text == "" {
					continue
				}
				if t.bytes < sampleBytes {
					t.sample = append(t.sample, text)
				}
				t.count++
				t.bytes += int64(len(text))
				if !yield(text) {
					return
				}
			}
		}
	}
}

func isRecipe(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

// hasRows reports whether a file's name says that it has rows.
func hasRows(path string) bool {
	name := strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.Contains([]string{".json", ".jsonl", ".ndjson", ".parquet", ".csv", ".tsv"}, filepath.Ext(name))
}

// of yields the texts of one file.
func (t *Texts) of(path string) iter.Seq2[string, error] {
	if isRecipe(path) {
		r, err := t.Load(path)
		if err != nil {
			return func(yield func(string, error) bool) { yield("", err) }
		}
		return prompt.TrainingTexts(&r.Run)
	}
	if !hasRows(path) {
		return plainTexts(path)
	}
	return func(yield func(string, error) bool) {
		for r, err := range rows.Read(path) {
			if err != nil {
				yield("", err)
				return
			}
			list, err := t.textsOf(r)
			if err != nil {
				yield("", err)
				return
			}
			for _, s := range list {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// textsOf returns the texts in the wanted fields, or in all.
func (t *Texts) textsOf(r rows.Row) ([]string, error) {
	if len(t.Fields) == 0 {
		return stringsIn(r.Fields, nil), nil
	}
	var list []string
	for _, f := range t.Fields {
		v, ok := r.Value(f)
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(r.Fields)), ", ")
			return nil, r.Errorf(f, "no such field; fields are %s", known)
		}
		list = stringsIn(v, list)
	}
	return list, nil
}

// stringsIn appends all strings in a JSON value.
func stringsIn(v any, list []string) []string {
	switch v := v.(type) {
	case string:
		return append(list, v)
	case []any:
		for _, e := range v {
			list = stringsIn(e, list)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = stringsIn(v[key], list)
		}
	}
	return list
}

// plainTexts yields a text file in chunks of a few thousand lines. A file with zero bytes is refused: it is
// compressed, or no text.
func plainTexts(path string) iter.Seq2[string, error] {
	const most = 1 << 20
	return func(yield func(string, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield("", err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, most)
		var part []byte
		for {
			line, err := r.ReadSlice('\n')
			part = append(part, line...)
			if end := err != nil && !errors.Is(err, bufio.ErrBufferFull); end || len(part) >= most {
				if bytes.IndexByte(part, 0) >= 0 {
					yield("", fmt.Errorf("%s: no plain text in UTF-8: it has zero bytes; unpack it, or name a "+
						"file of rows .jsonl, .json, .csv, .tsv or .parquet", path))
					return
				}
				if !yield(string(part), nil) {
					return
				}
				part = part[:0]
				if end {
					if !errors.Is(err, io.EOF) {
						yield("", err)
					}
					return
				}
			}
		}
	}
}

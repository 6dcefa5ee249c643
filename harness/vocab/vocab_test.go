package vocab

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/rows"
	"exp/harness/config"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func replace(path string, do func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// A tokenizer learned from rows or plain text can be written and read back.
func TestLearn(t *testing.T) {
	dir := t.TempDir()
	texts := Texts{Files: []string{
		write(t, dir, "a.jsonl", `{"q":"abab abab","n":7,"more":["abab",{"x":"abab"}]}`+"\n"),
		write(t, dir, "b.txt", strings.Repeat("abab\n", 9)),
	}}
	l, err := texts.Learn(context.Background(), filepath.Join(dir, "tok"), Options{Size: 259, Special: []string{"<x>"}, Progress: func(int, int) {}})
	if err != nil {
		t.Fatal(err)
	}
	if l.VocabSize != 259 || l.Texts != 4 || l.Bytes != 9+4+4+45 || l.SpecialCount != 2 || l.BytesPer <= 1 {
		t.Errorf("%+v", l)
	}
	if err := l.Write(replace); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.Path, filepath.Join(l.Path, "tokenizer.json")} {
		tok, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := tok.Encode("ab<x>", false, false)
		if err != nil || tok.DecodeAll(plain) != "ab<x>" || tok.Kind(plain[0]) != "" {
			t.Errorf("%v, %v", plain, err)
		}
		added, err := tok.Encode("ab<x>", true, false)
		if err != nil || len(added) >= len(plain) || tok.Kind(added[len(added)-1]) != "special" || tok.Kind(l.EndID) != "end" {
			t.Errorf("%v, %v", added, err)
		}
	}
}

// A name tells rows from plain text; a file that is neither is refused.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"x.csv": "one two", "x.csv.zst": "one two", "x.TSV": "one,two", "x.txt": "q,a\none,two\n", "x.zip": "zero bytes",
		"x.txt.gz": "zero bytes"} {
		text := "q,a\none,two\n"
		if want == "zero bytes" {
			text = "\x1f\x8b\x08\x00\x00one\n"
		}
		var failed error
		var got []string
		for s := range (&Texts{Files: []string{write(t, dir, name, text)}}).all(context.Background(), &failed) {
			got = append(got, s)
		}
		slices.Sort(got)
		if all := strings.Join(got, " "); failed == nil && all != want || failed != nil && !strings.Contains(failed.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", name, all, failed, want)
		}
	}
}

// Fields choose texts, and must be there; a stopped context stops.
func TestTexts(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "a.jsonl", `{"q":"one","a":"two"}`+"\n")
	texts := Texts{Files: []string{file}, Fields: []string{"a"}}
	var failed error
	var got []string
	for s := range texts.all(context.Background(), &failed) {
		got = append(got, s)
	}
	if failed != nil || strings.Join(got, " ") != "two" {
		t.Errorf("%v, %v", got, failed)
	}
	var bad *rows.Error
	if _, err := (&Texts{Files: []string{file}, Fields: []string{"b"}}).Learn(context.Background(), dir, Options{Size: 300}); !errors.As(err, &bad) ||
		!strings.Contains(err.Error(), "fields are a, q") {
		t.Errorf("a field that is not there: %v", err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := (&Texts{Files: []string{file}}).Learn(stopped, dir, Options{Size: 300}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// Folder returns the folder that a recipe names.
func TestFolder(t *testing.T) {
	load := func(string) (*config.Resolved, error) {
		r := &config.Resolved{}
		r.Run.Tokenizer.Path = "tok"
		return r, nil
	}
	if got, err := (&Texts{Files: []string{"a.txt", "b.yaml"}, Load: load}).Folder(); err != nil || got != "tok" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := (&Texts{Files: []string{"a.txt"}}).Folder(); err != nil || got != "" {
		t.Errorf("without a recipe: %q, %v", got, err)
	}
}

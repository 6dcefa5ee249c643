package tokenizer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	want := newChar(t, "abc019+é\n")
	for name, b := range want.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Description() != want.Description() {
		t.Errorf("read back as %s, want %s", got.Description(), want.Description())
	}
}

func TestReadFolderErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "unexpected end",
		`{"version": "2.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}`: `version "2.0"`,
		`{"added_tokens": []}`:                                                                            "no model",
		`{"model": {"type": "WordPiece", "vocab": {}}}`:                                                   `type "WordPiece"`,
		`{"model": {"type": "WordLevel", "vocab": {"line": 1}}}`:                                          "unk_token",
		`{"model": {"type": "BPE", "vocab": {"a": 0}}}`:                                                   "merges",
		`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}`:                                `"a", "b" and "ab"`,
		`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a  b"]}}`:              "one space",
		`{"model": {"type": "BPE", "vocab": {"a": 9999999}, "merges": []}}`:                               "id 9999999",
		`{"model": {"type": "BPE", "vocab": {"a": 0.5}, "merges": []}}`:                                   `"a" is not a whole number`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1}}`:                           "dropout",
		`{"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 3}}`:                                "unk_id 3",
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "BertNormalizer"}}`: `normalizer "BertNormalizer"`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "Strip"}, ` +
			`"added_tokens": [{"id": 0, "content": " ", "normalized": true}]}`: `leaves nothing of " "`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "UnicodeScripts"}}`:                                                             `pre-tokenizer "UnicodeScripts"`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "post_processor": {"type": "Other"}}`:                                                                     `post-processor "Other"`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "decoder": {"type": "CTC"}}`:                                                                              `decoder "CTC"`,
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "decoder": {"type": "Sequence", "decoders": [{}]}}`:                                                       "decoder.decoders[0]: component without a type",
		`{"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": false}}`: `"(a"`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tokenizer.json") {
			t.Errorf("%s:\n got %v\nwant an error with %q", text, err, want)
		}
	}
	if _, err := ReadFolder(t.TempDir()); err == nil {
		t.Error("an empty folder: no error")
	}
}

func TestReadFolderKnowsPointers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(path, []byte("version https://git-lfs.github.com/spec/v1\noid sha256:01\nsize 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), path+" is a pointer of git-lfs") {
		t.Errorf("got %v", err)
	}
}

// A path that is a file, or goes through one, is refused with that file's name.
func TestReadFolderOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "x"), filepath.Join(file, "x", "y")} {
		want := "tokenizer: " + file + " is a file; name a folder with tokenizer.json"
		if _, err := ReadFolder(path); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	none := filepath.Join(filepath.Dir(file), "none")
	if _, err := ReadFolder(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", none, err)
	}
}

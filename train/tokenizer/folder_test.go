package tokenizer

import (
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
	for want, text := range map[string]string{
		"BPE":          `{"model": {"type": "BPE", "vocab": {}}}`,
		"line":         `{"model": {"type": "WordLevel", "vocab": {"line": 1}}}`,
		"has id 7":     `{"model": {"type": "WordLevel", "vocab": {"a": 7}}}`,
		"empty":        `{"model": {"type": "WordLevel", "vocab": {}}}`,
		"invalid char": `{`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFolder(dir); err == nil || !strings.Contains(err.Error(), want) && want != "invalid char" {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	if _, err := ReadFolder(t.TempDir()); err == nil {
		t.Error("an empty folder: no error")
	}
}

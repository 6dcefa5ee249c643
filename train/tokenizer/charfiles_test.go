package tokenizer

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The golden files were loaded once with Hugging Face tokenizers 0.23: it gave
// the ids of Encode, the text of Decode, and an error for a foreign character.
func TestCharFilesGolden(t *testing.T) {
	files := newChar(t, "0123+*() =\n÷\"\\").Files()
	if got, want := len(files), 4; got != want {
		t.Errorf("%d files, want %d", got, want)
	}
	for name, got := range files {
		path := filepath.Join("testdata", strings.TrimSuffix(name, ".json")+".golden")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What tokenizer.json says and what Encode does are the same map.
func TestCharFilesVocabIsEncode(t *testing.T) {
	c := newChar(t, "abc÷ \n")
	var file struct {
		Model struct {
			Vocab map[string]int32 `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(c.Files()["tokenizer.json"], &file); err != nil {
		t.Fatal(err)
	}
	if got, want := len(file.Model.Vocab), c.VocabSize(); got != want {
		t.Errorf("%d entries, want %d", got, want)
	}
	for token, id := range file.Model.Vocab {
		if token == EndToken {
			if id != c.EndIDs()[0] {
				t.Errorf("end token has id %d, want %d", id, c.EndIDs()[0])
			}
			continue
		}
		ids, err := c.Encode(token, Options{})
		if err != nil || len(ids) != 1 || ids[0] != id {
			t.Errorf("Encode(%q) = %v, %v; the file says %d", token, ids, err, id)
		}
	}
}

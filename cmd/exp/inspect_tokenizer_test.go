package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInspectTellsOfTheTokenizer(t *testing.T) {
	dir, _, _ := tinyFolder(t) // 11 embeddings
	tokenizer := func(entries string) string {
		return `{"added_tokens": [{"id": 14, "content": "<x>", "special": true}], "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {` + entries + `}, "merges": []}}`
	}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", []string{"no tokenizer in the folder"}},
		{"{", []string{"tokenizer.json", "cannot use the folder as it is"}},
		{tokenizer(`"a": 0`), []string{"ids up to 14, the model has embeddings up to 10", "(<x>)", "gives 1 of the added tokens other ids"}},
	} {
		if tt.text != "" {
			if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e := exp(t, "inspect", dir)
		e.succeeds(t)
		for _, want := range tt.want {
			if !strings.Contains(strings.Join(strings.Fields(e.stdout), " "), want) {
				t.Errorf("tokenizer %q: the text lacks %q:\n%s", tt.text, want, e.stdout)
			}
		}
	}
}

func TestInspectLogitsWrongPaths(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	ids := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(ids, []byte(`{"sequences": [[1]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	exp(t, "inspect", dir, "--logits", ids+"x", "--out", ids+".st").refuses(t, 3, "--logits wants a file of token ids")
	exp(t, "inspect", dir, "--logits", ids, "--out", filepath.Join(dir, "no", "out.st")).refuses(t, 1, "no such folder "+filepath.Join(dir, "no"))
}

package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goldenCase is a small tokenizer of our own training, and what Hugging Face's library
// tokenizers 0.23.3 computed with it.
type goldenCase struct {
	Files   map[string]string `json:"files"`
	Vectors []goldenVector    `json:"vectors"`
}

type goldenVector struct {
	Text    *string `json:"text"`    // null: only decoded
	Fails   bool    `json:"fails"`   // to encode
	IDs     []int32 `json:"ids"`     // with added tokens matched
	Special []int32 `json:"special"` // and the post-processor's tokens
	Plain   []int32 `json:"plain"`   // without added tokens; null: not asked
	Decoded string  `json:"decoded"` // with special tokens
	Skipped string  `json:"skipped"` // without
}

// goldenFiles are the cases in testdata and, where EXP_TOKENIZER_GOLDEN names a folder,
// the *.json there.
func goldenFiles(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json.gz"))
	if err != nil || len(list) == 0 {
		t.Fatal("no golden files", err)
	}
	if dir := os.Getenv("EXP_TOKENIZER_GOLDEN"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, more...)
	}
	return list
}

func readGolden(t testing.TB, path string) (c goldenCase) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.NewDecoder(r).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGolden(t *testing.T) {
	vectors := 0
	for _, path := range goldenFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".gz"), func(t *testing.T) {
			c := readGolden(t, path)
			files := map[string][]byte{}
			for name, text := range c.Files {
				files[name] = []byte(text)
			}
			tok, err := ReadFiles(files)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range c.Vectors {
				checkGolden(t, tok, v)
			}
			vectors += len(c.Vectors)
		})
	}
	t.Logf("%d vectors", vectors)
}

func checkGolden(t *testing.T, tok Tokenizer, v goldenVector) {
	t.Helper()
	if v.Text != nil {
		ids, err := tok.Encode(*v.Text, Options{Added: true})
		if v.Fails {
			if err == nil {
				t.Errorf("Encode(%q) = %v, want an error", *v.Text, ids)
			}
			return
		}
		special, err2 := tok.Encode(*v.Text, Options{Added: true, Special: true})
		plain, err3 := tok.Encode(*v.Text, Options{})
		if err != nil || err2 != nil || v.Plain != nil && err3 != nil {
			t.Errorf("Encode(%q): %v, %v, %v", *v.Text, err, err2, err3)
			return
		}
		for _, d := range []struct {
			what      string
			got, want []int32
		}{{"added", ids, v.IDs}, {"special", special, v.Special}, {"plain", plain, v.Plain}} {
			if !slices.Equal(d.got, d.want) && (d.what != "plain" || d.want != nil) {
				t.Errorf("%s: Encode(%q)\n got %v\nwant %v", d.what, *v.Text, d.got, d.want)
			}
		}
	}
	if got := tok.DecodeAll(v.IDs); got != v.Decoded {
		t.Errorf("DecodeAll(%v)\n got %q\nwant %q", v.IDs, got, v.Decoded)
	}
	if got := tok.Decode(v.IDs); got != v.Skipped {
		t.Errorf("Decode(%v)\n got %q\nwant %q", v.IDs, got, v.Skipped)
	}
}

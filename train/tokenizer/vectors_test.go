package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// dataPath is a file of EXP_DATA or, by default, of shared/data next to the repository.
func dataPath(name ...string) string {
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	return filepath.Join(append([]string{dir}, name...)...)
}

// vector is a text, its ids with added tokens matched, and what they decode to with
// special tokens spelled out.
type vector struct {
	Text    string  `json:"text"`
	IDs     []int32 `json:"ids"`
	Decoded string  `json:"decoded"`
}

// sharedTokenizer reads a published tokenizer of the project's data.
func sharedTokenizer(t testing.TB, name string) (Tokenizer, map[string][]byte) {
	t.Helper()
	dir := dataPath("tokenizers", name)
	f, err := os.Open(filepath.Join(dir, "tokenizer.json.gz"))
	if err != nil {
		t.Skipf("the project's data is not here: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	if files["tokenizer.json"], err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	if config, err := os.ReadFile(filepath.Join(dir, "tokenizer_config.json")); err == nil {
		files["tokenizer_config.json"] = config
	}
	tok, err := ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return tok, files
}

func readVectors(t *testing.T, path string) (list []vector) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSharedVectors(t *testing.T) {
	for _, name := range []string{"qwen2", "gpt2", "llama3-style-small"} {
		t.Run(name, func(t *testing.T) {
			tok, _ := sharedTokenizer(t, name)
			list := readVectors(t, dataPath("tokenizers", name, "vectors.jsonl"))
			if len(list) < 100 {
				t.Fatalf("only %d vectors", len(list))
			}
			for _, v := range list {
				checkVector(t, tok, v, Options{Added: true})
			}
		})
	}
}

// checkVector checks one vector in both directions, and the stream.
func checkVector(t *testing.T, tok Tokenizer, v vector, o Options) {
	t.Helper()
	got, err := tok.Encode(v.Text, o)
	if err != nil {
		t.Errorf("Encode(%q): %v", v.Text, err)
		return
	}
	if !slices.Equal(got, v.IDs) {
		t.Errorf("Encode(%q)\n got %v\nwant %v", v.Text, got, v.IDs)
	}
	if got := tok.DecodeAll(v.IDs); got != v.Decoded {
		t.Errorf("DecodeAll(%v)\n got %q\nwant %q", v.IDs, got, v.Decoded)
	}
}

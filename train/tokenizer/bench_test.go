package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// benchTexts are the problems and solutions of a published benchmark.
func benchTexts(b *testing.B) (texts []string, size int64) {
	f, err := os.Open(dataPath("benchmarks", "math_test.jsonl"))
	if err != nil {
		b.Skipf("the project's data is not here: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row struct{ Problem, Solution string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			b.Fatal(err)
		}
		for _, s := range []string{row.Problem, row.Solution} {
			texts = append(texts, s)
			size += int64(len(s))
		}
	}
	return texts, size
}

// Each row of the file once: what a run does with its prompts.
func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"qwen2", "gpt2", "llama3-style-small"} {
		b.Run("tokenizer="+name, func(b *testing.B) {
			tok, _ := sharedTokenizer(b, name)
			texts, size := benchTexts(b)
			b.SetBytes(size)
			for b.Loop() {
				for _, s := range texts {
					if _, err := tok.Encode(s, Options{Added: true}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// One letter a million times: one piece, which a quadratic merge would not survive.
func BenchmarkEncodeRun(b *testing.B) {
	tok, _ := sharedTokenizer(b, "qwen2")
	text := strings.Repeat("a", 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tok.Encode(text, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	tok, _ := sharedTokenizer(b, "qwen2")
	texts, size := benchTexts(b)
	all := make([][]int32, len(texts))
	for i, s := range texts {
		var err error
		if all[i], err = tok.Encode(s, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(size)
	for b.Loop() {
		for _, ids := range all {
			tok.Decode(ids)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	_, files := sharedTokenizer(b, "qwen2")
	for b.Loop() {
		if _, err := ReadFiles(files); err != nil {
			b.Fatal(err)
		}
	}
}

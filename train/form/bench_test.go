package form

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"exp/train/rollout"
	"exp/train/tokenizer"
)

// published returns the tokens of Qwen2, with 151,646 of them.
func published(t testing.TB) tokenizer.Tokenizer {
	t.Helper()
	dir := "../../../shared/data/tokenizers/qwen2"
	files := map[string][]byte{}
	for _, name := range []string{"tokenizer.json.gz", "tokenizer_config.json"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Skipf("the project's data is not here: %v", err)
		}
		defer f.Close()
		var r io.Reader = f
		if filepath.Ext(name) == ".gz" {
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
			name = name[:len(name)-len(".gz")]
		}
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := tokenizer.ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func BenchmarkVocabulary(b *testing.B) {
	tok := published(b)
	for b.Loop() {
		NewVocabulary(tok)
	}
}

// The first mask of a form, with its compilation, and masks in states that were not reached before.
func BenchmarkFirstMask(b *testing.B) {
	v := NewVocabulary(published(b))
	for _, bb := range forms() {
		b.Run("form="+bb.name, func(b *testing.B) {
			for b.Loop() {
				f, err := New(bb.s, v)
				if err != nil {
					b.Fatal(err)
				}
				s := f.after(f.begin, []byte(bb.begin))
				s.Mask()
			}
		})
	}
}

// A token of completions that follow each other: the form's state is known, or has a mask to find.
func BenchmarkTokens(b *testing.B) {
	tok := published(b)
	v := NewVocabulary(tok)
	for _, bb := range forms() {
		b.Run("form="+bb.name, func(b *testing.B) {
			f, err := New(bb.s, v)
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 1))
			s, n := f.Begin(), 0
			for b.Loop() {
				if n++; !s.More() || s.Ends() && n > 20 || n > 200 {
					s, n = f.Begin(), 0
				}
				s = s.Next(plausible(r, s, tok))
			}
			b.ReportMetric(float64(len(f.t.states)), "states")
			b.ReportMetric(float64(f.t.masks), "masks")
		})
	}
}

// plausible draws an allowed token, short ones more often.
func plausible(r *rand.Rand, s rollout.FormState, tok tokenizer.Tokenizer) (best int32) {
	mask := s.Mask()
	best = -1
	for tries := 0; tries < 40 || best < 0; tries++ {
		id := int32(r.IntN(tok.VocabSize()))
		if tries%2 == 0 {
			id %= 400
		}
		if tries > 4000 {
			id = int32(tries) % int32(tok.VocabSize())
		}
		if allowed(mask, int(id)) && (best < 0 || len(tok.Piece(id)) < len(tok.Piece(best))) {
			best = id
		}
	}
	return best
}

// jsonGrammar is llama.cpp's grammar of JSON objects, without a bound for spaces and digits.
const jsonGrammar = `root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= | " " | "\n" [ \t]*
`

func forms() []struct {
	name, begin string
	s           Spec
} {
	return []struct {
		name, begin string
		s           Spec
	}{
		{"object", `{"a": "`, Spec{Object: true}},
		{"schema", `{"v": "`, Spec{Schema: json.RawMessage(tree)}},
		{"long", `"`, Spec{Schema: json.RawMessage(`{"type":"string","minLength":1,"maxLength":500}`)}},
		{"thoughts", `a`, Spec{Regex: `[0-9]+`, Thoughts: "</think>"}},
		{"regex", ``, Spec{Regex: `(?:yes|no), because .{1,200}\.`}},
		{"arithmetic", `(1+`, Spec{Grammar: "root ::= sum\nsum ::= product ([-+] product)*\nproduct ::= atom ([*/] atom)*\n" +
			"atom ::= [0-9]+ | \"(\" sum \")\""}},
		{"grammar", `{"a": "`, Spec{Grammar: jsonGrammar}},
	}
}

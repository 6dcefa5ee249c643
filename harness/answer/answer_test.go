package answer

import (
	"slices"
	"strings"
	"testing"

	"exp/eval/task"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// spacing is a tokenizer that begins every text with a space, as Llama's.
const spacing = `{"version": "1.0", "added_tokens": [],
 "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
  {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "pre_tokenizer": null, "post_processor": null,
 "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
  {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
 "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
  "vocab": {"<unk>": 0, "<0x0A>": 1, "▁": 2, "1": 3, "2": 4, "{": 5, "}": 6, "\\": 7, "b": 8, "o": 9, "x": 10, "e": 11, "d": 12, "▁1": 13},
  "merges": ["▁ 1"]}}`

// The reference answer takes the place of the completion's: tokens before it stay, those that reach into it are encoded
// again, and From and To enclose the answer.
func TestWriter(t *testing.T) {
	trained, err := tokenizer.Train(slices.Values([]string{`{( {( {( {( d{( d{(`}), tokenizer.TrainOptions{VocabSize: 258})
	if err != nil {
		t.Fatal(err)
	}
	llama, err := tokenizer.ReadFiles(map[string][]byte{"tokenizer.json": []byte(spacing)})
	if err != nil {
		t.Fatal(err)
	}
	math, words := task.Config{Kind: "math", Math: task.Math{Grader: "exp"}}, task.Config{Kind: "words"}
	for _, tt := range []struct {
		name       string
		tok        tokenizer.Tokenizer
		task       task.Config
		text       string // sampled, in the tokenizer's own tokens
		kept, rest string // the text of what stays and of what follows; "end" ends it
		answer     string // of From to To
		bare       string // without reasoning
	}{
		{"bytes", tokenizer.Byte{}, math, `so \boxed{7} or so`, `so \boxed{`, "12}", "12", `\boxed{12}`},
		{"to the end", tokenizer.Byte{}, words, "1+1=2\n####2\n", "1+1=2\n####", " 12 end", "12", "#### 12 end"},
		{"nothing yet", tokenizer.Byte{}, words, "####", "####", " 12 end", "12", "#### 12 end"},
		{"a token across", trained, math, `a \boxed{(4)}`, `a \boxed`, "{12}", "12", `\boxed{12}`},
		{"spaces before texts", llama, math, `x\boxed{2}`, ` x\boxed{`, "12}", "12", `\boxed{12}`},
		{"no place", tokenizer.Byte{}, math, "I do not know", "", "", "", ""},
	} {
		ids, err := tt.tok.Encode(tt.text, tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const end = 999
		encode := func(text string) ([]int32, error) { return tt.tok.Encode(text, tokenizer.Options{}) }
		a := &Writer{tt.task, encode, tt.tok.Piece, end}
		c := &rollout.Completion{Tokens: ids, Text: a.text(ids)}
		p := &rollout.Problem{Answer: "12"}
		got, err := a.Answer(p, c)
		if err != nil {
			t.Fatal(err)
		}
		if tt.bare == "" {
			if got != nil {
				t.Errorf("%s: got %+v", tt.name, got)
			}
			continue
		}
		written := func(ids []int32) string {
			if n := len(ids); ids[n-1] == end {
				return a.text(ids[:n-1]) + " end"
			}
			return a.text(ids)
		}
		if kept, rest := a.text(ids[:got.Kept]), written(got.Tokens); kept != tt.kept || rest != tt.rest {
			t.Errorf("%s: %q then %q, want %q then %q", tt.name, kept, rest, tt.kept, tt.rest)
		}
		if x := a.text(got.Tokens[got.From:got.To]); x != tt.answer && x != "{"+tt.answer {
			t.Errorf("%s: the answer's tokens say %q", tt.name, x)
		}
		if x := written(got.Tokens[got.Start:]); tt.name != "a token across" && x != tt.rest {
			t.Errorf("%s: likelihoods are of %q", tt.name, x)
		}
		bare, err := a.Answer(p, nil)
		if x := written(bare.Tokens[bare.Start:]); x != strings.TrimLeft(tt.rest, "{") {
			t.Errorf("%s: without reasoning likelihoods are of %q", tt.name, x)
		}
		if err != nil || bare.Kept != 0 || written(bare.Tokens) != tt.bare || a.text(bare.Tokens[bare.From:bare.To]) != tt.answer {
			t.Errorf("%s: without reasoning %q, %+v, %v", tt.name, written(bare.Tokens), bare, err)
		}
	}
}

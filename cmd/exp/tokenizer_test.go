package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/harness/vocab"
)

// trainTokenizer learns a small tokenizer from rows in a new folder.
func trainTokenizer(t *testing.T, args ...string) (dir string, e ended) {
	t.Helper()
	dir = t.TempDir()
	in := filepath.Join(dir, "rows.jsonl")
	rows := strings.Repeat(`{"question": "How many apples and apples?", "meta": {"tags": ["fruit fruit"]}, "n": 3}`+"\n", 4)
	if err := os.WriteFile(in, []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	e = call{}.run(append([]string{"tokenizer", "train", in, "--out", filepath.Join(dir, "tok")}, args...)...)
	return filepath.Join(dir, "tok"), e
}

func TestTokenizerTrain(t *testing.T) {
	dir, e := trainTokenizer(t, "--vocab-size", "270", "--special", "<|im_end|>", "--json")
	e.succeeds(t)
	var got struct {
		Schema string
		Data   vocab.Learned
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if d := got.Data; got.Schema != "exp.tokenizer.train/1" || d.VocabSize != 270 || d.Texts != 8 || d.EndID != 268 || d.SpecialCount != 2 {
		t.Errorf("%+v", got)
	}
	encoded := call{}.run("tokenizer", "encode", dir, "apples <|im_end|>", "-o", "jsonl")
	encoded.succeeds(t)
	if lines := strings.Split(strings.TrimSpace(encoded.stdout), "\n"); !strings.Contains(lines[len(lines)-1], `"id":269`) {
		t.Errorf("last token %s, want id 269", lines[len(lines)-1])
	}
	plain := call{stdin: "<|im_end|>"}.run("tokenizer", "encode", dir, "--plain", "-o", "name")
	plain.succeeds(t)
	if got, want := len(strings.Fields(plain.stdout)), len("<|im_end|>"); got != want {
		t.Errorf("%d tokens without special ones, want %d", got, want)
	}
	for flags, want := range map[string]string{"": "H<|im_end|>\n", "--skip-special": "H\n"} {
		d := call{stdin: "[72, 269]"}.run(append([]string{"tokenizer", "decode", dir}, strings.Fields(flags)...)...)
		d.succeeds(t)
		if d.stdout != want {
			t.Errorf("decode %s: %q, want %q", flags, d.stdout, want)
		}
	}
}

func TestTokenizerTrainFields(t *testing.T) {
	all, e := trainTokenizer(t, "--vocab-size", "400")
	e.succeeds(t)
	if !strings.Contains(e.stderr, "tokens: no pair of tokens is left") {
		t.Errorf("no word of the smaller vocabulary:\n%s", e.stderr)
	}
	one, e := trainTokenizer(t, "--vocab-size", "400", "--field", "question")
	e.succeeds(t)
	for dir, want := range map[string]bool{all: true, one: false} {
		text, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), `"fruit"`); got != want {
			t.Errorf("%s: knows the word of the other field: %v, want %v", dir, got, want)
		}
	}
}

// A recipe that has no tokenizer yet gets one from its own training texts, where it wants it.
func TestTokenizerTrainFromRecipe(t *testing.T) {
	dir := t.TempDir()
	tok, recipe := filepath.Join(dir, "tok"), filepath.Join(dir, "r.yaml")
	text := "version: 1\nname: r\ntask: {kind: stories}\ndata: {train: {source: generated, size: 200}}\n" +
		"model: {arch: {layers: 1, width: 8, heads: 1, head_size: 8, ffn: 8}}\nalgo: {kind: grpo}\nrollout: {max_new_tokens: 8}\ntrain: {steps: 1, prompts_per_step: 1, optim: {lr: 1e-4}}\n" +
		"tokenizer: {kind: file, path: " + tok + "}\n"
	if err := os.WriteFile(recipe, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lacking := call{}.run("run", recipe, "--dry-run", "--store", filepath.Join(dir, "store"))
	if lacking.code != int(cli.ExitUsage) || !strings.Contains(lacking.stderr, "exp tokenizer train RECIPE --vocab-size N") {
		t.Errorf("exit %d, %s; want the command that makes a tokenizer", lacking.code, lacking.stderr)
	}
	call{}.run("tokenizer", "train", recipe, "--vocab-size", "300").succeeds(t)
	shown := call{}.run("tokenizer", "encode", tok, " dollars", "-o", "jsonl")
	shown.succeeds(t)
	if n := strings.Count(shown.stdout, "\n"); n >= len(" dollars") {
		t.Errorf("%d tokens, want fewer than letters: a word that comes often", n)
	}
	call{}.run("run", recipe, "--dry-run", "--store", filepath.Join(dir, "store")).succeeds(t)
}

// The tokenizer kept with the recipes matches its recipe.
func TestStoriesTokenizer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes 80,000 problems")
	}
	dir, kept := t.TempDir(), "../../configs/tokenizers/stories/tokenizer.json"
	call{}.run("tokenizer", "train", "../../configs/stories_cpu_flowrl.yaml", "--vocab-size", "768", "--out", dir).succeeds(t)
	got, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what exp tokenizer train makes of configs/stories_cpu_flowrl.yaml", kept)
	}
}

func TestTokenizerRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(text, []byte("aa aa"), 0o644); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "model")
	if err := os.MkdirAll(model, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(model, "tokenizer.json"), []byte(`{"model": {"type": "WordPiece"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code cli.ExitCode
		want string
	}{
		{"train", cli.ExitUsage, "FILE"},
		{"train " + text + " --out x", cli.ExitUsage, "--vocab-size N is needed"},
		{"train " + text + " --vocab-size 300", cli.ExitUsage, "--out DIR is missing"},
		{"train " + text + " --vocab-size 3 --out " + dir + "/o", cli.ExitUsage, "at least 257"},
		{"train " + dir + "/none.txt --vocab-size 300 --out " + dir + "/o", cli.ExitNotFound, "none.txt"},
		{"train " + text + " --vocab-size 300 --pattern ( --out " + dir + "/o", cli.ExitUsage, "unterminated group"},
		{"train " + text + " --vocab-size 300 --out " + model, cli.ExitUsage, "has a tokenizer already"},
		{"encode " + dir + "/none a", cli.ExitNotFound, "none"},
		{"encode " + model + " a", cli.ExitUsage, `type "WordPiece" is not supported`},
	} {
		e := call{}.run(append([]string{"tokenizer"}, strings.Fields(tt.args)...)...)
		if e.code != int(tt.code) || !strings.Contains(e.stderr, tt.want) {
			t.Errorf("%s: exit %d, %s; want exit %d and %q", tt.args, e.code, e.stderr, tt.code, tt.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "o")); err == nil {
		t.Error("a refused training wrote a folder")
	}
}

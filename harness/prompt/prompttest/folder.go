// Package prompttest writes, for the tests of other packages, model folders with tokenizers and chat templates.
package prompttest

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
)

// ChatML is a chat template like Qwen's.
const ChatML = "{% for m in messages %}{% if loop.first and m.role != 'system' %}" +
	"<|im_start|>system\nYou help.<|im_end|>\n{% endif %}" +
	"<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
	"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// byteChars are the characters of GPT-2's byte level.
func byteChars() []string {
	var list []string
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r, next = next, next+1
		}
		list = append(list, string(r))
	}
	return list
}

// special are the special tokens of ModelFolder.
func special() []string { return []string{"<s>", "</s>", "<|im_start|>", "<|im_end|>", "<pad>"} }

// ModelFolder is a folder with a tokenizer of bytes: ids 0 to 255 are the bytes, then
// come <s>, </s>, <|im_start|>, <|im_end|> and <pad>. files replace or add files.
func ModelFolder(t *testing.T, bos bool, files map[string]string) string {
	t.Helper()
	vocab := map[string]int{}
	for i, s := range byteChars() {
		vocab[s] = i
	}
	type object map[string]any
	var added []any
	for i, s := range special() {
		added = append(added, object{"id": 256 + i, "content": s, "single_word": false, "lstrip": false,
			"rstrip": false, "normalized": false, "special": true})
	}
	var post any
	if bos {
		sequence := func(id string, kind int) object {
			return object{"Sequence": object{"id": id, "type_id": kind}}
		}
		post = object{"type": "TemplateProcessing",
			"special_tokens": object{"<s>": object{"id": "<s>", "ids": []int{256}, "tokens": []string{"<s>"}}},
			"single":         []any{object{"SpecialToken": object{"id": "<s>", "type_id": 0}}, sequence("A", 0)},
			"pair":           []any{sequence("A", 0), sequence("B", 1)}}
	}
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	raw, err := json.Marshal(object{"version": "1.0", "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": level, "post_processor": post, "decoder": level,
		"model": object{"type": "BPE", "vocab": vocab, "merges": []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"tokenizer.json": string(raw),
		"tokenizer_config.json":  `{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "tokenizer_class": "PreTrainedTokenizerFast"}`,
		"generation_config.json": `{"eos_token_id": [257], "pad_token_id": 260}`}
	maps.Copy(all, files)
	dir := t.TempDir()
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Rename gives special tokens of a ModelFolder, in pairs with theirs, other texts.
func Rename(t *testing.T, dir string, pairs ...string) {
	t.Helper()
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for i := 0; i < len(pairs); i += 2 {
			for _, old := range []string{pairs[i], strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(pairs[i])} {
				text = strings.ReplaceAll(text, `"`+old+`"`, `"`+pairs[i+1]+`"`)
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Written shows ids as text, with the special tokens.
func Written(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id >= 256 {
			b.WriteString(special()[id-256])
		} else {
			b.WriteByte(byte(id))
		}
	}
	return b.String()
}

// Run is a configuration whose prompts are for the model in a folder.
func Run(dir string) *config.Run {
	return &config.Run{Tokenizer: config.Tokenizer{Kind: "model"}, Model: config.Model{Init: "pretrained", Base: dir},
		Data: config.Data{Chat: config.Auto, TemplateDate: "2024-07-26", MaxPromptTokens: 1000, Truncate: "error"}}
}

// DataPath is a file of EXP_DATA or, by default, of shared/data next to the repository.
func DataPath(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("EXP_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the published files are not on this machine: %v", err)
	}
	return path
}

// QwenTokenizer is a folder with the published tokenizer of Qwen2.5 and its chat template.
func QwenTokenizer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(DataPath(t, "tokenizers/qwen2/tokenizer.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	main, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := os.ReadFile(DataPath(t, "tokenizers/qwen2/tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"tokenizer.json": main, "tokenizer_config.json": conf} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

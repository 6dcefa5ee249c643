package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tinyBPE = `{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "</s>": 4}, "merges": ["a b"]}`

func tinyFiles() map[string][]byte {
	return map[string][]byte{
		"tokenizer.json":          []byte(`{"version": "1.0", "model": ` + tinyBPE + `, "decoder": {"type": "ByteLevel"}, "added_tokens": [{"id": 7, "content": "<x>", "special": true}]}`),
		"tokenizer_config.json":   []byte(`{"eos_token": {"content": "</s>"}, "pad_token": null, "bos_token": "<x>", "additional_special_tokens": ["<y>"]}`),
		"special_tokens_map.json": []byte(`{"eos_token": "other", "unk_token": "b", "sep_token": {"content": "ab"}}`),
		"generation_config.json":  []byte(`{"eos_token_id": [7, 2]}`),
		"config.json":             []byte(`{"eos_token_id": 2, "model_type": "llama"}`),
		"chat_template.jinja":     []byte("{{ messages }}"),
		"README.md":               []byte("not a tokenizer's file"),
	}
}

func TestSettings(t *testing.T) {
	tok, err := ReadFiles(tinyFiles())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.EndIDs(), []int32{7, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("EndIDs = %v, want %v: generation_config.json, config.json, eos_token", got, want)
	}
	want := Special{BOS: "<x>", EOS: "</s>", Additional: []string{"<y>"},
		Named: map[string]string{"bos_token": "<x>", "eos_token": "</s>", "unk_token": "b", "sep_token": "ab"}}
	if diff := cmp.Diff(want, tok.SpecialTokens()); diff != "" {
		t.Errorf("special tokens (-want +got):\n%s", diff)
	}
	if got, want := tok.VocabSize(), 8; got != want {
		t.Errorf("VocabSize = %d, want %d", got, want)
	}
	// Tokens with a name are special, also if the vocabulary has them.
	ids, err := tok.Encode("ab</s>a<x>", Options{Added: true})
	if want := []int32{2, 4, 0, 7}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("Encode = %v, %v, want %v", ids, err, want)
	}
	if got, want := tok.Decode([]int32{0, 4, 7, 0}), "aa"; got != want {
		t.Errorf("Decode = %q, want %q", got, want)
	}
	if id, ok := tok.TokenID("nothing"); ok {
		t.Errorf("TokenID of nothing = %d", id)
	}
}

// The config.json of models with Mamba-2 has Infinity, which is not JSON.
func TestSettingsOfPython(t *testing.T) {
	files := tinyFiles()
	files["config.json"] = []byte(`{"time_step_limit": [0.0, Infinity], "eos_token_id": 3}`)
	tok, err := ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.EndIDs(), []int32{7, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("EndIDs = %v, want %v", got, want)
	}
	files["config.json"] = []byte(`{"eos_token_id": "</s>"}`)
	if _, err := ReadFiles(files); err == nil || !strings.Contains(err.Error(), `"</s>" is neither a token's id nor a list of ids`) {
		t.Errorf("a text for an id: %v", err)
	}
}

func TestFolderKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	files := tinyFiles()
	files["additional_chat_templates/tool.jinja"] = []byte("{{ tools }}")
	for name, b := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "config.json")
	delete(files, "README.md")
	if diff := cmp.Diff(files, tok.Files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestCharKeepsTemplate(t *testing.T) {
	files := newChar(t, "ab").Files()
	files["chat_template.jinja"] = []byte("x")
	tok, err := ReadFiles(files)
	if err != nil || tok.Description() != `char/1 "ab"` || string(tok.Files()["chat_template.jinja"]) != "x" {
		t.Errorf("%v, %v", tok, err)
	}
}

// The description depends on the computation, not on the spelling of the file.
func TestDescription(t *testing.T) {
	describe := func(change func(map[string][]byte)) string {
		files := tinyFiles()
		change(files)
		tok, err := ReadFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		return tok.Description()
	}
	in := func(name, old, now string) func(map[string][]byte) {
		return func(f map[string][]byte) {
			text := strings.Replace(string(f[name]), old, now, 1)
			if text == string(f[name]) {
				t.Fatalf("%s has no %q", name, old)
			}
			f[name] = []byte(text)
		}
	}
	want := describe(func(map[string][]byte) {})
	for what, change := range map[string]func(map[string][]byte){
		"merges as pairs":   in("tokenizer.json", `["a b"]`, `[["a", "b"]]`),
		"order of fields":   in("tokenizer.json", `"type": "BPE", "vocab": {"a": 0, "b": 1,`, `"vocab": {"b": 1, "a": 0,`),
		"a new template":    in("chat_template.jinja", "messages", "other"),
		"fields of a model": in("config.json", "llama", "mistral"),
	} {
		if got := describe(change); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	for what, change := range map[string]func(map[string][]byte){
		"another merge": in("tokenizer.json", `["a b"]`, `[]`),
		"another id":    in("tokenizer.json", `"a": 0`, `"a": 9`),
		"a normalizer":  in("tokenizer.json", `"version"`, `"normalizer": {"type": "NFC"}, "version"`),
		"a flag":        in("tokenizer.json", `"<x>",`, `"<x>", "lstrip": true,`),
		"an end id":     in("generation_config.json", "7", "6"),
		"a named token": in("tokenizer_config.json", `"bos_token": "<x>"`, `"bos_token": "a"`),
	} {
		if got := describe(change); got == want {
			t.Errorf("%s: the same description", what)
		}
	}
}

func TestConfigWins(t *testing.T) {
	files := tinyFiles()
	files["tokenizer_config.json"] = []byte(`{"added_tokens_decoder": {"7": {"content": "<x>", "special": false, "rstrip": true}, "9": {"content": "<new>"}}}`)
	tok, err := ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode("<x>  a<new>", Options{Added: true})
	if want := []int32{7, 0, 9}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("Encode = %v, %v, want %v", ids, err, want)
	}
	if got, want := tok.Decode(ids), "<x>a<new>"; got != want {
		t.Errorf("Decode = %q, want %q", got, want)
	}
}

// Without added_tokens_decoder, added_tokens.json adds the tokens that tokenizer.json lacks.
func TestOlderAddedTokens(t *testing.T) {
	files := tinyFiles()
	files["added_tokens.json"] = []byte(`{"<z>": 10, "<y>": 8, "<x>": 9, "<w>": 7}`)
	tok, err := ReadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode("<x>a<y><z>", Options{Added: true})
	if want := []int32{7, 0, 8, 10}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("Encode = %v, %v, want %v", ids, err, want)
	}
	if got, want := tok.Decode(ids), "a<z>"; got != want {
		t.Errorf("Decode = %q, want %q: <x> and <y> are special", got, want)
	}
	if id, ok := tok.TokenID("<w>"); ok {
		t.Errorf("TokenID of <w> = %d; tokenizer.json has another token with that id", id)
	}
	files["tokenizer_config.json"] = []byte(`{"added_tokens_decoder": {}}`)
	if tok, err = ReadFiles(files); err != nil {
		t.Fatal(err)
	}
	if id, ok := tok.TokenID("<z>"); ok {
		t.Errorf("TokenID of <z> = %d; added_tokens_decoder replaces added_tokens.json", id)
	}
	files["tokenizer_config.json"] = []byte(`{}`)
	files["added_tokens.json"] = []byte(`{"<z>": -1}`)
	if _, err := ReadFiles(files); err == nil || !strings.Contains(err.Error(), `added_tokens.json: "<z>" has id -1`) {
		t.Errorf("error %v, want one with the id", err)
	}
}

func TestVocabFiles(t *testing.T) {
	files := map[string][]byte{
		"vocab.json":            []byte(`{"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4, "1": 5, "11": 6}`),
		"merges.txt":            []byte("#version: 0.2\na b\nĠ ab\n1 1\n"),
		"tokenizer_config.json": []byte(`{"tokenizer_class": "GPT2Tokenizer"}`),
	}
	for class, want := range map[string][]int32{"GPT2Tokenizer": {2, 4, 6}, "Qwen2Tokenizer": {2, 4, 5, 5}} {
		files["tokenizer_config.json"] = []byte(`{"tokenizer_class": "` + class + `"}`)
		tok, err := ReadFiles(files)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tok.Encode("ab ab11", Options{}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", class, got, err, want)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(tok.Files()))); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	files["tokenizer_config.json"] = []byte(`{"tokenizer_class": "BertTokenizer"}`)
	refuses(t, files, `"BertTokenizer"`)
	delete(files, "merges.txt")
	refuses(t, files, "and so is one of")
	files["tokenizer.model"] = []byte{10}
	refuses(t, files, "tokenizer.model: it is not a model of SentencePiece")
}

func refuses(t *testing.T, files map[string][]byte, want string) {
	t.Helper()
	if _, err := ReadFiles(files); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// Each byte of a run that is not UTF-8 is a token of its own for later decoders.
func TestFallbackOfInvalidBytes(t *testing.T) {
	tok, err := ReadFiles(map[string][]byte{"tokenizer.json": []byte(`{
		"model": {"type": "BPE", "vocab": {"<0xC3>": 0, "<0x28>": 1, "b": 2}, "merges": []},
		"decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"},
			{"type": "Strip", "content": "\uFFFD", "start": 1, "stop": 0}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Decode([]int32{2, 0, 1, 2}); got != "bb" {
		t.Errorf("Decode = %q, want bb", got)
	}
}

// A text whose start Replace drops, or makes of several characters, is not first for
// Metaspace, as in Hugging Face's library.
func TestFirstAfterReplace(t *testing.T) {
	for _, tt := range []struct{ pattern, content, text, want string }{
		{`{"String": "bb"}`, "x", "bba", "xa"},
		{`{"String": "bb"}`, "x", "abba", "▁axa"},
		{`{"String": "é"}`, "x", "éa", "▁xa"},
		{`{"String": "a"}`, "", "ab", "b"},
		{`{"Regex": "^a"}`, "", "aab", "ab"},
		{`{"Regex": "a+"}`, "x", "ab", "▁xb"},
		{`{"Regex": "a+"}`, "x", "aab", "xb"},
	} {
		tok, err := ReadFiles(map[string][]byte{"tokenizer.json": fmt.Appendf(nil, `{"model": {"type": "BPE",
			"vocab": {"▁": 0, "a": 1, "b": 2, "x": 3}, "merges": []}, "decoder": {"type": "Fuse"},
			"normalizer": {"type": "Replace", "pattern": %s, "content": %q},
			"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}}`, tt.pattern, tt.content)})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(tt.text, Options{})
		if got := tok.Decode(ids); err != nil || got != tt.want {
			t.Errorf("%s to %q in %q: %q, %v, want %q", tt.pattern, tt.content, tt.text, got, err, tt.want)
		}
	}
}

// All that comes from a text's first character is first for Metaspace, however it is cut;
// expectations are from tokenizers 0.23.
func TestFirstCharacterInParts(t *testing.T) {
	const each = `{"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false}`
	const always = `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, `
	const bytes = `{"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}, `
	const prepended = `{"type": "Prepend", "prepend": "x"}`
	var file struct {
		Normalizer struct{ Normalizers []json.RawMessage }
	}
	golden := readGolden(t, "testdata/golden/spm_nmt_nfkc.json.gz")
	if err := json.Unmarshal([]byte(golden.Files["tokenizer.json"]), &file); err != nil {
		t.Fatal(err)
	}
	chars := string(file.Normalizer.Normalizers[0]) // Precompiled
	seq := func(a, b string) string { return fmt.Sprintf(`{"type": "Sequence", "normalizers": [%s, %s]}`, a, b) }
	after := func(n string) string { return seq(prepended, n) }
	replaced := func(kind, pattern, content string) string {
		return fmt.Sprintf(`{"type": "Replace", "pattern": {%q: %q}, "content": %q}`, kind, pattern, content)
	}
	for _, tt := range []struct{ normalizer, split, text, want string }{
		{`null`, each, "ab", "▁ab"},
		{prepended, each, "ab", "▁x▁ab"},
		{`{"type": "NFKC"}`, each, "ﬁa", "▁f▁ia"},
		{`{"type": "NFKC"}`, each, "…a", "▁.▁.▁.a"},
		{`{"type": "NFC"}`, each, "e\u0301a", "▁éa"},
		{`{"type": "NFC"}`, each, "ab", "▁ab"},
		{`{"type": "ByteLevel"}`, each, "éa", "▁Ã▁©a"},
		{replaced("Regex", "a", "bx"), each, "aa", "▁b▁xbx"},
		{replaced("Regex", "^ab", "x"), each, "aba", "xa"},
		{after(replaced("Regex", "x", "fi")), each, "ab", "▁f▁i▁ab"},
		{after(replaced("Regex", "xa", "fi")), each, "ab", "▁f▁ib"},
		{after(replaced("Regex", "ab", "fi")), each, "ab", "▁xfi"},
		{after(replaced("Regex", "a", "")), each, "ab", "▁xb"},
		{after(`{"type": "Strip"}`), each, " a", "▁x▁a"},
		{after(replaced("String", "a", "fi")), each, "aa", "▁x▁f▁ifi"},
		{after(replaced("String", "ab", "fi")), each, "aba", "▁xfia"},
		{`null`, always + each, "ab", "▁▁ab"},
		{`null`, bytes + each, "éa", "▁Ġ▁Ã▁©a"},
		{after(`{"type": "StripAccents"}`), each, "\u0301a", "▁xa"},
		{seq(`{"type": "NFD"}`, `{"type": "StripAccents"}`), each, "Ãa", "▁a"},
		{after(`{"type": "Strip"}`), each, " ", "▁x"},
		{`{"type": "Lowercase"}`, each, "İa", "▁i▁a"},
		{seq(`{"type": "Prepend", "prepend": " "}`, `{"type": "Strip"}`), each, "aab", "▁aab"},
		{seq(`{"type": "Strip", "strip_left": false}`, `{"type": "ByteLevel"}`), each, " ", ""},
		{chars, each, "ﬁa", "▁f▁ia"},
		{chars, each, "e\u0301a", "▁éa"},
		{chars, each, "…a", "▁.▁.▁.a"},
		{chars, each, "\u0001ab", "▁ab"},
		{after(chars), each, "e\u0301a", "▁x▁éa"},
		{after(chars), each, "\x00ab", "▁x▁ab"},
		{seq(replaced("Regex", "a", "\u1100\u1161x"), chars), each, "ab", "▁▁▁xb"},
		{seq(replaced("Regex", "a", "bﬁ"), chars), each, "ab", "▁b▁f▁ib"},
		{after(replaced("Regex", "^.", "")), each, "ab", "▁ab"},
	} {
		tok, err := ReadFiles(map[string][]byte{"tokenizer.json": fmt.Appendf(nil, `{"model": {"type": "BPE",
			"vocab": {"▁": 0, "a": 1, "b": 2, "x": 3, "é": 4, "f": 5, "i": 6, ".": 7, "Ã": 8, "©": 9, "Ġ": 10},
			"merges": []}, "decoder": {"type": "Fuse"}, "normalizer": %s, "pre_tokenizer": {"type": "Sequence",
			"pretokenizers": [%s, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]}}`,
			tt.normalizer, tt.split)})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(tt.text, Options{})
		if got := tok.Decode(ids); err != nil || got != tt.want {
			t.Errorf("%s, %s: %q is %q, %v, want %q", tt.normalizer, tt.split, tt.text, got, err, tt.want)
		}
	}
}

// A completion continues its prompt: its first space stays.
func TestContinue(t *testing.T) {
	tok, err := ReadFiles(map[string][]byte{"tokenizer.json": []byte(`{"model": {"type": "BPE", "vocab": {"▁a": 0, "b": 1, "<0xE2>": 2}, "merges": []},
		"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	ids := []int32{0, 1, 0, 2}
	if got, want := Continue(tok, ids), " ab a\uFFFD"; got != want {
		t.Errorf("Continue = %q, want %q", got, want)
	}
	if got, want := tok.Decode(ids), "ab a\uFFFD"; got != want {
		t.Errorf("Decode = %q, want %q", got, want)
	}
}

package tokenizer

import (
	"fmt"
	"strings"
	"testing"
)

// levelFile is a tokenizer.json of single bytes, with its pre-tokenizer's
// add_prefix_space and added tokens.
func levelFile(space bool, added string) []byte {
	return fmt.Appendf(nil, `{"added_tokens": [%s], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": %v}, "decoder": {"type": "ByteLevel"},
		"model": {"type": "BPE", "vocab": {"a": 0, "\u0120": 1, "b": 2}, "merges": []}}`, added, space)
}

// What transformers 4.57 and 5.23 encode "a" to: the classes of GPT-2 overrule the file.
func TestPrefixSpaceOfConfig(t *testing.T) {
	for _, tt := range []struct {
		class, setting string
		file, want     bool
	}{
		{"GPT2Tokenizer", ``, true, false},
		{"GPT2Tokenizer", `, "add_prefix_space": true`, false, true},
		{"GPT2TokenizerFast", `, "add_prefix_space": null`, true, true},
		{"GPT2TokenizerFast", `, "add_prefix_space": true`, true, true},
		{"PreTrainedTokenizerFast", `, "add_prefix_space": false`, true, true},
		{"LlamaTokenizerFast", ``, true, true},
	} {
		tok, err := ReadFiles(map[string][]byte{"tokenizer.json": levelFile(tt.file, ""),
			"tokenizer_config.json": []byte(`{"tokenizer_class": "` + tt.class + `"` + tt.setting + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode("a", Options{})
		if err != nil || (len(ids) == 2) != tt.want {
			t.Errorf("%+v: %v, %v", tt, ids, err)
		}
	}
}

func TestSplitSpecialTokensIsRefused(t *testing.T) {
	for value, refused := range map[string]bool{"true": true, "false": false, "null": false} {
		_, err := ReadFiles(map[string][]byte{"tokenizer.json": levelFile(false, ""), "tokenizer_config.json": []byte(`{"split_special_tokens": ` + value + `}`)})
		if (err != nil && strings.Contains(err.Error(), "split_special_tokens is true")) != refused {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestNotesOfGaps(t *testing.T) {
	for added, want := range map[string]string{
		``:                            "",
		`{"id": 3, "content": "<x>"}`: "",
		`{"id": 0, "content": "a"}, {"id": 3, "content": "<x>"}, {"id": 4, "content": "<y>"}`:   "",
		`{"id": 3, "content": "<x>"}, {"id": 9, "content": "<y>"}, {"id": 8, "content": "<z>"}`: `gives 2 of the added tokens other ids, because it ignores the file's ids if the vocabulary has gaps: "<y>" is 9 here, as written, and 4 there`,
	} {
		tok, err := ReadFiles(map[string][]byte{"tokenizer.json": levelFile(false, added)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Notes(tok), "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", added, got, want)
		}
	}
	if list := Notes(Byte{}); len(list) != 0 {
		t.Errorf("bytes have notes %q", list)
	}
}

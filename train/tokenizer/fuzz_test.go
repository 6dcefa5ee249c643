package tokenizer

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The scanners by hand find what the regular expressions find.
func FuzzScanners(f *testing.F) {
	for _, s := range []string{
		"Hello world's  I'M we'LL\r\n\n 12345  ½x_y ", "'ſ 's'S'd", " \n \n\n  a", "日本カタカナ123abc", "  \t#include<x>\u00a0é\u0301!!\r\n",
		"a\u0301b\u0e33 ! \u200d٣٤१२३४", "$x^{2}$ \\frac{1}{2}.foo (bar", "   ", "\u0085\u2028x", "ÀÉ'T'Re'VE'm'D'lL'l",
	} {
		f.Add(s)
	}
	patterns := []string{patternGPT2, patternQwen, patternLlama3, patternDigits, patternCJK, patternDeepSeek}
	var slow []*regex
	for _, p := range patterns {
		re, err := newRegex(p)
		if err != nil {
			f.Fatal(err)
		}
		slow = append(slow, re)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || len(s) > 1000 {
			t.Skip()
		}
		for i, p := range patterns {
			var got, want []part
			scan, err := newMatcher(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := scan.matches(s, func(a, b int) { got = append(got, part{start: a, end: b}) }); err != nil {
				t.Fatal(err)
			}
			if err := slow[i].matches(s, func(a, b int) { want = append(want, part{start: a, end: b}) }); err != nil {
				t.Skip(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%s\n%q: got %v, want %v", p, s, got, want)
			}
			for k := range got {
				if got[k] != want[k] {
					t.Fatalf("%s\n%q: got %v, want %v", p, s, got, want)
				}
			}
		}
	})
}

// The heap and the plain loop merge alike, and every byte comes back.
func FuzzMerge(f *testing.F) {
	tok, err := Train(func(yield func(string) bool) {
		yield(strings.Repeat("aaab abab banana bandana aaaa ", 9))
	}, TrainOptions{VocabSize: 300})
	if err != nil {
		f.Fatal(err)
	}
	m := tok.model.(*bpe).merges
	f.Add("banana aaaaaaaab")
	f.Fuzz(func(t *testing.T, s string) {
		ids := make([]int32, 0, len(s))
		for i := range len(s) {
			ids = append(ids, int32(s[i]))
		}
		want := slowMerge(m, ids)
		if got := m.applyHeap(append([]int32(nil), ids...)); !equalIDs(got, want) {
			t.Fatalf("%q: the heap gives %v, want %v", s, got, want)
		}
		if got := m.apply(ids, &mergeScratch{}); !equalIDs(got, want) {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
	})
}

// slowMerge is the definition.
func slowMerge(m *merges, ids []int32) []int32 {
	out := append([]int32(nil), ids...)
	for {
		at, best := -1, uint64(noPair)
		for i := 0; i+1 < len(out); i++ {
			if v := m.get(out[i], out[i+1]); v != noPair && v>>32 < best>>32 {
				at, best = i, v
			}
		}
		if at < 0 {
			return out
		}
		out[at] = int32(uint32(best))
		out = append(out[:at+1], out[at+2:]...)
	}
}

func equalIDs(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Any tokenizer.json is read or refused; a tokenizer that was read encodes and decodes
// without a panic and in limited time.
func FuzzReadFiles(f *testing.F) {
	for i, path := range goldenFiles(f) {
		c := readGolden(f, path)
		if text := c.Files["tokenizer.json"]; len(text) < 40000 && i%12 == 0 {
			f.Add([]byte(text), []byte(`{"eos_token": "</s>"}`), "Hello <s> wörld 12 ▁ \x00日")
		}
	}
	for _, parts := range []string{
		`"normalizer": {"type": "Replace", "pattern": {"Regex": "(a|aa)+$"}, "content": "aaa"}`,
		`"normalizer": {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"}, {"type": "Lowercase"}, {"type": "NFKD"}]}`,
		`"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?i)[^\\s\\p{L}]++|\\bk{2,}?(?=x)"}, "behavior": "MergedWithNext", "invert": true}`,
		`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}]}`,
		`"decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 2, "stop": 1}]}`,
		`"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "b"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"b": {"ids": [1]}}}`,
		`"added_tokens": [{"id": 7, "content": "ab", "lstrip": true, "rstrip": true, "normalized": true, "single_word": true}]`,
	} {
		for _, model := range []string{
			`{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "▁": 3, "<unk>": 4}, "merges": ["a b"], "unk_token": "<unk>"}`,
			`{"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2]], "unk_id": 0}`,
		} {
			f.Add([]byte(`{"version": "1.0", "model": `+model+", "+parts+"}"), []byte(`{}`), "ab aaaab 12\nK x")
		}
	}
	f.Add(Byte{}.Files()["tokenizer.json"], []byte(`{"added_tokens_decoder": {"3": {"content": "x"}}}`), "x")
	f.Fuzz(func(t *testing.T, file, config []byte, text string) {
		if len(text) > 4096 {
			t.Skip()
		}
		start := time.Now()
		tok, err := ReadFiles(map[string][]byte{"tokenizer.json": file, "tokenizer_config.json": config})
		if err != nil {
			return
		}
		for _, o := range []Options{{}, {Added: true, Special: true}} {
			ids, err := tok.Encode(text, o)
			if err != nil {
				continue
			}
			if tok.DecodeAll(ids); !utf8.ValidString(tok.Decode(ids)) {
				t.Fatalf("%q does not decode to UTF-8: %q", text, tok.Decode(ids))
			}
			for _, id := range ids {
				outside := int(id) >= tok.VocabSize() || id < 0
				if outside && !o.Special { // a template may name any id
					t.Fatalf("%q: id %d outside of the vocabulary of %d", text, id, tok.VocabSize())
				}
			}
		}
		if d := time.Since(start); d > time.Minute {
			t.Fatalf("took %v", d)
		}
	})
}

// The companion files of tokenizer.json are read or refused, and every token they name exists.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true, "added_tokens_decoder": {"4": {"content": "<x>", "special": true}}}`),
		[]byte(`{"bos_token": {"content": "<x>"}, "additional_special_tokens": ["a", {"content": "<y>"}]}`), []byte(`{"eos_token_id": [0, 4]}`))
	f.Add([]byte(`{"extra_special_tokens": {"image_token": "<i>"}, "eos_token": "b", "split_special_tokens": null}`), []byte(`[]`), []byte(`{"eos_token_id": null}`))
	f.Add([]byte(`{"added_tokens_decoder": {"4194303": {"content": "a", "lstrip": true}, "-1": {}}}`), []byte(`{"eos_token": 3}`), []byte(`{"eos_token_id": 9999999999}`))
	f.Fuzz(func(t *testing.T, config, names, ends []byte) {
		for _, level := range []bool{false, true} {
			tok, err := ReadFiles(map[string][]byte{"tokenizer.json": levelFile(level, `{"id": 3, "content": "<e>"}`), "tokenizer_config.json": config,
				"special_tokens_map.json": names, "generation_config.json": ends, "config.json": ends})
			if err != nil {
				continue
			}
			Notes(tok)
			for _, id := range tok.EndIDs() {
				if id < 0 {
					t.Fatalf("end id %d", id)
				}
			}
			ids, err := tok.Encode("ab <x><e> a", Options{Added: true, Special: true})
			if err == nil {
				tok.DecodeAll(ids)
			}
		}
	})
}

// On the byte level every text comes back, and the pieces of tokens spell what Decode
// says.
func FuzzRoundTrip(f *testing.F) {
	tok, err := Train(func(yield func(string) bool) {
		yield(strings.Repeat("the cat naïve 日本語 🙂 ", 9))
	}, TrainOptions{VocabSize: 320, Special: []string{"<|im_end|>"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("the cat\n日本語 🙂é <|im_end|>", []byte{0xE2, 0x82, 0x41, 0xFF})
	f.Fuzz(func(t *testing.T, text string, random []byte) {
		ids, err := tok.Encode(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tok.Decode(ids), validText([]byte(text)); got != want {
			t.Fatalf("decoded %q, want %q", got, want)
		}
		for i := 0; i+1 < len(random); i += 2 {
			ids = append(ids, (int32(random[i])<<8|int32(random[i+1]))%int32(tok.VocabSize()))
		}
		if got, want := Continue(tok, ids), tok.Decode(ids); got != want {
			t.Fatalf("%v: pieces spell %q, want %q", ids, got, want)
		}
	})
}

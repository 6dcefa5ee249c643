package tokenizer

import (
	"bytes"
	"strconv"
	"strings"
)

// byteEnd is the end token of Byte.
const byteEnd = 256

// Byte is a tokenizer with one token per byte, for any text: ids 0 to 255 are the bytes,
// 256 is the end token. The zero value is ready to use.
type Byte struct{}

// Encode returns the bytes of text. With o.Added the text of EndToken becomes the end
// token. It adds no special tokens. The error is always nil.
func (Byte) Encode(text string, o Options) ([]int32, error) {
	ids := make([]int32, 0, len(text))
	for text != "" {
		if o.Added && strings.HasPrefix(text, EndToken) {
			ids = append(ids, byteEnd)
			text = text[len(EndToken):]
			continue
		}
		ids = append(ids, int32(text[0]))
		text = text[1:]
	}
	return ids, nil
}

// Decode returns the text of the bytes without the end token, with U+FFFD for invalid
// UTF-8.
func (b Byte) Decode(ids []int32) string {
	var out []byte
	for _, id := range ids {
		out = append(out, b.Piece(id)...)
	}
	return validText(out)
}

// DecodeAll is Decode with the end token written as EndToken.
func (b Byte) DecodeAll(ids []int32) string {
	var out []byte
	for _, id := range ids {
		if id == byteEnd {
			out = append(out, EndToken...)
		}
		out = append(out, b.Piece(id)...)
	}
	return validText(out)
}

// Piece returns the byte, or nothing for the end token.
func (Byte) Piece(id int32) []byte {
	if id < 0 || id >= byteEnd {
		return nil
	}
	return []byte{byte(id)}
}

// Token returns the byte as written by GPT-2's byte level, or EndToken.
func (Byte) Token(id int32) string {
	switch {
	case id == byteEnd:
		return EndToken
	case id < 0 || id > byteEnd:
		return ""
	}
	return string(byteRune(byte(id)))
}

// VocabSize returns 257.
func (Byte) VocabSize() int { return byteEnd + 1 }

// EndIDs returns the end token's id, 256.
func (Byte) EndIDs() []int32 { return []int32{byteEnd} }

// SpecialTokens returns the end token as eos_token and pad_token.
func (Byte) SpecialTokens() Special { return endOnly() }

// endOnly returns the special tokens of a tokenizer that has only EndToken.
func endOnly() Special {
	return Special{EOS: EndToken, Named: map[string]string{"eos_token": EndToken, "pad_token": EndToken}}
}

// TokenID is the inverse of Token.
func (Byte) TokenID(text string) (int32, bool) {
	if text == EndToken {
		return byteEnd, true
	}
	if s, ok := fromByteLevel(text); ok && len(s) == 1 {
		return int32(s[0]), true
	}
	return 0, false
}

// Description returns `byte/1`.
func (Byte) Description() string { return "byte/1" }

// Files returns a tokenizer.json with a byte-level BPE without merges, which gives the same
// ids in Hugging Face's library, and its companion files.
func (b Byte) Files() map[string][]byte {
	vocab := make(map[string]int, byteEnd)
	for id := range byteEnd {
		vocab[b.Token(int32(id))] = id
	}
	return bpeFiles(bpeFile{Vocab: vocab, Merges: []string{}}, nil, byteEnd)
}

// bpeFile is the model of a byte-level BPE, for writing.
type bpeFile struct {
	Type         string         `json:"type"`
	Dropout      *float64       `json:"dropout"`
	Unk          *string        `json:"unk_token"`
	Prefix       *string        `json:"continuing_subword_prefix"`
	Suffix       *string        `json:"end_of_word_suffix"`
	FuseUnk      bool           `json:"fuse_unk"`
	Fallback     bool           `json:"byte_fallback"`
	IgnoreMerges bool           `json:"ignore_merges"`
	Vocab        map[string]int `json:"vocab"`
	Merges       any            `json:"merges"` // of strings, or of pairs
}

// bpeFiles returns the files of a byte-level BPE: special tokens have the ids from end on,
// and the first of them, EndToken, ends a completion. splits come before the byte level.
func bpeFiles(model bpeFile, splits []any, end int, special ...string) map[string][]byte {
	model.Type = "BPE"
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	var added []addedToken
	decoder := map[string]any{}
	for i, text := range append([]string{EndToken}, special...) {
		t := addedToken{ID: end + i, Content: text, Special: true}
		added = append(added, t)
		decoder[strconv.Itoa(t.ID)] = t.withoutID()
	}
	var pre any = level
	if len(splits) > 0 {
		pre = map[string]any{"type": "Sequence", "pretokenizers": append(splits, level)}
	}
	config := map[string]any{"added_tokens_decoder": decoder, "clean_up_tokenization_spaces": false,
		"eos_token": EndToken, "pad_token": EndToken, "tokenizer_class": "PreTrainedTokenizerFast"}
	names := map[string]any{"eos_token": EndToken, "pad_token": EndToken}
	if len(special) > 0 {
		config["additional_special_tokens"], names["additional_special_tokens"] = special, special
	}
	return map[string][]byte{
		"tokenizer.json": indented(map[string]any{"version": "1.0", "truncation": nil, "padding": nil,
			"added_tokens": added,
			"normalizer":   nil, "pre_tokenizer": pre, "post_processor": nil, "decoder": level, "model": model}),
		"tokenizer_config.json":   indented(config),
		"special_tokens_map.json": indented(names),
		"generation_config.json":  indented(map[string]any{"eos_token_id": end, "pad_token_id": end}),
	}
}

// asByte reports whether this tokenizer.json was written by Byte.
func asByte(raw []byte) bool { return bytes.Equal(raw, Byte{}.Files()["tokenizer.json"]) }

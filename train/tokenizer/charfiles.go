package tokenizer

import (
	"bytes"
	"encoding/json"
)

// Files returns tokenizer.json, tokenizer_config.json, special_tokens_map.json and
// generation_config.json. In tokenizer.json a Split pre-tokenizer isolates each character
// and a WordLevel model without an unknown token maps it, so a character outside the
// alphabet is an error there too instead of being dropped silently. Hugging Face's
// tokenizers reads EndToken in a text as the end token, as Encode with Added does.
func (c *Char) Files() map[string][]byte {
	vocab := make(map[string]int, len(c.pieces))
	vocab[EndToken] = 0
	for i, r := range c.alphabet {
		vocab[string(r)] = i + 1
	}
	end := addedToken{Content: EndToken, Special: true}

	return map[string][]byte{
		"tokenizer.json": indented(tokenizerJSON{
			Version:     "1.0",
			AddedTokens: []addedToken{end},
			PreTokenizer: split{
				Type:     "Split",
				Pattern:  pattern{Regex: anyCharacter},
				Behavior: "Isolated",
			},
			Decoder: typed{Type: "Fuse"},
			Model:   wordLevel{Type: "WordLevel", Vocab: vocab, UnkToken: "<unk>"},
		}),
		"tokenizer_config.json": indented(map[string]any{
			"added_tokens_decoder":         map[string]any{"0": end.withoutID()},
			"clean_up_tokenization_spaces": false,
			"eos_token":                    EndToken,
			"pad_token":                    EndToken,
			"tokenizer_class":              "PreTrainedTokenizerFast",
		}),
		"special_tokens_map.json": indented(map[string]any{
			"eos_token": EndToken,
			"pad_token": EndToken,
		}),
		"generation_config.json": indented(map[string]any{
			"eos_token_id": 0,
			"pad_token_id": 0,
		}),
	}
}

// anyCharacter also matches line ends, unlike ".".
const anyCharacter = `[\s\S]`

// tokenizerJSON is the part of Hugging Face's tokenizer.json that a Char needs; the null
// fields are required.
type tokenizerJSON struct {
	Version       string       `json:"version"`
	Truncation    *struct{}    `json:"truncation"`
	Padding       *struct{}    `json:"padding"`
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    *struct{}    `json:"normalizer"`
	PreTokenizer  split        `json:"pre_tokenizer"`
	PostProcessor *struct{}    `json:"post_processor"`
	Decoder       typed        `json:"decoder"`
	Model         wordLevel    `json:"model"`
}

type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`

	normal string // normalized content, if Normalized; "" if the same
}

// withoutID returns the token in the form of tokenizer_config.json, which has ids as keys.
func (t addedToken) withoutID() map[string]any {
	return map[string]any{
		"content":     t.Content,
		"single_word": t.SingleWord,
		"lstrip":      t.LStrip,
		"rstrip":      t.RStrip,
		"normalized":  t.Normalized,
		"special":     t.Special,
	}
}

type split struct {
	Type     string  `json:"type"`
	Pattern  pattern `json:"pattern"`
	Behavior string  `json:"behavior"`
	Invert   bool    `json:"invert"`
}

type pattern struct {
	Regex string `json:"Regex"`
}

type typed struct {
	Type string `json:"type"`
}

type wordLevel struct {
	Type     string         `json:"type"`
	Vocab    map[string]int `json:"vocab"`
	UnkToken string         `json:"unk_token"` // not in Vocab: an unknown character is an error
}

// indented returns v as JSON with two-space indentation and a final newline. Map keys are
// sorted, so equal values give equal bytes.
func indented(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic("tokenizer: JSON of a plain value: " + err.Error())
	}
	return b.Bytes()
}

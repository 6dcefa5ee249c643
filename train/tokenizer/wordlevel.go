package tokenizer

import (
	"encoding/json"
	"fmt"
)

// wordLevelModel makes each piece one token.
type wordLevelModel struct {
	vocab   *vocabulary
	unk     int32 // -1: an unknown piece is an error
	unkText string
}

func parseWordLevel(raw json.RawMessage, h *digest) (*wordLevelModel, error) {
	var f struct {
		Vocab json.RawMessage `json:"vocab"`
		Unk   *string         `json:"unk_token"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if absent(f.Vocab) || f.Unk == nil {
		return nil, fmt.Errorf("model: WordLevel needs vocab and unk_token")
	}
	m := &wordLevelModel{vocab: newVocabulary(), unk: -1, unkText: *f.Unk}
	if err := readVocab(f.Vocab, m.vocab.set); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if id, ok := m.vocab.id(*f.Unk); ok {
		m.unk = id
	}
	h.add("WordLevel", *f.Unk)
	h.vocabulary(m.vocab)
	return m, nil
}

func (m *wordLevelModel) words() *vocabulary { return m.vocab }

func (m *wordLevelModel) encode(ids []int32, piece string, _ *memory) ([]int32, error) {
	if id, ok := m.vocab.id(piece); ok {
		return append(ids, id), nil
	}
	if m.unk < 0 {
		return ids, fmt.Errorf("tokenizer: neither %q nor unk_token %q is in the vocabulary",
			clip(piece), m.unkText)
	}
	return append(ids, m.unk), nil
}

// parseModel builds the model of tokenizer.json. Old files omit its type, which is then
// inferred from the fields, as in Hugging Face's library.
func parseModel(raw json.RawMessage, h *digest) (model, error) {
	var f map[string]json.RawMessage
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	var kind string
	if !absent(f["type"]) {
		if err := json.Unmarshal(f["type"], &kind); err != nil {
			return nil, fmt.Errorf("model: type: %w", err)
		}
	} else {
		switch has := func(name string) bool { _, ok := f[name]; return ok }; {
		case has("merges"):
			kind = "BPE"
		case has("max_input_chars_per_word"):
			kind = "WordPiece"
		case has("unk_token"):
			kind = "WordLevel"
		case has("vocab"):
			kind = "Unigram"
		default:
			return nil, fmt.Errorf("model: no type, and none can be inferred from its fields")
		}
	}
	switch kind {
	case "BPE":
		return parseBPE(raw, h)
	case "Unigram":
		return parseUnigram(raw, h)
	case "WordLevel":
		return parseWordLevel(raw, h)
	}
	return nil, fmt.Errorf("model: type %q is not supported; BPE, Unigram and WordLevel are", kind)
}

package tokenizer

import (
	"encoding/json"
	"fmt"
)

// Notes says what a person should know of a tokenizer: where another program would give
// other ids for the same files. Most tokenizers have none.
func Notes(t Tokenizer) []string {
	if p, ok := t.(*Pipeline); ok {
		return p.notes
	}
	return nil
}

// gapNotes finds added tokens whose written ids Hugging Face's library does not keep: one
// that the vocabulary lacks gets the next free id there.
func gapNotes(list []addedToken, v *vocabulary) []string {
	next, moved := len(v.ids), 0
	var first addedToken
	firstID := 0
	for _, t := range list {
		id, known := v.id(t.Content)
		if !known {
			id = int32(next)
			next++
		}
		if int(id) != t.ID && t.ID != noID {
			if moved == 0 {
				first, firstID = t, int(id)
			}
			moved++
		}
	}
	if moved == 0 {
		return nil
	}
	return []string{fmt.Sprintf("tokenizer.json: Hugging Face's library gives %d of the added tokens other ids, as "+
		"it does not go by the file where the vocabulary has gaps: %q is %d here, as written, and %d there",
		moved, clip(first.Content), first.ID, firstID)}
}

// prefixSpace is a pre_tokenizer as transformers makes it for the tokenizer classes of
// GPT-2: a ByteLevel that stands alone takes add_prefix_space of tokenizer_config.json,
// false where it is absent; null changes nothing.
func (s *settings) prefixSpace(raw json.RawMessage) json.RawMessage {
	if s.class != "GPT2Tokenizer" && s.class != "GPT2TokenizerFast" || s.space == nil {
		return raw
	}
	c, err := parseComponent(raw, "pre_tokenizer")
	if err != nil || c.Type != "ByteLevel" || c.flag("add_prefix_space", true) == *s.space {
		return raw
	}
	c.fields["add_prefix_space"] = json.RawMessage(fmt.Sprint(*s.space))
	changed, err := json.Marshal(c.fields)
	if err != nil {
		return raw
	}
	return changed
}

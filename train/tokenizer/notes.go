package tokenizer

import (
	"encoding/json"
	"fmt"
)

// Notes returns notes for people on a tokenizer: cases where another program gives other ids
// for the same files. Most tokenizers have none.
func Notes(t Tokenizer) []string {
	if p, ok := t.(*Pipeline); ok {
		return p.notes
	}
	return nil
}

// gapNotes finds added tokens whose written ids Hugging Face's library ignores: it gives a
// token that the vocabulary lacks the next free id.
func gapNotes(list []addedToken, v *vocabulary) []string {
	next, moved := v.texts(), 0
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
	return []string{fmt.Sprintf("tokenizer.json: Hugging Face's library gives %d of the added tokens other ids, "+
		"because it ignores the file's ids if the vocabulary has gaps: %q is %d here, as written, and %d there",
		moved, clip(first.Content), first.ID, firstID)}
}

// prefixSpace returns a pre_tokenizer as transformers makes it for GPT-2's tokenizer
// classes: a lone ByteLevel takes add_prefix_space of tokenizer_config.json, false if
// absent; null changes nothing.
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

package tokenizer

import "fmt"

// mostID is the largest allowed id, because the tables are as long as it.
const mostID = 1<<22 - 1

// vocabulary maps token texts to ids and back.
type vocabulary struct {
	ids   map[string]int32
	texts []string // by id
	known []bool   // by id
}

func newVocabulary() *vocabulary { return &vocabulary{ids: map[string]int32{}} }

// set adds an entry; the last one for a text or an id wins.
func (v *vocabulary) set(text string, id int64) error {
	if id < 0 || id > mostID {
		return fmt.Errorf("token %q has id %d; ids must be from 0 to %d", text, id, mostID)
	}
	if n := int(id) + 1 - len(v.texts); n > 0 {
		v.texts = append(v.texts, make([]string, n)...)
		v.known = append(v.known, make([]bool, n)...)
	}
	v.ids[text] = int32(id)
	v.texts[id], v.known[id] = text, true
	return nil
}

// id returns the id of a text.
func (v *vocabulary) id(text string) (int32, bool) {
	id, ok := v.ids[text]
	return id, ok
}

// text returns the text of an id.
func (v *vocabulary) text(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.texts) || !v.known[id] {
		return "", false
	}
	return v.texts[id], true
}

// byteIDs returns the tokens <0x00> to <0xFF> of byte fallback; -1 if one is missing.
func (v *vocabulary) byteIDs() (ids [256]int32) {
	for b := range ids {
		ids[b] = -1
		if id, ok := v.ids[fmt.Sprintf("<0x%02X>", b)]; ok {
			ids[b] = id
		}
	}
	return ids
}

package tokenizer

import (
	"fmt"
	"hash/maphash"
	"iter"
	"strings"
)

// mostID is the largest allowed id, because the tables are as long as it.
const mostID = 1<<22 - 1

// vocabulary maps token texts to ids and back. Its tables have no pointers and no element
// per text: 150,000 tokens take 4 MB, a third of what a map and strings take, and the
// garbage collector does not look into them.
type vocabulary struct {
	text  strings.Builder // all texts, in the order of set
	ends  []uint32        // by text: where it ends in text
	ids   []int32         // by text
	owner []int32         // by id: its text, -1 if it has none
	seed  maphash.Seed
	table []int32 // a hash table of texts with open addressing, at most 3/4 full; -1 if empty
}

func newVocabulary() *vocabulary { return &vocabulary{seed: maphash.MakeSeed()} }

// set adds an entry; the last one for a text or an id wins.
func (v *vocabulary) set(text string, id int64) error {
	if id < 0 || id > mostID {
		return fmt.Errorf("token %q has id %d; ids must be from 0 to %d", text, id, mostID)
	}
	for len(v.owner) <= int(id) {
		v.owner = append(v.owner, -1)
	}
	if 4*len(v.ids) >= 3*len(v.table) {
		v.grow()
	}
	at := v.slot(text)
	if v.table[at] < 0 {
		v.table[at] = int32(len(v.ids))
		v.text.WriteString(text)
		v.ends, v.ids = append(v.ends, uint32(v.text.Len())), append(v.ids, 0)
	}
	v.ids[v.table[at]], v.owner[id] = int32(id), v.table[at]
	return nil
}

// grow doubles the hash table.
func (v *vocabulary) grow() {
	v.table = make([]int32, max(16, 2*len(v.table)))
	for i := range v.table {
		v.table[i] = -1
	}
	for i := range v.ids {
		v.table[v.slot(v.entry(int32(i)))] = int32(i)
	}
}

// slot returns the slot of the hash table that holds or would hold a text.
func (v *vocabulary) slot(text string) uint64 {
	mask := uint64(len(v.table) - 1)
	at := maphash.String(v.seed, text) & mask
	for v.table[at] >= 0 && v.entry(v.table[at]) != text {
		at = (at + 1) & mask
	}
	return at
}

// entry returns the i-th text.
func (v *vocabulary) entry(i int32) string {
	from := uint32(0)
	if i > 0 {
		from = v.ends[i-1]
	}
	return v.text.String()[from:v.ends[i]]
}

// id returns the id of a text.
func (v *vocabulary) id(text string) (int32, bool) {
	if len(v.table) == 0 {
		return 0, false
	}
	i := v.table[v.slot(text)]
	if i < 0 {
		return 0, false
	}
	return v.ids[i], true
}

// idOrNone returns the id of a text, or -1.
func (v *vocabulary) idOrNone(text string) int32 {
	if id, ok := v.id(text); ok {
		return id
	}
	return -1
}

// of returns the text of an id.
func (v *vocabulary) of(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.owner) || v.owner[id] < 0 {
		return "", false
	}
	return v.entry(v.owner[id]), true
}

// size is one more than the largest id.
func (v *vocabulary) size() int { return len(v.owner) }

// texts is the number of different texts.
func (v *vocabulary) texts() int { return len(v.ids) }

// byID yields the ids that have a text, in order, with their texts.
func (v *vocabulary) byID() iter.Seq2[int32, string] {
	return func(yield func(int32, string) bool) {
		for id := range int32(len(v.owner)) {
			if text, ok := v.of(id); ok && !yield(id, text) {
				return
			}
		}
	}
}

// byText yields the different texts, in the order of set, with their ids.
func (v *vocabulary) byText() iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		for i, id := range v.ids {
			if !yield(v.entry(int32(i)), id) {
				return
			}
		}
	}
}

// byteIDs returns the tokens <0x00> to <0xFF> of byte fallback; -1 if one is missing.
func (v *vocabulary) byteIDs() (ids [256]int32) {
	for b := range ids {
		ids[b] = v.idOrNone(fmt.Sprintf("<0x%02X>", b))
	}
	return ids
}

package generate

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// contents follows what a cache holds: for each place, which tokens up to which one its key and value were computed
// for.
type contents struct {
	e    *Engine
	text []uint64 // hash of those tokens; 0: nothing
}

func newContents(e *Engine) *contents {
	return &contents{e, make([]uint64, e.opt.pages()*e.opt.PageTokens)}
}

// behind returns the hash of tokens behind others.
func behind(text uint64, token int32) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, text), uint32(token)))
	return h.Sum64()
}

// took follows a step that was taken, and compares the findable pages with their keys.
func (c *contents) took(s *schedule) error {
	size, st := c.e.opt.PageTokens, &c.e.step.st
	for i := 0; i < len(s.copies); i += 2 {
		from, to := int(s.copies[i])*size, int(s.copies[i+1])*size
		copy(c.text[to:to+size], c.text[from:from+size])
	}
	for row, token := range st.Tokens {
		last := uint64(1)
		if pos := int(st.Pos[row]) - 1; pos >= 0 {
			page := st.Table[int(st.Seq[row])*st.Width+pos/size]
			last = c.text[int(page)*size+pos%size]
		}
		c.text[st.Slots[row]] = behind(last, token)
	}
	for id := range c.e.pages.refs {
		if !c.e.pages.prefixes.has(int32(id)) {
			continue
		}
		text := c.hash(int32(id))
		for i, h := range text {
			if c.text[id*size+i] != h {
				return fmt.Errorf("place %d of page %d holds other contents than its hash says", i, id)
			}
		}
	}
	return nil
}

// hash returns what the places of a findable page must hold.
func (c *contents) hash(id int32) (list []uint64) {
	k := c.e.pages.prefixes.keys[id]
	last := uint64(1)
	if k.before != firstPage {
		text := c.hash(k.before)
		last = text[len(text)-1]
	}
	for tokens := []byte(k.tokens); len(tokens) > 0; tokens = tokens[4:] {
		last = behind(last, int32(binary.LittleEndian.Uint32(tokens)))
		list = append(list, last)
	}
	return list
}

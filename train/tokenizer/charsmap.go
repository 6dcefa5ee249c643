package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsMap is SentencePiece's precompiled table of replacements: a double-array trie of
// texts (darts-clone) whose values are offsets into a blob of zero-terminated replacements.
type charsMap struct {
	units []uint32
	texts []byte
}

// mostGrapheme is the shortest length in bytes that makes Hugging Face's library look up a
// grapheme's characters instead of the whole.
const mostGrapheme = 6

// parseCharsMap reads the base64 form in tokenizer.json.
func parseCharsMap(text string) (normalizer, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("normalizer Precompiled: precompiled_charsmap: %w", err)
	}
	if len(raw) < 4 {
		return nil, fmt.Errorf("normalizer Precompiled: precompiled_charsmap has %d bytes", len(raw))
	}
	n := uint64(binary.LittleEndian.Uint32(raw)) / 4
	raw = raw[4:]
	if n == 0 || n > uint64(len(raw)/4) {
		return nil, fmt.Errorf("normalizer Precompiled: precompiled_charsmap declares %d trie units but has %d bytes",
			n, len(raw))
	}
	m := &charsMap{units: make([]uint32, n), texts: raw[4*n:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	if !utf8.Valid(m.texts) {
		return nil, fmt.Errorf("normalizer Precompiled: the replacements of precompiled_charsmap are not UTF-8")
	}
	return m, nil
}

func (m *charsMap) normalize(p stretch) (stretch, error) {
	var out strings.Builder
	out.Grow(len(p.text))
	rest, state, head := p.text, -1, 0
	put := func(from, to string, start int) {
		if to == "" && out.Len() == 0 && p.head > 0 {
			// The library loses count of what is dropped at the start: the next characters
			// take its place.
			for range from {
				_, n := utf8.DecodeRuneInString(p.text[p.head:])
				p.head += n
			}
			return
		}
		if start < p.head {
			head = out.Len() + headOf(from[:min(p.head-start, len(from))], from, to)
		}
		out.WriteString(to)
	}
	for rest != "" {
		var cluster string
		start := len(p.text) - len(rest)
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if len(cluster) < mostGrapheme {
			if to, ok := m.replacement(cluster); ok {
				put(cluster, to, start)
				continue
			}
		}
		for i, r := range cluster {
			part := cluster[i : i+utf8.RuneLen(r)]
			to, ok := m.replacement(part)
			if !ok {
				to = part
			}
			put(part, to, start+i)
		}
	}
	return stretch{out.String(), head}, nil
}

// headOf is how many bytes of to, which replaces from, come from head, the start of from:
// the library pairs the characters in order, and counts what is left over for the last one.
func headOf(head, from, to string) int {
	if len(head) == len(from) {
		return len(to)
	}
	n := utf8.RuneCountInString(head)
	for i := range to {
		if n == 0 {
			return i
		}
		n--
	}
	return len(to)
}

// replacement returns the replacement of the shortest table entry that s begins with: the
// first, not the longest, as in the library.
func (m *charsMap) replacement(s string) (string, bool) {
	at := trieOffset(m.units[0])
	for i := range len(s) {
		c := s[i]
		if c == 0 {
			break
		}
		at ^= uint32(c)
		if at >= uint32(len(m.units)) {
			return "", false
		}
		unit := m.units[at]
		if unit&(1<<31|0xFF) != uint32(c) {
			return "", false
		}
		at ^= trieOffset(unit)
		if at >= uint32(len(m.units)) {
			return "", false
		}
		if unit>>8&1 == 1 {
			from := m.units[at] & (1<<31 - 1)
			if from > uint32(len(m.texts)) {
				return "", false
			}
			to := m.texts[from:]
			if end := bytes.IndexByte(to, 0); end >= 0 {
				to = to[:end]
			}
			return strings.ToValidUTF8(string(to), "\uFFFD"), true
		}
	}
	return "", false
}

// trieOffset returns the distance from a unit to its children.
func trieOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

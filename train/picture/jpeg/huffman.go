package jpeg

import (
	"errors"
	"fmt"
)

// lookBits is the length of codes that a table finds at once; nearly all codes are shorter.
const lookBits = 9

// huffman decodes the codes of one table, T.81 annex C.
type huffman struct {
	look   [1 << lookBits]uint16 // length<<8 | value of codes up to lookBits long; 0: longer or none
	limit  [17]int32             // [length] the largest code, left-aligned to 16 bits, plus one
	first  [17]int32             // [length] index of the first value less its code
	values []uint8
}

// huffmanTables reads Huffman tables, T.81 B.2.4.2.
func (d *decoder) huffmanTables(s []byte) error {
	for len(s) > 0 {
		if len(s) < 17 || s[0]>>4 > 1 || s[0]&15 > 3 {
			return errors.New("a malformed Huffman table")
		}
		n := 0
		for _, count := range s[1:17] {
			n += int(count)
		}
		if n > 256 || len(s) < 17+n {
			return errors.New("a malformed Huffman table")
		}
		t, err := newHuffman(s[1:17], s[17:17+n])
		if err != nil {
			return err
		}
		if s[0]>>4 == 0 {
			d.dc[s[0]&15] = t
		} else {
			d.ac[s[0]&15] = t
		}
		s = s[17+n:]
	}
	return nil
}

// newHuffman builds the table of values whose codes have counts[i] times length i+1.
func newHuffman(counts, values []uint8) (*huffman, error) {
	t := &huffman{values: append([]uint8(nil), values...)}
	code, k := int32(0), int32(0)
	for length := 1; length <= 16; length++ {
		t.first[length] = k - code
		for range counts[length-1] {
			if code >= 1<<length {
				return nil, errors.New("a Huffman table has too many codes")
			}
			if length <= lookBits {
				low := code << (lookBits - length)
				for i := range int32(1) << (lookBits - length) {
					t.look[low+i] = uint16(length)<<8 | uint16(values[k])
				}
			}
			code++
			k++
		}
		t.limit[length] = code << (16 - length)
		code <<= 1
	}
	return t, nil
}

// bits reads the entropy-coded bits of a scan. Past their end it gives zeros and counts them.
type bits struct {
	data   []byte
	at     int
	acc    uint64
	n      int  // bits in acc
	padded int  // how many of them, the last ones, are not in the data
	over   bool // some of those were read
	err    error
}

// fill makes acc hold at least 32 bits.
func (b *bits) fill() {
	for b.n <= 56 {
		c := uint64(0)
		switch {
		case b.at < len(b.data) && b.data[b.at] != 0xff:
			c = uint64(b.data[b.at])
			b.at++
		case b.at+1 < len(b.data) && b.data[b.at+1] == 0:
			c = 0xff
			b.at += 2
		default:
			b.padded += 8
		}
		b.acc = b.acc<<8 | c
		b.n += 8
	}
}

// drop consumes n bits.
func (b *bits) drop(n int) {
	b.n -= n
	if b.n < b.padded {
		b.over, b.padded = true, b.n
	}
}

// take reads n bits, at most 16.
func (b *bits) take(n int) int32 {
	if b.n < n {
		b.fill()
	}
	v := int32(b.acc>>(b.n-n)) & (1<<n - 1)
	b.drop(n)
	return v
}

// extend reads a value of n bits in T.81's sign coding (F.2.2.1).
func (b *bits) extend(n int) int32 {
	if n == 0 {
		return 0
	}
	v := b.take(n)
	if v < 1<<(n-1) {
		v += -1<<n + 1
	}
	return v
}

// code reads a Huffman code and returns its value.
func (b *bits) code(t *huffman) uint8 {
	if b.n < 16 {
		b.fill()
	}
	if e := t.look[b.acc>>(b.n-lookBits)&(1<<lookBits-1)]; e != 0 {
		b.drop(int(e >> 8))
		return uint8(e)
	}
	top := int32(b.acc >> (b.n - 16) & 0xffff)
	for length := lookBits + 1; length <= 16; length++ {
		if top < t.limit[length] {
			b.drop(length)
			return t.values[t.first[length]+top>>(16-length)]
		}
	}
	b.fail("bits that are not a Huffman code")
	b.drop(1)
	return 0
}

// fail notes the first error.
func (b *bits) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

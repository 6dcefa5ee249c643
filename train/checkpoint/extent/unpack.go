package extent

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// Packing says how a matrix of integers of few bits lies in bytes. Integers begin at the lowest bit of the first byte.
type Packing struct {
	Bits       int // of an integer, 1 to 8
	Rows, Cols int // of the matrix
	// RowBytes is the size of a packed row, whose integers follow each other without gaps, across bytes and words. It
	// is 0 where a 32-bit word holds the integers of 32/Bits rows in one column: words are [rows·Bits/32, Cols].
	RowBytes int
	// Order is where in a word the integers of its rows lie, counted in integers from the lowest bit; nil for the
	// order of rows.
	Order []int
	// HighFirst says that the first of two 4-bit integers lies in a byte's upper half.
	HighFirst bool
	// Plus is added to every integer. If Bits divides 32, this is an addition to whole words, where a sum that is too
	// large is carried into the next integer; otherwise the sum wraps around.
	Plus int
}

// unpacked are integers of few bits, a byte each.
type unpacked struct {
	of node
	Packing
	plus uint32 // Plus in every integer of a word
}

// Unpack returns packed integers, a byte each, in row order. It panics if there are more or fewer bytes than the
// matrix has.
func Unpack(e Extent, p Packing) Extent {
	if p.Bits < 1 || p.Bits > 8 || p.Rows < 1 || p.Cols < 1 || p.HighFirst && p.Bits != 4 ||
		p.RowBytes == 0 && 32%p.Bits != 0 {
		panic("extent: no such packing")
	}
	x := unpacked{of: e.node, Packing: p}
	want := int64(p.Rows) * int64(p.RowBytes)
	if p.RowBytes == 0 {
		want = 4 * int64((p.Rows+x.inWord()-1)/x.inWord()) * int64(p.Cols)
	}
	if e.size != want || p.RowBytes > 0 && int64(p.RowBytes)*8 < int64(p.Cols)*int64(p.Bits) {
		panic("extent: not the bytes of so many packed integers")
	}
	if p.Plus != 0 && 32%p.Bits == 0 {
		if p.RowBytes%4 != 0 {
			panic("extent: no words to add to")
		}
		for at := 0; at < 32; at += p.Bits {
			x.plus |= uint32(p.Plus) << at
		}
	}
	return Extent{x, int64(p.Rows) * int64(p.Cols)}
}

// inWord returns how many integers a word of 32 bits has.
func (x unpacked) inWord() int { return 32 / x.Bits }

func (x unpacked) read(p []byte, off int64) error {
	var scratch []byte
	cols := int64(x.Cols)
	for len(p) > 0 {
		row, col := off/cols, off%cols
		rows, n := int64(1), min(cols-col, int64(len(p)), scratchBytes)
		if whole := min(int64(len(p))/cols, x.rowsAtOnce()); col == 0 && whole > 0 {
			rows, n = whole, whole*cols
		}
		at, size := x.span(row, col, n)
		if int64(cap(scratch)) < size {
			scratch = make([]byte, size)
		}
		if err := x.of.read(scratch[:size], at); err != nil {
			return err
		}
		x.unpack(p[:n], scratch[:size], int(row), int(col), int(rows))
		p, off = p[n:], off+n
	}
	return nil
}

// rowsAtOnce returns how many rows one read takes; 0 if a row is too long.
func (x unpacked) rowsAtOnce() int64 {
	if x.RowBytes == 0 {
		return 4 * scratchBytes / (4 * int64(x.Cols)) * int64(x.inWord())
	}
	return scratchBytes / int64(x.RowBytes)
}

// span returns where n integers from a place on lie: in one row, or in whole rows.
func (x unpacked) span(row, col, n int64) (at, size int64) {
	cols := int64(x.Cols)
	last := row + (col+n-1)/cols
	if x.RowBytes == 0 {
		row, last = row/int64(x.inWord()), last/int64(x.inWord())
		if n < cols {
			return 4 * (row*cols + col), 4 * n
		}
		return 4 * row * cols, 4 * (last + 1 - row) * cols
	}
	bytes := int64(x.RowBytes)
	if n >= cols {
		return row * bytes, (last + 1 - row) * bytes
	}
	from, to := x.first(int(col)), ((col+n)*int64(x.Bits)+7)/8
	if x.plus != 0 {
		to = (to + 3) &^ 3
	}
	return row*bytes + from, to - from
}

// first returns the byte of a packed row at which reading begins for the integers from a column on: the first one of a
// word, if something is added to words.
func (x unpacked) first(col int) int64 {
	from := int64(col) * int64(x.Bits) / 8
	if x.plus != 0 {
		from &^= 3
	}
	return from
}

// unpack sets dst to the integers from a place on, in one row or in whole rows, of the bytes of their span.
func (x unpacked) unpack(dst, packed []byte, row, col, rows int) {
	n := len(dst) / rows
	if x.RowBytes == 0 {
		for i := range rows {
			word := (row+i)/x.inWord() - row/x.inWord()
			x.column(dst[i*n:(i+1)*n], packed[4*word*n:], (row+i)%x.inWord())
		}
		return
	}
	if x.plus != 0 {
		for i := 0; i < len(packed); i += 4 {
			binary.LittleEndian.PutUint32(packed[i:], binary.LittleEndian.Uint32(packed[i:])+x.plus)
		}
	}
	bit := int(int64(col)*int64(x.Bits) - 8*x.first(col))
	for i := range rows {
		x.stream(dst[i*n:(i+1)*n], packed[i*x.RowBytes:], bit)
	}
}

// column sets dst to integer k of each word.
func (x unpacked) column(dst, words []byte, k int) {
	if x.Order != nil {
		k = x.Order[k]
	}
	shift, mask := k*x.Bits, byte(1<<x.Bits-1)
	for i := range dst {
		dst[i] = byte((binary.LittleEndian.Uint32(words[4*i:4*i+4])+x.plus)>>shift) & mask
	}
}

// stream sets dst to integers that follow each other from a bit on.
func (x unpacked) stream(dst, packed []byte, bit int) {
	switch x.Bits {
	case 8:
		copy(dst, packed[bit/8:])
		return
	case 4:
		x.halves(dst, packed[bit/8:], bit%8 != 0)
		return
	}
	mask := uint16(1<<x.Bits - 1)
	for i := range dst {
		v := uint16(packed[bit/8])
		if bit%8+x.Bits > 8 {
			v |= uint16(packed[bit/8+1]) << 8
		}
		v >>= bit % 8
		if 32%x.Bits != 0 {
			v += uint16(x.Plus)
		}
		dst[i] = byte(v & mask)
		bit += x.Bits
	}
}

// halves sets dst to integers of 4 bits. The first may be the second half of a byte.
func (x unpacked) halves(dst, packed []byte, second bool) {
	one, two := 0, 4 // shifts
	if x.HighFirst {
		one, two = 4, 0
	}
	if second {
		dst[0] = packed[0] >> two & 15
		dst, packed = dst[1:], packed[1:]
	}
	for ; len(dst) >= 8; dst, packed = dst[8:], packed[4:] {
		binary.LittleEndian.PutUint64(dst, spreadHalves(binary.LittleEndian.Uint32(packed), one))
	}
	for i := range dst {
		shift := one
		if i%2 == 1 {
			shift = two
		}
		dst[i] = packed[i/2] >> shift & 15
	}
}

// spreadHalves returns the halves of four bytes, a byte each. The first one of a byte is its upper half if first
// is 4.
func spreadHalves(packed uint32, first int) uint64 {
	const low = 0x0f0f0f0f
	if first != 0 {
		packed = packed>>4&low | packed&low<<4
	}
	v := uint64(packed)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	return (v | v<<4) & 0x0f0f0f0f0f0f0f0f
}

func (x unpacked) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	cols := int64(x.Cols)
	first, last := off/cols, (off+n-1)/cols
	at, size := x.span(first, off%cols, min(n, cols-off%cols))
	if last > first {
		at, size = x.span(first, 0, (last+1-first)*cols)
	}
	return x.of.visit(at, size, f)
}

func (x unpacked) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "unpacked(%+v,", x.Packing)
	x.of.describe(w, number)
	io.WriteString(w, ")")
}

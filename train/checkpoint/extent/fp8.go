package extent

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

// Scales are factors of the blocks of a matrix, in row order: one for each Rows rows and Cols columns, the last
// blocks of a row or a column being smaller.
type Scales struct {
	Data       Extent
	Type       string // of a scale, as safetensors spells it: F32, BF16, or F8_E8M0 for 2^(byte-127)
	Rows, Cols int    // of a block
}

// fp8 is a matrix of E4M3 elements in blocks with scales, as BF16.
type fp8 struct {
	elements node
	scales   node
	of       Scales
	cols     int64 // columns of the matrix
	across   int64 // scales in a row of them
	size     int64 // bytes of a scale
	scale    func(b []byte) float32
}

// FP8 returns a matrix [rows,cols] of elements in E4M3 without infinities (arXiv:2209.05433, §3.1) as BF16: each is
// multiplied by its block's scale in float32 and rounded to nearest even. It panics if elements or scales do not fill
// the matrix, or if it does not know the type of the scales.
func FP8(elements Extent, rows, cols int, s Scales) Extent {
	if rows < 1 || cols < 1 || s.Rows < 1 || s.Cols < 1 {
		panic("extent: an empty matrix or block")
	}
	x := fp8{elements: elements.node, scales: s.Data.node, of: s, cols: int64(cols),
		across: int64((cols + s.Cols - 1) / s.Cols)}
	switch s.Type {
	case "F32":
		x.size, x.scale = 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "BF16":
		x.size, x.scale = 2, func(b []byte) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
		}
	case "F8_E8M0":
		x.size, x.scale = 1, func(b []byte) float32 { return e8m0(b[0]) }
	default:
		panic("extent: scales of type " + s.Type)
	}
	down := int64((rows + s.Rows - 1) / s.Rows)
	if elements.size != int64(rows)*int64(cols) || s.Data.size != down*x.across*x.size {
		panic("extent: not one element for each place of a matrix, or not one scale for each block")
	}
	return Extent{x, 2 * elements.size}
}

// e8m0 returns a scale of a microscaling format; 255 is NaN.
func e8m0(b byte) float32 {
	if b == 255 {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(b)-127))
}

// e4m3 are the values of all elements.
var e4m3 = func() (values [256]float32) {
	for b := range values {
		exponent, v := b>>3&15, float64(b&7)/8
		switch {
		case b&127 == 127:
			v = math.NaN()
		case exponent == 0:
			v = math.Ldexp(v, -6)
		default:
			v = math.Ldexp(1+v, exponent-7)
		}
		if b > 127 {
			v = -v
		}
		values[b] = float32(v)
	}
	return values
}()

func (x fp8) read(p []byte, off int64) error {
	const atOnce = scratchBytes / 4 // elements
	elements, wide := make([]byte, min(int64(len(p))/2+2, atOnce)), []byte(nil)
	var scales []byte
	tables := fp8Tables{row: -1}
	for len(p) > 0 {
		first, skip := off/2, off%2
		n := min((skip+int64(len(p))+1)/2, int64(len(elements)))
		if err := x.elements.read(elements[:n], first); err != nil {
			return err
		}
		top, bottom := x.scaleRows(first, n)
		if need := int((bottom - top) * x.across * x.size); cap(scales) < need {
			scales = make([]byte, need)
		} else {
			scales = scales[:need]
		}
		if err := x.scales.read(scales, top*x.across*x.size); err != nil {
			return err
		}
		if skip == 0 && int64(len(p)) >= 2*n {
			x.widen(p[:2*n], elements[:n], scales, first, top, &tables)
			p, off = p[2*n:], off+2*n
			continue
		}
		wide = append(wide[:0], make([]byte, 2*n)...)
		x.widen(wide, elements[:n], scales, first, top, &tables)
		done := copy(p, wide[skip:])
		p, off = p[done:], off+int64(done)
	}
	return nil
}

// scaleRows returns the rows of scales of n elements from first on.
func (x fp8) scaleRows(first, n int64) (top, bottom int64) {
	rows := int64(x.of.Rows)
	return first / x.cols / rows, (first+n-1)/x.cols/rows + 1
}

// fp8Tables are all elements of the blocks in a row of them, in BF16.
type fp8Tables struct {
	row    int64 // -1: none
	blocks [][256]uint16
	made   []bool
}

// of returns the table of a block with a scale.
func (t *fp8Tables) of(row, block, across int64, scale float32) *[256]uint16 {
	if t.row != row {
		t.row = row
		if t.blocks == nil {
			t.blocks, t.made = make([][256]uint16, across), make([]bool, across)
		}
		clear(t.made)
	}
	if !t.made[block] {
		t.made[block] = true
		for b := range t.blocks[block] {
			t.blocks[block][b] = BF16(e4m3[b] * scale)
		}
	}
	return &t.blocks[block]
}

// widen sets dst to elements from first on as BF16; scales begin with row top of them.
func (x fp8) widen(dst, elements, scales []byte, first, top int64, tables *fp8Tables) {
	const small = 1024 // elements of a block that are sooner multiplied than looked up
	for len(elements) > 0 {
		row, col := first/x.cols, first%x.cols
		down, block := row/int64(x.of.Rows), col/int64(x.of.Cols)
		n := min(min((block+1)*int64(x.of.Cols), x.cols)-col, int64(len(elements)))
		scale := x.scale(scales[((down-top)*x.across+block)*x.size:])
		if int64(x.of.Rows)*int64(x.of.Cols) < small {
			for i, b := range elements[:n] {
				binary.LittleEndian.PutUint16(dst[2*i:], BF16(e4m3[b]*scale))
			}
		} else {
			table := tables.of(down, block, x.across, scale)
			for i, b := range elements[:n] {
				binary.LittleEndian.PutUint16(dst[2*i:2*i+2], table[b])
			}
		}
		dst, elements, first = dst[2*n:], elements[n:], first+n
	}
}

// BF16 rounds to nearest, ties to even. A NaN stays one.
func BF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return uint16(u>>16) | 1<<6
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func (x fp8) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	first, last := off/2, (off+n-1)/2
	top, bottom := x.scaleRows(first, last+1-first)
	row := x.across * x.size
	return x.elements.visit(first, last+1-first, f) && x.scales.visit(top*row, (bottom-top)*row, f)
}

func (x fp8) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprintf(w, "fp8(%d,%d,%d,%s,", x.cols, x.of.Rows, x.of.Cols, x.of.Type)
	x.elements.describe(w, number)
	io.WriteString(w, ",")
	x.scales.describe(w, number)
	io.WriteString(w, ")")
}

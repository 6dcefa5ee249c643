package extent

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
)

const (
	mxBlock  = 32          // numbers that share a scale
	mxPacked = mxBlock / 2 // bytes of their elements
	mxWide   = 2 * mxBlock // bytes of them as BF16
)

// mxfp4 are blocks of MXFP4 as BF16.
type mxfp4 struct{ elements, scales node }

// MXFP4 returns numbers in MXFP4 as BF16 (OCP Microscaling Formats, version 1.0, 2023, §5.1 and 5.3): blocks of 32
// numbers with 16 bytes of elements in E2M1 each, the first of two in the lower half, and one byte of scale
// in E8M0, 2^(scale-127). Widening is exact but where a scale is so large or small that BF16 has no such number;
// scale 255 is NaN. It panics if there are not as many scales as blocks.
func MXFP4(elements, scales Extent) Extent {
	if elements.size != scales.size*mxPacked {
		panic("extent: not one scale for each block")
	}
	if elements.size == 0 {
		return Extent{}
	}
	return Extent{mxfp4{elements.node, scales.node}, scales.size * mxWide}
}

func (x mxfp4) read(p []byte, off int64) error {
	const atOnce = scratchBytes / (mxPacked + mxWide)
	n := int(min((off%mxWide+int64(len(p))+mxWide-1)/mxWide, atOnce))
	elements, scales, wide := make([]byte, n*mxPacked), make([]byte, n), make([]byte, mxWide)
	for len(p) > 0 {
		first, skip := off/mxWide, off%mxWide
		count := int(min((skip+int64(len(p))+mxWide-1)/mxWide, int64(n)))
		if err := x.elements.read(elements[:count*mxPacked], first*mxPacked); err != nil {
			return err
		}
		if err := x.scales.read(scales[:count], first); err != nil {
			return err
		}
		for i := range count {
			block := elements[i*mxPacked : (i+1)*mxPacked]
			if skip == 0 && len(p) >= mxWide {
				widenMX(p[:mxWide], block, scales[i])
				p, off = p[mxWide:], off+mxWide
				continue
			}
			widenMX(wide, block, scales[i])
			done := copy(p, wide[skip:])
			p, off, skip = p[done:], off+int64(done), 0
		}
	}
	return nil
}

// widenMX sets dst to the 32 numbers of a block as BF16.
func widenMX(dst, block []byte, scale byte) {
	values := mxValues(scale)
	for i, b := range block {
		binary.LittleEndian.PutUint16(dst[4*i:], values[b&15])
		binary.LittleEndian.PutUint16(dst[4*i+2:], values[b>>4])
	}
}

// mxValues returns the 16 elements times a scale, as BF16.
func mxValues(scale byte) (values [16]uint16) {
	by := e8m0(scale)
	for i, v := range [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6} {
		u := uint16(math.Float32bits(v*by) >> 16) // the elements have few bits: nothing is cut off
		values[i], values[8+i] = u, u|0x8000
	}
	return values
}

func (x mxfp4) visit(off, n int64, f func(file *os.File, at, n int64) bool) bool {
	first, last := off/mxWide, (off+n-1)/mxWide
	return x.elements.visit(first*mxPacked, (last+1-first)*mxPacked, f) && x.scales.visit(first, last+1-first, f)
}

func (x mxfp4) describe(w io.Writer, number func(*os.File) int) {
	fmt.Fprint(w, "mxfp4(")
	x.elements.describe(w, number)
	io.WriteString(w, ",")
	x.scales.describe(w, number)
	io.WriteString(w, ")")
}

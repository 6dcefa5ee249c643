package extent

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// widened is MXFP4 by its definition: an element has a sign, two bits of exponent with bias 1 and one of mantissa.
func widened(elements, scales []byte) (out []byte) {
	for i := range 2 * len(elements) {
		e, scale := elements[i/2]>>(4*(i%2))&15, scales[i/32]
		exponent, v := int(e>>1&3), float64(e&1)/2
		if exponent > 0 {
			v = (1 + v) * math.Ldexp(1, exponent-1)
		}
		v *= math.Ldexp(1, int(scale)-127)
		bits := uint16(math.Float32bits(float32(v)) >> 16)
		if scale == 255 {
			bits = 0x7fc0
		}
		bits |= uint16(e>>3) << 15
		out = append(out, byte(bits), byte(bits>>8))
	}
	return out
}

// Blocks and scales that lie anywhere are widened, whatever part of them is read.
func TestMXFP4(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	content := randomBytes(r, 700)
	file := fileOf(t, content)
	for range 500 {
		x := compose(t, r, []*os.File{file}, [][]byte{content}, 3)
		y := compose(t, r, []*os.File{file}, [][]byte{content}, 3)
		n := min(len(x.want)/16, len(y.want))
		e, want := MXFP4(x.e.Slice(0, int64(n*16)), y.e.Slice(0, int64(n))), widened(x.want[:n*16], y.want)
		if e.Size() != int64(len(want)) {
			t.Fatalf("%d blocks have %d bytes", n, e.Size())
		}
		if n == 0 {
			continue
		}
		lo := r.IntN(len(want))
		got := make([]byte, 1+r.IntN(len(want)-lo))
		if _, err := e.ReadAt(got, int64(lo)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[lo:lo+len(got)]) {
			t.Fatalf("bytes %d to %d of %d blocks are %x, want %x", lo, lo+len(got), n, got, want[lo:lo+len(got)])
		}
		if f, _ := e.First(); f != file {
			t.Error("the file of the first byte is not found")
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a block without scale does not panic")
		}
	}()
	MXFP4(Range(file, 0, 32), Range(file, 0, 1))
}

// Long reads take several steps.
func TestMXFP4InSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const blocks = 3*scratchBytes/(mxPacked+mxWide) + 7
	elements, scales := randomBytes(r, blocks*16), randomBytes(r, blocks)
	e, want := MXFP4(Range(fileOf(t, elements), 0, blocks*16), Range(fileOf(t, scales), 0, blocks)), widened(elements, scales)
	got := make([]byte, len(want)-5)
	if _, err := e.ReadAt(got, 3); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want[3:len(want)-2]) {
		t.Error("a long read differs")
	}
}

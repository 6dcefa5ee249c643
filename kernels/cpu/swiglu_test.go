package cpu

import (
	"slices"
	"testing"

	"exp/kernels"
)

// TestSwiGLUInParts: many rows go in several blocks, and of float32 past the caches unless
// they start within a cache line. They give the bits of few rows.
func TestSwiGLUInParts(t *testing.T) {
	for _, s := range []struct{ m, f, k, at int }{{1100, 256, 40, 0}, {1100, 256, 40, 16}, {1100, 256, 40, 1}, {600, 50, 40, 0}, {600, 64, 600, 0}} {
		f32 := func(t *testing.T, b *Backend) { b.checkSwiGLUInParts(t, s.m, s.f, s.k, s.at) }
		for l := AVX512; l >= Portable; l-- {
			if l.Supported() && (triesLarge(l) || s.f == 50) { // the smallest
				t.Run("f32/"+l.String(), func(t *testing.T) { f32(t, open(t, l, 2)) })
			}
		}
		eachTileLevel(t, f32)
	}
}

// checkSwiGLUInParts compares m rows with 37 at a time; gateUp begins at an element of a
// larger buffer.
func (b *Backend) checkSwiGLUInParts(t *testing.T, m, f, k, at int) {
	const part = 37
	d := b.Operand()
	up, down := b.packedMatrix(t, 2*f, k), b.packedMatrix(t, k, f)
	x, dout := b.waves(t, d, m*k), b.waves(t, kernels.F32, m*k)
	act, kept := b.room(t, d, m*f), b.room(t, d, at+m*2*f).Slice(at, at+m*2*f)
	act1, kept1, none := b.room(t, d, part*f), b.room(t, d, part*2*f), kernels.Buffer{}
	b.MatMulSwiGLU(act, kept, x, up)
	b.Sync()
	acts, both := bitsOf(act), bitsOf(kept)
	b.MatMulDXSwiGLU(kept, kept, dout, down)
	b.Sync()
	grads := bitsOf(kept)
	b.MatMulSwiGLU(act, none, x, up)
	b.Sync()
	if !slices.Equal(bitsOf(act), acts) {
		t.Fatalf("%d x %d x %d: act without gateUp differs", m, f, k)
	}
	for r := 0; r < m; r += part {
		n := min(part, m-r)
		a, g := act1.Slice(0, n*f), kept1.Slice(0, n*2*f)
		b.MatMulSwiGLU(a, g, x.Slice(r*k, (r+n)*k), up)
		b.Sync()
		if !slices.Equal(acts[r*f:(r+n)*f], bitsOf(a)) || !slices.Equal(both[r*2*f:(r+n)*2*f], bitsOf(g)) {
			t.Fatalf("%d x %d x %d from element %d: rows from %d differ", m, f, k, at, r)
		}
		b.MatMulDXSwiGLU(g, g, dout.Slice(r*k, (r+n)*k), down)
		b.Sync()
		if !slices.Equal(grads[r*2*f:(r+n)*2*f], bitsOf(g)) {
			t.Fatalf("%d x %d x %d from element %d: gradients of rows from %d differ", m, f, k, at, r)
		}
	}
}

// What would be read or written out of bounds, or mean nothing, panics.
func TestRefusesMisuse(t *testing.T) {
	b := open(t, BestLevel(), 1)
	f, h := b.room(t, kernels.F32, 64), b.room(t, kernels.BF16, 64)
	w := b.packedMatrix(t, 8, 4)
	packed, _ := b.PackedLen(128, 4)
	frozen := kernels.Matrix{Packed: b.room(t, kernels.BF16, packed), Out: 128, In: 4}
	rows := make([]uint16, 4*128)
	fits := b.packedMatrix(t, 128, 4)
	odd := b.packedMatrix(t, 7, 4)
	segment := func(list ...int32) kernels.Buffer {
		buf := b.room(t, kernels.I32, len(list))
		copy(kernels.Elems[int32](buf), list)
		return buf
	}
	none := kernels.Buffer{}
	for name, call := range map[string]func(){
		"act of another type":      func() { b.MatMulSwiGLU(h.Slice(0, 4), none, f.Slice(0, 4), w) },
		"gateUp of another type":   func() { b.MatMulSwiGLU(f.Slice(0, 4), h.Slice(0, 8), f.Slice(0, 4), w) },
		"a gate without an up":     func() { b.MatMulSwiGLU(f.Slice(0, 3), none, f.Slice(0, 4), odd) },
		"gradients of other types": func() { b.MatMulDXSwiGLU(h.Slice(0, 8), h.Slice(0, 8), f.Slice(0, 8), w) },
		"a segment before row 0":   func() { b.SegmentMean(f.Slice(0, 4), f, segment(-1, 2), 4) },
		"a segment past the rows":  func() { b.SegmentMean(f.Slice(0, 4), f, segment(0, 17), 4) },
		"a segment backwards":      func() { b.SegmentMeanBackward(f, f.Slice(0, 4), segment(3, 2), 4) },
		"half a segment":           func() { b.SegmentMean(f.Slice(0, 4), f, segment(0), 4) },
		"rows that BF16 rounds":    func() { b.PackRows(frozen, 0, b.room(t, kernels.F32, 4*128)) },
		"rows within a panel":      func() { b.PackRows(frozen, 32, kernels.HostBits(rows[:4*64])) },
		"a part of a panel":        func() { b.PackRows(frozen, 0, kernels.HostBits(rows[:4*32])) },
		"rows past the last":       func() { b.PackRows(frozen, 64, kernels.HostBits(rows)) },
		"rows with PackedT":        func() { b.PackRows(fits, 0, kernels.HostBits(rows)) },
		"an id past the last":      func() { b.Embed(f.Slice(0, 4), frozen, segment(128), 1) },
		"dropout of everything":    func() { b.Dropout(f.Slice(0, 4), f.Slice(0, 4), segment(1, 2), 4, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"exp/kernels"
)

// Large operations of class cpu/bf16 take ways that the small ones of the suite do not.
// They give the bits of the same operation in parts that are too small for these ways.

// eachTileLevel calls f with a backend of class cpu/bf16 at every level of this machine where
// large operations are tried.
func eachTileLevel(t *testing.T, f func(t *testing.T, b *Backend)) {
	for l := AMX; l >= Portable; l-- {
		t.Run(l.String(), func(t *testing.T) {
			if !l.Supported() {
				t.Skipf("this machine does not support %s", l)
			}
			if !triesLarge(l) {
				t.Skip("EXP_TEST_ALL=1 tries it")
			}
			f(t, openAs(t, Options{Level: &l, Threads: 3, Operand: kernels.BF16}))
		})
	}
}

// waves allocates n numbers of type d, which are all different, but for rounding.
func (b *Backend) waves(t *testing.T, d kernels.DType, n int) kernels.Buffer {
	t.Helper()
	buf := b.room(t, d, n)
	for i := range n {
		x := float32(math.Sin(float64(i + n)))
		if d == kernels.BF16 {
			kernels.Bits(buf)[i] = uint16(math.Float32bits(x) >> 16)
		} else {
			kernels.Elems[float32](buf)[i] = x
		}
	}
	return buf
}

func (b *Backend) room(t *testing.T, d kernels.DType, n int) kernels.Buffer {
	t.Helper()
	buf, err := b.Alloc(d, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free(buf) })
	return buf
}

func (b *Backend) packedMatrix(t *testing.T, out, in int) kernels.Matrix {
	t.Helper()
	p, pt := b.PackedLen(out, in)
	w := kernels.Matrix{W: b.waves(t, kernels.F32, out*in), Packed: b.room(t, b.Operand(), p), PackedT: b.room(t, b.Operand(), pt), Out: out, In: in}
	b.Pack(w)
	return w
}

// bitsOf are b's elements as they lie in memory.
func bitsOf(b kernels.Buffer) []uint32 {
	var bits []uint32
	if b.DType() == kernels.BF16 {
		for _, h := range kernels.Bits(b) {
			bits = append(bits, uint32(h))
		}
		return bits
	}
	for _, x := range kernels.Elems[float32](b) {
		bits = append(bits, math.Float32bits(x))
	}
	return bits
}

// Long chains of many rows are cut, here in three, of two groups of panels; outputs of over a
// million elements go past the caches.
func TestTileMatMulInParts(t *testing.T) {
	eachTileLevel(t, func(t *testing.T, b *Backend) {
		for _, s := range []struct{ m, n, k, part int }{{250, 520, 530, 100}, {2080, 512, 40, 300}, {2080, 505, 40, 300}} {
			w, bias := b.packedMatrix(t, s.n, s.k), b.waves(t, kernels.F32, s.n)
			for _, in := range []kernels.DType{kernels.F32, kernels.BF16} {
				x := b.waves(t, in, s.m*s.k)
				for _, out := range []kernels.DType{kernels.F32, kernels.BF16} {
					all, part := b.room(t, out, s.m*s.n), b.room(t, out, s.part*s.n)
					b.MatMul(all, x, w, bias)
					b.Sync()
					got := bitsOf(all)
					for r := 0; r < s.m; r += s.part {
						rows := min(s.part, s.m-r)
						b.MatMul(part.Slice(0, rows*s.n), x.Slice(r*s.k, (r+rows)*s.k), w, bias)
						b.Sync()
						if want := bitsOf(part)[:rows*s.n]; !slices.Equal(got[r*s.n:(r+rows)*s.n], want) {
							t.Fatalf("%d x %d x %d, %s to %s: rows from %d differ", s.m, s.n, s.k, in, out, r)
						}
					}
				}
			}
		}
	})
}

// Gradients of many rows are summed apart from dw, in several blocks of it.
func TestTileMatMulDWInParts(t *testing.T) {
	const M, N, K = 600, 400, 540
	eachTileLevel(t, func(t *testing.T, b *Backend) {
		x, dout, dw := b.waves(t, kernels.BF16, M*K), b.waves(t, kernels.BF16, M*N), b.waves(t, kernels.F32, N*K)
		gradient := func(r0, r1 int, blocks ...int32) {
			list := b.room(t, kernels.I32, len(blocks))
			copy(kernels.Elems[int32](list), blocks)
			b.MatMulDW(dw, kernels.Buffer{}, dout.Slice(r0*N, r1*N), x.Slice(r0*K, r1*K), list)
		}
		start := slices.Clone(kernels.Elems[float32](dw))
		gradient(0, M, 0, 200, 400, M)
		got := bitsOf(dw)
		copy(kernels.Elems[float32](dw), start)
		gradient(0, 400, 0, 200, 400)
		gradient(400, M, 0, M-400)
		if want := bitsOf(dw); !slices.Equal(got, want) {
			t.Error("one call and two give different gradients")
		}
	})
}

// A large vocabulary is sampled from some rows at a time: 32 of it, then two.
func TestTileSampleInChunks(t *testing.T) {
	const rows, V, C = 34, 131_100, 8
	eachTileLevel(t, func(t *testing.T, b *Backend) {
		w, h, u := b.packedMatrix(t, V, C), b.waves(t, kernels.BF16, rows*C), b.waves(t, kernels.F32, rows)
		for i, v := 0, kernels.Elems[float32](u); i < len(v); i++ {
			v[i] = float32(i) / rows
		}
		for _, p := range []kernels.Sampling{{Temperature: 0.7, TopP: 1}, {TopP: 1}, {Temperature: 1, TopP: 1, TopK: 50}} {
			draw := func(r0, r1 int) []string {
				n := r1 - r0
				ids := b.room(t, kernels.I32, n)
				sc := kernels.Scores{LogProb: b.room(t, kernels.F32, n), Entropy: b.room(t, kernels.F32, n), LSE: b.room(t, kernels.F32, n)}
				b.Sample(ids, sc, h.Slice(r0*C, r1*C), w, u.Slice(r0, r1), p)
				var drawn []string
				for i, id := range kernels.Elems[int32](ids) {
					drawn = append(drawn, fmt.Sprint(id, bitsOf(sc.LogProb)[i], bitsOf(sc.Entropy)[i], bitsOf(sc.LSE)[i]))
				}
				return drawn
			}
			all := draw(0, rows)
			for _, r := range []int{0, 31, 32, 33} {
				if one := draw(r, r+1); one[0] != all[r] {
					t.Errorf("%+v: row %d of %d drew %s, alone %s", p, r, rows, all[r], one[0])
				}
			}
		}
	})
}

package cpu

import (
	"math"
	"testing"

	"exp/kernels"
)

// TestMatMulPastCaches: an output too large for the caches is stored past them, unless it
// starts within a cache line or its rows end within one. All give the bits of small
// outputs.
func TestMatMulPastCaches(t *testing.T) {
	const M, K, part = 1400, 3, 100
	for l := AVX512; l >= Portable; l-- {
		if !l.Supported() {
			continue
		}
		b := open(t, l, 2)
		for _, tt := range []struct{ n, at int }{{512, 0}, {512, 16}, {512, 1}, {504, 0}, {500, 0}} {
			out, small := b.mustAlloc(tt.at+M*tt.n), b.mustAlloc(part*tt.n)
			x, bias := b.mustAlloc(M*K), b.mustAlloc(tt.n)
			packed, packedT := b.PackedLen(tt.n, K)
			w := kernels.Matrix{W: b.mustAlloc(tt.n * K), Packed: b.mustAlloc(packed), PackedT: b.mustAlloc(packedT), Out: tt.n, In: K}
			for _, buf := range []kernels.Buffer{x, bias, w.W} {
				for i, v := 0, kernels.Elems[float32](buf); i < len(v); i++ {
					v[i] = float32(math.Sin(float64(i + len(v))))
				}
			}
			b.Pack(w)
			b.MatMul(out.Slice(tt.at, tt.at+M*tt.n), x, w, bias)
			got, want := kernels.Elems[float32](out)[tt.at:], kernels.Elems[float32](small)
			for r := 0; r < M; r += part {
				b.MatMul(small, x.Slice(r*K, (r+part)*K), w, bias)
				for i := range want {
					if got[r*tt.n+i] != want[i] {
						t.Fatalf("%s, %d columns from element %d: row %d column %d is %g, want %g", l, tt.n, tt.at, r+i/tt.n, i%tt.n, got[r*tt.n+i], want[i])
					}
				}
			}
			for _, buf := range []kernels.Buffer{out, small, x, bias, w.W, w.Packed, w.PackedT} {
				b.Free(buf)
			}
		}
	}
}

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// factorsOf draws BF16 factors: of one size, of many, near the ends of their range, the largest possible integers,
// or with infinities and NaN.
var factorsOf = map[string]func(r *rand.Rand) float32{
	"near 1":         func(r *rand.Rand) float32 { return float32(r.NormFloat64()) },
	"spread":         func(r *rand.Rand) float32 { return float32(math.Ldexp(r.Float64()*2-1, r.IntN(40)-20)) },
	"enormous":       func(r *rand.Rand) float32 { return float32(math.Ldexp(r.Float64()*2-1, 50+r.IntN(16))) },
	"tiny":           func(r *rand.Rand) float32 { return float32(math.Ldexp(r.Float64()*2-1, -78+r.IntN(16))) },
	"full":           func(r *rand.Rand) float32 { return 255 },
	"full, negative": func(r *rand.Rand) float32 { return -255 },
	"full, of both signs": func(r *rand.Rand) float32 {
		return 255 * float32(1-2*r.IntN(2))
	},
	"full, and one small": func(r *rand.Rand) float32 { return []float32{255, 255, 255, 255 * 0x1p-7}[r.IntN(4)] },
	"zeros":               func(r *rand.Rand) float32 { return float32(math.Copysign(0, r.Float64()-0.5)) },
	"few": func(r *rand.Rand) float32 {
		return []float32{0, 1, -1, 0x1p-13, -0x1p-26, 0x1.fep-12}[r.IntN(6)]
	},
	"not finite": func(r *rand.Rand) float32 {
		return []float32{1, -3, 0, 0x1p120, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[min(r.IntN(40), 6)]
	},
}

// Sums in integers have the bits of the definition, from any sum so far.
func TestMatrixSums(t *testing.T) {
	const M, N, K = 5, 37, 75
	for l := Portable; l <= AVX512; l++ {
		if !l.Supported() {
			continue
		}
		be, want := openAs(t, Options{Level: &l, Threads: 2, Matrix: true}), ref.NewMatrix()
		alloc := func(t kernels.DType, n int) kernels.Buffer {
			b, err := be.Alloc(t, n)
			if err != nil {
				panic(err)
			}
			return b
		}
		x, bias, y, z := alloc(kernels.F32, M*K), alloc(kernels.F32, N), alloc(kernels.F32, M*N), alloc(kernels.F32, M*N)
		packed, _ := be.PackedLen(N, K)
		w := kernels.Matrix{W: alloc(kernels.F32, N*K), Packed: alloc(kernels.BF16, packed), Out: N, In: K}
		r := rand.New(rand.NewPCG(1, 2))
		for a, left := range factorsOf {
			for b, right := range factorsOf {
				for start := range 6 {
					fill := func(buf kernels.Buffer, draw func(r *rand.Rand) float32) {
						for i := range kernels.Elems[float32](buf) {
							kernels.Elems[float32](buf)[i] = draw(r)
						}
					}
					fill(x, left)
					fill(w.W, right)
					fill(bias, func(r *rand.Rand) float32 {
						near := left(r) * right(r) * float32(r.IntN(1000))
						return []float32{0, -near, near, math.Float32frombits(r.Uint32()), 0x1.fffffep14,
							-8176}[start] // which makes 16 products of -255·255 to -2³¹
					})
					be.Pack(w)
					be.MatMul(y, x, w, bias)
					be.Sync()
					want.MatMul(z, x, w, bias)
					for i, v := range kernels.Elems[float32](z) {
						got := kernels.Elems[float32](y)[i]
						if math.Float32bits(got) != math.Float32bits(v) && !(got != got && v != v) {
							t.Fatalf("%s: %s times %s from %v: %v, want %v", l, a, b,
								kernels.Elems[float32](bias)[i%N], got, v)
						}
					}
				}
			}
		}
	}
}

// Subnormal factors are 0, in weights that are kept in BF16 too.
func TestMatrixSubnormalWeights(t *testing.T) {
	const M, N, K = 3, 16, 32
	for l := Portable; l <= AVX512; l++ {
		if !l.Supported() {
			continue
		}
		be, want := openAs(t, Options{Level: &l, Threads: 1, Matrix: true}), ref.NewMatrix()
		alloc := func(t kernels.DType, n int) kernels.Buffer {
			b, err := be.Alloc(t, n)
			if err != nil {
				panic(err)
			}
			return b
		}
		x, y, z := alloc(kernels.F32, M*K), alloc(kernels.F32, M*N), alloc(kernels.F32, M*N)
		packed, _ := be.PackedLen(N, K)
		w := kernels.Matrix{W: alloc(kernels.BF16, N*K), Packed: alloc(kernels.BF16, packed), Out: N, In: K}
		for i := range kernels.Elems[float32](x) {
			kernels.Elems[float32](x)[i] = float32(math.Ldexp(1+float64(i%7), 100))
		}
		bits := kernels.Bits(w.W)
		for i := range bits {
			bits[i] = []uint16{0x7f, 0x8040, 0x80, 0x8100}[i%4] // two subnormal numbers and two just above
		}
		be.Pack(w)
		be.MatMul(y, x, w, kernels.Buffer{})
		be.Sync()
		want.MatMul(z, x, w, kernels.Buffer{})
		if !slices.Equal(kernels.Elems[float32](y), kernels.Elems[float32](z)) {
			t.Errorf("%s: %v, want %v", l, kernels.Elems[float32](y)[:4], kernels.Elems[float32](z)[:4])
		}
	}
}

// The maximum of attention rises with a score that exceeds it by more than kernels.MatrixRise, not by as much.
func TestMatrixAttentionRises(t *testing.T) {
	const T = 3*kernels.MatrixKeys - 5
	s := kernels.AttentionShape{H: 1, K: 1, D: 4, Scale: 1}
	be, want := openAs(t, Options{Threads: 1, Matrix: true}), ref.NewMatrix()
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, err := be.Alloc(t, n)
		if err != nil {
			panic(err)
		}
		return b
	}
	for _, rise := range []uint16{0x40fe, 0x4100, 0x4101} { // 7.9375, 8 and 8.0625
		qkv, offsets := alloc(kernels.BF16, T*s.Stride()), alloc(kernels.I32, 2)
		kernels.Elems[int32](offsets)[1] = T
		x := kernels.Bits(qkv)
		for i := range T {
			row := x[i*s.Stride():]
			row[0] = 0x3f80                 // q = (1, 0, 0, 0)
			row[8], row[9] = 0x3eab, 0x40a3 // v
			row[10] = uint16(0x3f80 + i)
		}
		x[kernels.MatrixKeys*s.Stride()+4] = rise // k
		out, stats := alloc(kernels.BF16, T*4), alloc(kernels.F32, T*2)
		out2, stats2 := alloc(kernels.BF16, T*4), alloc(kernels.F32, T*2)
		be.Attention(out, stats, qkv, offsets, kernels.Buffer{}, s)
		be.Sync()
		want.Attention(out2, stats2, qkv, offsets, kernels.Buffer{}, s)
		if !slices.Equal(kernels.Bits(out), kernels.Bits(out2)) ||
			!slices.Equal(kernels.Elems[float32](stats), kernels.Elems[float32](stats2)) {
			t.Errorf("rise %#x: other bits than the plain loops'", rise)
		}
	}
}

// BenchmarkMatrix measures the emulation of tensor cores.
func BenchmarkMatrix(b *testing.B) {
	const N, K = 896, 896
	for l := BestLevel(); l >= Portable; l-- {
		for _, m := range []int{1, 64} {
			if l > AVX512 {
				continue
			}
			b.Run(fmt.Sprintf("level=%s/M=%d", l, m), func(b *testing.B) {
				be := openAs(b, Options{Level: &l, Threads: 1, Matrix: true})
				alloc := func(t kernels.DType, n int) kernels.Buffer {
					x, err := be.Alloc(t, n)
					if err != nil {
						b.Fatal(err)
					}
					return x
				}
				packed, _ := be.PackedLen(N, K)
				w := kernels.Matrix{W: alloc(kernels.F32, N*K), Packed: alloc(kernels.BF16, packed), Out: N, In: K}
				x, y := alloc(kernels.F32, m*K), alloc(kernels.F32, m*N)
				r := rand.New(rand.NewPCG(1, 2))
				for _, buf := range []kernels.Buffer{w.W, x} {
					for i := range kernels.Elems[float32](buf) {
						kernels.Elems[float32](buf)[i] = float32(r.NormFloat64())
					}
				}
				be.Pack(w)
				b.ResetTimer()
				for range b.N {
					be.MatMul(y, x, w, kernels.Buffer{})
					be.Sync()
				}
				b.ReportMetric(2*float64(m*N*K*b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

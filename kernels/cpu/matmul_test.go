package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
				b.Sync()
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

// TestProductsOfManyRows: however many rows are shared out among however many threads, each
// is computed, and as one thread alone computes it.
func TestProductsOfManyRows(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		one := openAs(t, Options{Operand: operand, Threads: 1})
		for _, threads := range []int{2, 3, 8} {
			b := openAs(t, Options{Operand: operand, Threads: threads})
			for i, k := range []int{5, 5, 70, 70, 500, 500, 1100, 1100} {
				M, F := 1+r.IntN(3000), 32*(1+r.IntN(2))+r.IntN(2)*7
				if i%2 == 0 {
					M = 1 + r.IntN(600) // a few blocks for each thread, or less
				} else if k == 500 {
					M += 2200 // too long for the queue, in one piece
				}
				want, got := products(t, one, M, F, k), products(t, b, M, F, k)
				for i := range want {
					if at := differing(bytesOf(got[i]), bytesOf(want[i])); at >= 0 {
						t.Errorf("seed %d, %v, %d threads, %d rows, F=%d, K=%d: product %d differs at byte %d", seed, operand, threads, M, F, k, i, at)
					}
				}
			}
		}
	}
}

// Blocks of rows cover all strips once, and threads that take one after another end nearly
// together, if there are two strips for each: how the blocks of products with 11 to 15 strips
// were once, one of two threads had up to ten times the other's work.
func TestRowsAreSharedEvenly(t *testing.T) {
	for _, threads := range []int{2, 3, 8} {
		f32 := openAs(t, Options{Threads: threads})
		bf16 := openAs(t, Options{Operand: kernels.BF16, Threads: threads})
		for m := 1; m <= 3000; m++ {
			for _, k := range []int{128, 2048} {
				rows, groups, _ := f32.shareProduct(m, 512, k, min(k, longestPart), 512/int(f32.k.nr))
				checkShare(t, fmt.Sprintf("float32, %d rows, K=%d", m, k), sizesOf(int(rows.strips), int(rows.large), int(rows.many), int(rows.few), rowBlocks(rows)), groups, threads)
				if bf16.tiles != nil {
					rows, groups, _ = bf16.shareTiles(m, m*512*k, 16, 1, 512/tileBlock, k == 128)
					checkShare(t, fmt.Sprintf("bf16, %d rows, K=%d", m, k), sizesOf(int(rows.strips), int(rows.large), int(rows.many), int(rows.few), rowBlocks(rows)), groups, threads)
				}
			}
		}
	}
}

// sizesOf returns how many of the strips each block has, as args.h divides them; the last may
// be cut short.
func sizesOf(strips, large, many, few, blocks int) []int {
	left, sizes := strips, []int{}
	for b := range blocks {
		n := few
		if b < large {
			n = many
		}
		sizes = append(sizes, min(n, left))
		left -= n
	}
	if left > 0 {
		sizes = append(sizes, -left) // of nobody
	}
	return sizes
}

// worst is how much of an even share a thread may have. Eight threads that divide few blocks'
// panels have one unit too many for all to end together.
var worst = map[int]float64{2: 1.25, 3: 1.5, 8: 1.8}

func checkShare(t *testing.T, name string, sizes []int, groups, threads int) {
	t.Helper()
	busy, strips := make([]float64, threads), 0
	for _, n := range sizes {
		if n <= 0 {
			t.Fatalf("%s, %d threads: blocks of %v strips", name, threads, sizes)
		}
		strips += n
		for range groups {
			busy[slices.Index(busy, slices.Min(busy))] += float64(n) / float64(groups)
		}
	}
	if even := float64(strips) / float64(threads); strips >= 2*threads && slices.Max(busy) > worst[threads]*even {
		t.Fatalf("%s, %d threads: blocks of %v strips, %d groups: a thread has %.1f strips of %d", name, threads, sizes, groups, slices.Max(busy), strips)
	}
}

// products returns what the four products give of M rows, a weight of 2F gates and ups by k
// and one of k by F, in memory that held NaN.
func products(t *testing.T, b *Backend, M, F, k int) []kernels.Buffer {
	t.Helper()
	alloc := func(d kernels.DType, n int) kernels.Buffer {
		x, err := b.Alloc(d, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Free(x) })
		return x
	}
	filled := func(d kernels.DType, n int) kernels.Buffer {
		x, host := alloc(d, n), make([]float32, n)
		for i := range host {
			host[i] = float32(math.Sin(float64(i*i%1009+n))) / 2
		}
		b.Copy(x, kernels.Host(host))
		return x
	}
	matrix := func(out, in int) kernels.Matrix {
		packed, packedT := b.PackedLen(out, in)
		w := kernels.Matrix{W: filled(kernels.F32, out*in), Packed: alloc(b.Operand(), packed), PackedT: alloc(b.Operand(), packedT), Out: out, In: in}
		b.Pack(w)
		return w
	}
	nan := func(n int) kernels.Buffer {
		x := alloc(b.Operand(), n)
		for i, raw := 0, bytesOf(x); i < len(raw); i++ {
			raw[i] = 0xff
		}
		return x
	}
	wide, back := matrix(2*F, k), matrix(k, F)
	x, dout, gates := filled(b.Operand(), M*k), filled(b.Operand(), M*2*F), filled(b.Operand(), M*2*F)
	out, dx, act, dgates := nan(M*2*F), nan(M*k), nan(M*F), nan(M*2*F)
	b.MatMul(out, x, wide, kernels.Buffer{})
	b.MatMulDX(dx, dout, wide)
	b.MatMulSwiGLU(act, kernels.Buffer{}, x, wide)
	b.MatMulDXSwiGLU(dgates, gates, x, back)
	b.Sync()
	return []kernels.Buffer{out, dx, act, dgates}
}

// differing returns the first place where a and b differ, or -1.
func differing(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

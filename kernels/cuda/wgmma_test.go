//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"exp/kernels"
)

// needsWgmma skips a test where products in class matrix/16x25 cannot be by wgmma. On the fake driver they can.
func needsWgmma(t testing.TB, b *Backend) {
	t.Helper()
	if !b.class.matrix || b.noWgmma == "" {
		return
	}
	if _, fake := os.LookupEnv(fakeVariable); fake {
		t.Fatal(b.Products())
	}
	t.Skip(b.Products())
}

// Products by wgmma have the bits of mma.sync, whatever the shape: terms for all stages and more, ends within a
// step, a stage and a tile, several tiles for each cluster, gradient blocks that are empty or end within a step.
func TestWgmmaBits(t *testing.T) {
	b := openIn(t, "matrix/16x25")
	needsWgmma(t, b)
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range []struct{ M, N, K int }{{1, 1, 1}, {30, 20, 700}, {700, 30, 20}, {20, 700, 30}, {530, 264, 72}} {
		t.Run(fmt.Sprintf("%d,%d,%d", s.M, s.N, s.K), func(t *testing.T) { compareProducts(t, b, r, s.M, s.N, s.K) })
	}
}

func compareProducts(t *testing.T, b *Backend, r *rand.Rand, M, N, K int) {
	numbers := func(n int) kernels.Buffer {
		v := make([]float32, n)
		for i := range v {
			v[i] = scaled(r, -12, 12)
		}
		return upload(t, b, kernels.F32, v)
	}
	empty := func(d kernels.DType, n int) kernels.Buffer {
		x, err := b.Alloc(d, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Free(x) })
		return x
	}
	x, y, bias := numbers(M*K), numbers(M*N), numbers(N)
	m := kernels.Matrix{W: numbers(N * K), Packed: empty(kernels.BF16, N*pitch(K)), Out: N, In: K}
	b.Pack(m)
	half := M / 2
	blocks := upload(t, b, kernels.I32, []int32{0, int32(half / 3), int32(half / 3), int32(half), int32(M)})
	for _, op := range []struct {
		name string
		n    int
		run  func(out kernels.Buffer)
	}{
		{"MatMul", M * N, func(out kernels.Buffer) { b.MatMul(out, x, m, bias) }},
		{"MatMulDX", M * K, func(out kernels.Buffer) { b.MatMulDX(out, y, m) }},
		{"MatMulDW", N * K, func(out kernels.Buffer) { b.MatMulDW(out, kernels.Buffer{}, y, x, blocks) }},
	} {
		for _, d := range []kernels.DType{kernels.F32, kernels.BF16} {
			if op.name == "MatMulDW" && d == kernels.BF16 {
				continue // gradients of weights are float32
			}
			results := [2][]float32{make([]float32, op.n), make([]float32, op.n)}
			for i, family := range []tiles{matrixTiles, wgmmaTiles} {
				b.pick = func(int, int, bool) tiles { return family }
				out := empty(d, op.n+1).Slice(i%2, op.n+i%2) // one element away, pairs are not aligned
				op.run(out)
				b.Copy(kernels.Host(results[i]), out)
			}
			b.Sync()
			for i, v := range results[1] {
				if want := results[0][i]; math.Float32bits(v) != math.Float32bits(want) {
					t.Fatalf("%s to %v: element %d is %g (%#08x), by mma.sync %g (%#08x)", op.name, d, i, v,
						math.Float32bits(v), want, math.Float32bits(want))
				}
			}
		}
	}
}

// Where wgmma cannot be used, or has other bits, products are by mma.sync.
func failWgmma(why string) func(t *testing.T) {
	return func(t *testing.T) {
		b := openIn(t, "matrix/16x25")
		if s := b.Products(); !strings.HasPrefix(s, "mma.sync, not wgmma: ") || !strings.Contains(s, why) {
			t.Errorf("products are by %q, want mma.sync because of %q", s, why)
		}
		if got := b.pick(4096, 4096, false); got != largeTiles {
			t.Errorf("large products are on %v", got)
		}
		if b.Allocated() != 0 || b.TakePeak() != 0 {
			t.Error("the comparison left memory behind")
		}
	}
}

func TestWgmma(t *testing.T) {
	fake(t)
	b := openIn(t, "matrix/16x25")
	if got := b.pick(4096, 4096, false); b.Products() != "wgmma, with the bits of mma.sync" || got != wgmmaTiles {
		t.Errorf("products are by %q, large ones on %v", b.Products(), got)
	}
	t.Setenv(wgmmaVariable, "0")
	if s := openIn(t, "matrix/16x25").Products(); s != "mma.sync, not wgmma: EXP_WGMMA is 0" {
		t.Errorf("products are by %q", s)
	}
	if s := open(t).Products(); s != "" {
		t.Errorf("float32 products are by %q", s)
	}
}

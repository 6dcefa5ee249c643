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
	"exp/kernels/ref"
)

// needsWgmma skips a test where products in class matrix/16x25 cannot be by wgmma. On the fake driver and on compute
// capability 9.0 they must.
func needsWgmma(t testing.TB, b *Backend) {
	t.Helper()
	if !b.class.matrix || b.noWgmma == "" {
		return
	}
	_, fake := os.LookupEnv(fakeVariable)
	if fake || b.about.Major == 9 && b.about.Minor == 0 && os.Getenv(wgmmaVariable) != "0" {
		t.Fatal(b.Products())
	}
	t.Skip(b.Products())
}

// Products by wgmma have the bits of mma.sync, whatever the shape: terms for all stages and more, ends within a
// step, a stage and a tile, several tiles for each cluster, gradient blocks that are empty or end within a step.
// An odd number of columns is no SwiGLU.
func TestWgmmaBits(t *testing.T) {
	beside(t)
	b := openIn(t, "matrix/16x25")
	needsWgmma(t, b)
	b.multiprocessors = 2 // one cluster does all tiles
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range []struct{ M, N, K, exponent int }{{1, 1, 1, 12}, {30, 20, 700, 12}, {700, 30, 20, 12},
		{20, 700, 30, 12}, {530, 264, 72, 12}, {40, 8, 8, -60}} { // the last has subnormal sums
		t.Run(fmt.Sprintf("%d,%d,%d", s.M, s.N, s.K), func(t *testing.T) {
			compareProducts(t, b, r, s.M, s.N, s.K, s.exponent)
		})
	}
}

// compareProducts compares the products of factors below 2^exponent.
func compareProducts(t *testing.T, b *Backend, r *rand.Rand, M, N, K, exponent int) {
	numbers := func(n, exponent int) kernels.Buffer {
		v := make([]float32, n)
		for i := range v {
			v[i] = scaled(r, exponent-24, exponent)
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
	x, y, bias, F := numbers(M*K, exponent), numbers(M*N, exponent), numbers(N, max(-102, int(2*exponent))), N/2
	m := kernels.Matrix{W: numbers(N*K, exponent), Packed: empty(kernels.BF16, N*pitch(K)), Out: N, In: K}
	b.Pack(m)
	half := M / 2
	blocks := upload(t, b, kernels.I32, []int32{0, int32(half / 3), int32(half / 3), int32(half), int32(M)})
	for _, op := range []struct {
		name   string
		family tiles
		n      int
		run    func(out kernels.Buffer)
	}{
		{"MatMul", wgmmaTiles, M * N, func(out kernels.Buffer) { b.MatMul(out, x, m, bias) }},
		{"MatMul", thinTiles, M * N, func(out kernels.Buffer) { b.MatMul(out, x, m, bias) }},
		{"MatMul", slimTiles, M * N, func(out kernels.Buffer) { b.MatMul(out, x, m, bias) }},
		{"MatMulDX", wgmmaTiles, M * K, func(out kernels.Buffer) { b.MatMulDX(out, y, m) }},
		{"MatMulDW", wgmmaTiles, N * K, func(out kernels.Buffer) { b.MatMulDW(out, kernels.Buffer{}, y, x, blocks) }},
		{"MatMulSwiGLU", wgmmaTiles, M * F, func(out kernels.Buffer) { b.MatMulSwiGLU(out, empty(b.Operand(), M*N), x, m) }},
		{"MatMulSwiGLU", thinTiles, M * F, func(out kernels.Buffer) { b.MatMulSwiGLU(out, empty(b.Operand(), M*N), x, m) }},
		{"MatMulSwiGLU", slimTiles, M * F, func(out kernels.Buffer) { b.MatMulSwiGLU(out, empty(b.Operand(), M*N), x, m) }},
	} {
		for _, d := range []kernels.DType{kernels.F32, kernels.BF16} {
			if op.name == "MatMulDW" && d == kernels.BF16 || op.name == "MatMulSwiGLU" && (d == kernels.F32 || N%2 > 0) {
				continue // gradients of weights are float32, activations operands
			}
			computed := func(family tiles, from int) []float32 {
				b.pick = func(int, int, bool) tiles { return family }
				out, got := empty(d, op.n+1).Slice(from, op.n+from), make([]float32, op.n)
				op.run(out)
				b.Copy(kernels.Host(got), out)
				b.Sync()
				return got
			}
			right := computed(matrixTiles, 0)
			for from := range 2 { // one element further, pairs are not aligned
				for i, v := range computed(op.family, from) {
					if math.Float32bits(v) != math.Float32bits(right[i]) {
						t.Fatalf("%s to %v on %s: element %d is %g (%#08x), by mma.sync %g (%#08x)", op.name, d,
							op.family.family, i, v, math.Float32bits(v), right[i], math.Float32bits(right[i]))
					}
				}
			}
		}
	}
}

// Attention and its gradients by wgmma have the bits of the class: spans that end within a panel and a warpgroup's rows, more panels than
// stages, windows, prefixes, and infinite values that some rows of a warpgroup see and others do not.
func TestWgmmaAttention(t *testing.T) {
	beside(t)
	b := openIn(t, "matrix/16x25")
	needsWgmma(t, b)
	for _, tt := range []struct {
		s        kernels.AttentionShape
		offsets  []int32
		groups   []int32
		infinite string // where key 70 is
	}{
		{kernels.AttentionShape{H: 2, K: 1, D: 16}, []int32{0, 700}, nil, ""},
		{kernels.AttentionShape{H: 2, K: 1, D: 128}, []int32{0, 21, 23, 165}, nil, ""},
		{kernels.AttentionShape{H: 1, K: 1, D: 128}, []int32{0, 420}, nil, ""},
		{kernels.AttentionShape{H: 1, K: 1, D: 72}, []int32{0, 300}, nil, "value"},
		{kernels.AttentionShape{H: 1, K: 1, D: 8}, []int32{0, 1, 66, 300}, []int32{0, 3}, ""},
		{kernels.AttentionShape{H: 1, K: 1, D: 72, Window: 20}, []int32{0, 150}, nil, ""},
		{kernels.AttentionShape{H: 1, K: 1, D: 8, Window: 150}, []int32{0, 90, 320}, []int32{0, 2}, ""},
		{kernels.AttentionShape{H: 1, K: 1, D: 88}, []int32{0, 140}, nil, "value"},
		{kernels.AttentionShape{H: 1, K: 1, D: 16, Window: 70}, []int32{0, 140}, nil, "value"},
		{kernels.AttentionShape{H: 1, K: 1, D: 16}, []int32{0, 200}, nil, "query"},
		{kernels.AttentionShape{H: 1, K: 1, D: 80}, []int32{0, 140}, nil, "key"},
		{kernels.AttentionShape{H: 1, K: 1, D: 80, Window: 70}, []int32{0, 140}, nil, "dout"},
	} {
		tt.s.Scale = 1 / math.Sqrt(float64(tt.s.D))
		t.Run(fmt.Sprintf("%+v,%v,%s", tt.s, tt.offsets, tt.infinite), func(t *testing.T) {
			M := int(tt.offsets[len(tt.offsets)-1])
			x := spread(M*tt.s.Stride(), 0.37)
			gradients := spread(M*tt.s.H*tt.s.D, 0.29)
			infinity := float32(math.Inf(1))
			switch at := 70*tt.s.Stride() + 3; tt.infinite { // row 69 does not see key 70, and row 71 does
			case "query":
				x[at] = infinity
			case "key":
				x[at+tt.s.H*tt.s.D] = infinity
			case "value":
				x[at+(tt.s.H+tt.s.K)*tt.s.D] = infinity
			case "dout":
				gradients[70*tt.s.H*tt.s.D+3] = infinity
			}
			var results [2][3][]float32
			for i, on := range []kernels.Backend{ref.NewMatrix(), b} {
				b.wgmmaAttention = func(int, int, int) bool { return true }
				out, stats := operands(t, on, make([]float32, M*tt.s.H*tt.s.D)), upload(t, on, kernels.F32, make([]float32, 2*M*tt.s.H))
				shared := kernels.Buffer{}
				if tt.groups != nil {
					shared = upload(t, on, kernels.I32, tt.groups)
				}
				on.Attention(out, stats, operands(t, on, x), upload(t, on, kernels.I32, tt.offsets), shared, tt.s)
				dout := operands(t, on, gradients)
				dqkv := operands(t, on, make([]float32, M*tt.s.Stride()))
				on.AttentionBackward(dqkv, dout, out, stats, operands(t, on, x), upload(t, on, kernels.I32, tt.offsets), shared, tt.s)
				results[i] = [3][]float32{read32(on, out), read32(on, stats), read32(on, dqkv)}
			}
			for i, want := range results[0] {
				for j, w := range want {
					if g := results[1][i][j]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
						t.Fatalf("result %d differs at %d of %d: %g, want %g", i, j, len(want), g, w)
					}
				}
			}
			seen := results[0][0][71*tt.s.H*tt.s.D+3]
			infinite := math.IsInf(float64(seen), 0) || seen != seen
			if infinite != (tt.infinite == "value") {
				t.Errorf("row 71 has %g", seen)
			}
		})
	}
}

// Long sequences without a cap or a small window go by wgmma.
func TestPickAttention(t *testing.T) {
	b := &Backend{wgmmaAttention: long}
	for _, tt := range []struct {
		M, sequences int
		s            kernels.AttentionShape
		want         string
	}{
		{128, 1, kernels.AttentionShape{D: 128}, "wgmma_attention_128"},
		{256, 2, kernels.AttentionShape{D: 64, Window: 256}, "wgmma_attention_64"},
		{127, 1, kernels.AttentionShape{D: 128}, panelHeads.forward.name},
		{1024, 1, kernels.AttentionShape{D: 128, Window: 255}, panelHeads.forward.name},
		{1024, 1, kernels.AttentionShape{D: 128, Cap: 30}, panelHeads.forward.name},
	} {
		if got := b.pickAttention(tt.M, tt.sequences, tt.s); got.forward.name != tt.want {
			t.Errorf("%d rows of %d sequences, %+v: %s, want %s", tt.M, tt.sequences, tt.s, got.forward.name, tt.want)
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
	if b.Allocated() != 0 || b.TakePeak() != 0 {
		t.Error("the comparison left memory behind")
	}
	t.Setenv(wgmmaVariable, "0")
	if s := openIn(t, "matrix/16x25").Products(); s != "mma.sync, not wgmma: EXP_WGMMA is 0" {
		t.Errorf("products are by %q", s)
	}
	if s := open(t).Products(); s != "" {
		t.Errorf("float32 products are by %q", s)
	}
}

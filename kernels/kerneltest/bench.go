package kerneltest

import (
	"fmt"
	"strings"
	"testing"

	"exp/kernels"
)

// Bench measures the operation that the benchmark function is named after, on
// every shape of the table: BenchmarkMatMul gives
//
//	BenchmarkMatMul/impl=cpu-avx512/M=256/N=768/K=256-2
//
// with the bytes that must move at least (each operand once), GFLOP/s where
// arithmetic is the limit, and allocations. A function that is not
// named after an operation, such as BenchmarkKernels, gets every operation one level down. Shapes
// fit a model of 10 million parameters: C = 256, H = 4, K = 2, D = 64,
// F = 1024; batches of 2048 rows, decode steps of 64. Linear maps have the sizes of a
// model of 50 million too: C = 512, H = 8, K = 2, F = 2048, V = 8192; and decode
// steps of 8, 16 and 64 rows. Frozen weights have a size of Qwen2.5-0.5B.
func Bench(b *testing.B, open func() kernels.Backend) {
	dev := open()
	impl := "impl=" + strings.ReplaceAll(dev.Name(), "/", "-")
	op := strings.TrimPrefix(b.Name(), "Benchmark")
	named := false
	for _, m := range benchmarks() {
		if m.op == op {
			named = true
			b.Run(impl+"/"+m.dims, func(b *testing.B) { m.measure(b, dev) })
		}
	}
	if named {
		return
	}
	for _, m := range benchmarks() {
		b.Run(m.op+"/"+impl+"/"+m.dims, func(b *testing.B) { m.measure(b, dev) })
	}
}

// benchmark is one operation on one shape.
type benchmark struct {
	op    string
	dims  string
	flops int                      // of one call; 0 where memory is the limit
	bytes int                      // of one call at 4 bytes an element
	setup func(c *call) (f func()) // f is one call
}

func (m benchmark) measure(b *testing.B, dev kernels.Backend) {
	c := &call{b: dev}
	f := m.setup(c)
	if c.err != nil {
		b.Fatal(c.err)
	}
	b.SetBytes(int64(m.bytes))
	b.ReportAllocs()
	for b.Loop() {
		f()
		dev.Sync()
	}
	if m.flops > 0 {
		b.ReportMetric(float64(m.flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	}
	if _, err := c.finish(); err != nil {
		b.Fatal(err)
	}
}

func benchmarks() []benchmark {
	var all []benchmark
	for _, list := range [][]benchmark{memoryBenchmarks(), linearBenchmarks(), normBenchmarks(), sequenceBenchmarks(),
		outputBenchmarks(), gateBenchmarks(), sinkBenchmarks(), xieluBenchmarks(),
		recurrenceBenchmarks(), columnBenchmarks(),
		expertBenchmarks()} {
		all = append(all, list...)
	}
	return all
}

// dimsOf renders name and value pairs as "M=256/N=768".
func dimsOf(pairs ...any) string {
	var s []string
	for i := 0; i < len(pairs); i += 2 {
		s = append(s, fmt.Sprintf("%v=%v", pairs[i], pairs[i+1]))
	}
	return strings.Join(s, "/")
}

// even returns block or sequence offsets every step rows.
func even(n, step int) []int32 {
	x := []int32{0}
	for at := 0; at < n; {
		at = min(n, at+step)
		x = append(x, int32(at))
	}
	return x
}

func memoryBenchmarks() []benchmark {
	const n = 1 << 20
	r := benchStream("bench")
	x := r.floats(4096)
	long := func() []float32 {
		y := make([]float32, 0, n)
		for len(y) < n {
			y = append(y, x...)
		}
		return y
	}
	a := kernels.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01, GradScale: 1, Step: 10}
	return []benchmark{
		{"Copy", dimsOf("n", n), 0, 8 * n, func(c *call) func() {
			dst, src := c.out("dst", n), c.floats("src", long())
			return func() { c.b.Copy(dst, src) }
		}},
		{"Zero", dimsOf("n", n), 0, 4 * n, func(c *call) func() {
			dst := c.out("dst", n)
			return func() { c.b.Zero(dst) }
		}},
		{"Add", dimsOf("n", n), 0, 12 * n, func(c *call) func() {
			dst, src := c.inout("dst", long()), c.floats("src", long())
			return func() { c.b.Add(dst, src) }
		}},
		{"AdamW", dimsOf("n", n), 0, 28 * n, func(c *call) func() {
			p, m, v, g := c.inout("p", long()), c.inout("m", make([]float32, n)), c.inout("v", make([]float32, n)),
				c.floats("g", long())
			return func() { c.b.AdamW(p, m, v, g, a) }
		}},
		{"SumSquares", dimsOf("n", n), 0, 4 * n, func(c *call) func() {
			out, src := c.outDoubles("out", 1), c.floats("src", long())
			return func() { c.b.SumSquares(out, src) }
		}},
	}
}

// layers50M are the linear maps of a model of 50 million parameters: queries, keys
// and values; attention's output; gate and up; down; the output projection.
func layers50M() []gemmShape {
	return []gemmShape{{N: 768, K: 512}, {N: 512, K: 512}, {N: 4096, K: 512}, {N: 512, K: 2048}, {N: 8192, K: 512}}
}

func matmulBenchmark(g gemmShape) benchmark {
	dims := dimsOf("M", g.M, "N", g.N, "K", g.K)
	r := benchStream("bench " + dims)
	return benchmark{"MatMul", dims, 2 * g.M * g.N * g.K, 4 * (g.M*g.N + g.N*g.K + g.M*g.K), func(c *call) func() {
		out, x, w := c.outOperands("out", g.M*g.N), c.operands("x", r.floats(g.M*g.K)),
			c.matrix("w", r.floats(g.N*g.K), g.N, g.K)
		bias := c.floats("bias", r.floats(g.N))
		return func() { c.b.MatMul(out, x, w, bias) }
	}}
}

// frozenBenchmark measures a linear map with frozen weights in BF16.
func frozenBenchmark(g gemmShape) benchmark {
	dims := dimsOf("M", g.M, "N", g.N, "K", g.K) + "/weights=bf16"
	r := benchStream("bench " + dims)
	return benchmark{"MatMul", dims, 2 * g.M * g.N * g.K, 4*(g.M*g.N+g.M*g.K) + 2*g.N*g.K, func(c *call) func() {
		out, x := c.outOperands("out", g.M*g.N), c.operands("x", r.floats(g.M*g.K))
		w := c.frozen("w", r.truncated(g.N*g.K), g.N, g.K, bits)
		return func() { c.b.MatMul(out, x, w, kernels.Buffer{}) }
	}}
}

// dwBenchmark measures a weight gradient over blocks of some rows.
func dwBenchmark(g gemmShape, rows int) benchmark {
	dims := dimsOf("M", g.M, "N", g.N, "K", g.K)
	if rows != kernels.BlockRows {
		dims += fmt.Sprintf("/block=%d", rows)
	}
	r := benchStream("bench dw " + dims)
	return benchmark{"MatMulDW", dims, 2 * g.M * g.N * g.K, 4 * (g.M*g.N + g.N*g.K + g.M*g.K), func(c *call) func() {
		dw := c.inout("dw", make([]float32, g.N*g.K))
		dout, x := c.operands("dout", r.floats(g.M*g.N)), c.operands("x", r.floats(g.M*g.K))
		blocks := c.ints("blocks", even(g.M, rows))
		return func() { c.b.MatMulDW(dw, kernels.Buffer{}, dout, x, blocks) }
	}}
}

func linearBenchmarks() []benchmark {
	var list []benchmark
	shapes := []gemmShape{{1, 768, 256}, {64, 768, 256}, {256, 768, 256}, {2048, 768, 256}, {2048, 2048, 256},
		{2048, 256, 1024}}
	for _, n := range layers50M() {
		shapes = append(shapes, gemmShape{2048, n.N, n.K})
		for _, m := range []int{8, 16, 64} {
			list = append(list, matmulBenchmark(gemmShape{m, n.N, n.K}))
		}
	}
	for _, g := range shapes {
		dims, flops := dimsOf("M", g.M, "N", g.N, "K", g.K), 2*g.M*g.N*g.K
		bytes := 4 * (g.M*g.N + g.N*g.K + g.M*g.K)
		r := benchStream("bench " + dims)
		list = append(list, matmulBenchmark(g),
			benchmark{"MatMulDX", dims, flops, bytes, func(c *call) func() {
				dx, dout, w := c.outOperands("dx", g.M*g.K), c.operands("dout", r.floats(g.M*g.N)),
					c.matrix("w", r.floats(g.N*g.K), g.N, g.K)
				return func() { c.b.MatMulDX(dx, dout, w) }
			}},
			dwBenchmark(g, kernels.BlockRows))
	}
	for _, m := range []int{1, 8, 16, 64, 256} { // a map of Qwen2.5-0.5B
		list = append(list, frozenBenchmark(gemmShape{m, 4864, 896}))
	}
	// What gradient blocks cost: as long as they may be, and as short answers are.
	list = append(list, dwBenchmark(gemmShape{1920, 2048, 256}, 240), dwBenchmark(gemmShape{1920, 2048, 256}, 30))
	const N, K = 2048, 256
	list = append(list, benchmark{"Pack", dimsOf("N", N, "K", K), 0, 3 * 4 * N * K, func(c *call) func() {
		w := c.matrix("w", benchStream("pack").floats(N*K), N, K)
		return func() { c.b.Pack(w) }
	}})
	const M, C, V = 2048, 256, 8192
	r := benchStream("bench embed")
	return append(list,
		benchmark{"Embed", dimsOf("M", M, "C", C), 0, 8 * M * C, func(c *call) func() {
			out, w, ids := c.out("out", M*C), c.floats("weight", r.floats(V*C)), c.ints("ids", r.ids(M, V))
			return func() { c.b.Embed(out, kernels.Matrix{W: w, Out: w.Len() / C, In: C}, ids, 1) }
		}},
		benchmark{"Embed", dimsOf("M", M, "C", C, "scale", 16), 0, 8 * M * C, func(c *call) func() {
			out, w, ids := c.out("out", M*C), c.floats("weight", r.floats(V*C)), c.ints("ids", r.ids(M, V))
			return func() { c.b.Embed(out, kernels.Matrix{W: w, Out: w.Len() / C, In: C}, ids, 16) }
		}},
		benchmark{"EmbedBackward", dimsOf("M", M, "C", C, "scale", 16), 0, 12 * M * C, func(c *call) func() {
			dw, dout, ids := c.inout("dweight", make([]float32, V*C)), c.floats("dout", r.floats(M*C)),
				c.ints("ids", r.ids(M, V))
			return func() { c.b.EmbedBackward(dw, dout, ids, C, 16) }
		}},
		benchmark{"EmbedBackward", dimsOf("M", M, "C", C), 0, 12 * M * C, func(c *call) func() {
			dw, dout, ids := c.inout("dweight", make([]float32, V*C)), c.floats("dout", r.floats(M*C)),
				c.ints("ids", r.ids(M, V))
			return func() { c.b.EmbedBackward(dw, dout, ids, C, 1) }
		}})
}

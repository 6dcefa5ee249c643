//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"exp/kernels"
	"exp/kernels/cuda/cublaslt"
	"exp/kernels/kerneltest"
)

// BenchmarkKernels measures every operation in each numerics class.
func BenchmarkKernels(b *testing.B) {
	for name, class := range classes() {
		b.Run(name, func(b *testing.B) {
			be := openIn(b, class)
			kerneltest.Bench(b, func() kernels.Backend { return be })
		})
	}
}

// BenchmarkMemory measures the device's memory, on arrays that no cache holds.
func BenchmarkMemory(b *testing.B) {
	be := open(b)
	n := int(be.about.Memory / 64 / 4)
	x, err := be.Alloc(kernels.F32, n)
	if err != nil {
		b.Fatal(err)
	}
	defer be.Free(x)
	y, err := be.Alloc(kernels.F32, n)
	if err != nil {
		b.Fatal(err)
	}
	defer be.Free(y)
	host := kernels.Host(make([]float32, n))
	for _, m := range []struct {
		name  string
		bytes int // of one element
		run   func()
	}{
		{"Zero", 4, func() { be.Zero(x) }},
		{"Copy", 8, func() { be.Copy(x, y) }},
		{"Add", 12, func() { be.Add(x, y) }},
		{"ToDevice", 4, func() { be.Copy(x, host) }},
		{"ToHost", 4, func() { be.Copy(host, x) }},
	} {
		b.Run(m.name, func(b *testing.B) {
			b.SetBytes(int64(m.bytes * n))
			for b.Loop() {
				m.run()
				be.Sync()
			}
		})
	}
}

// Benchmark7B measures the products of a model with 7B parameters on tensor cores: of a micro-batch,
// and of a sampling step.
func Benchmark7B(b *testing.B) {
	be := openIn(b, "matrix/16x25")
	each7B(b, be, func(b *testing.B, m linear, op string) func() {
		w := kernels.Matrix{W: m.dw, Packed: m.w, Out: m.N, In: m.K}
		switch op {
		case "MatMul":
			return func() { be.MatMul(m.y, m.x, w, kernels.Buffer{}) }
		case "MatMulDX":
			return func() { be.MatMulDX(m.x, m.y, w) }
		default:
			blocks := upload(b, be, kernels.I32, []int32{0, int32(m.M)})
			return func() { be.MatMulDW(m.dw, kernels.Buffer{}, m.y, m.x, blocks) }
		}
	})
}

// cublasLtWorkspace is what the vendor's guide recommends for compute capability 9.0: 32 MiB.
const cublasLtWorkspace = 32 << 20

// BenchmarkCublasLt measures the same products by NVIDIA's library, where there is one.
func BenchmarkCublasLt(b *testing.B) {
	be := openIn(b, "matrix/16x25")
	workspace, err := be.Alloc(kernels.F32, cublasLtWorkspace/4)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { be.Free(workspace) })
	l, err := cublaslt.Open(os.Getenv("EXP_CUBLASLT"), be, workspace)
	if missing := (*cublaslt.LibraryError)(nil); errors.As(err, &missing) {
		b.Skip(err)
	} else if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	b.Log(l)
	each7B(b, be, func(b *testing.B, m linear, op string) func() { return vendorProduct(b, l, m, op) })
}

// vendorProduct returns a call of the library that computes what an operation of ours does.
func vendorProduct(b *testing.B, l *cublaslt.Library, m linear, op string) func() {
	x := cublaslt.Matrix{Data: m.x, Rows: m.M, Cols: m.K, Pitch: m.K}
	y := cublaslt.Matrix{Data: m.y, Rows: m.M, Cols: m.N, Pitch: m.N}
	w := cublaslt.Matrix{Data: m.w, Rows: m.N, Cols: m.K, Pitch: pitch(m.K)}
	dw := cublaslt.Matrix{Data: m.dw, Rows: m.N, Cols: m.K, Pitch: m.K}
	var p *cublaslt.Product
	var err error
	switch op {
	case "MatMul":
		w.Transposed = true
		p, err = l.Product(y, x, w, false)
	case "MatMulDX":
		p, err = l.Product(x, y, w, false)
	default:
		y.Transposed = true
		p, err = l.Product(dw, y, x, true)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	return func() {
		if err := p.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// linear is a linear map of M rows: its arrays in device memory.
type linear struct {
	M, N, K     int
	x, y, w, dw kernels.Buffer // [M,K], [M,N], [N,pitch(K)] in bf16; [N,K] in float32
}

// each7B measures products of a 7B model; prepare returns a call of one. On the fake driver all sizes
// are a fraction.
func each7B(b *testing.B, be *Backend, prepare func(b *testing.B, m linear, op string) func()) {
	part := 1
	if _, fake := os.LookupEnv(fakeVariable); fake {
		part = 32
	}
	for _, layer := range []struct {
		name    string
		out, in int
	}{{"qkv", 4608, 3584}, {"o", 3584, 3584}, {"gate and up", 37888, 3584}, {"down", 3584, 18944}} {
		for _, M := range []int{64, 256, 4096} {
			m := linear{M: M / part, N: layer.out / part, K: layer.in / part}
			m.x, m.y = random(b, be, kernels.BF16, m.M*m.K), random(b, be, kernels.BF16, m.M*m.N)
			m.w, m.dw = random(b, be, kernels.BF16, m.N*pitch(m.K)), random(b, be, kernels.F32, m.N*m.K)
			for _, op := range []string{"MatMul", "MatMulDX", "MatMulDW"} {
				if op != "MatMul" && M != 4096 {
					continue // a sampling step has no gradients
				}
				b.Run(fmt.Sprintf("%s/%s/M=%d/N=%d/K=%d", op, layer.name, m.M, m.N, m.K), func(b *testing.B) {
					measureProduct(b, be, m, prepare(b, m, op))
				})
			}
		}
	}
}

// measureProduct reports the rate of calls that follow each other. The first call, which may load a kernel, does not
// count.
func measureProduct(b *testing.B, be *Backend, m linear, run func()) {
	const calls = 16 // that are awaited together: a wait takes as long as a small product
	run()
	be.Sync()
	for b.Loop() {
		for range calls {
			run()
		}
		be.Sync()
	}
	products := float64(calls) * float64(b.N)
	b.ReportMetric(2*float64(m.M)*float64(m.N)*float64(m.K)*products/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/products, "ns/product")
}

// random returns n numbers on the device; zeros would take less power than numbers do.
func random(b *testing.B, be *Backend, t kernels.DType, n int) kernels.Buffer {
	b.Helper()
	x, err := be.Alloc(t, n)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { be.Free(x) })
	some, r := make([]float32, min(n, 1<<16)), rand.New(rand.NewPCG(1, 2))
	for i := range some {
		some[i] = float32(r.NormFloat64()) / 64
	}
	be.Copy(x.Slice(0, len(some)), kernels.Host(some))
	for set := len(some); set < n; {
		more := min(set, n-set)
		be.Copy(x.Slice(set, set+more), x.Slice(0, more))
		set += more
	}
	be.Sync()
	return x
}

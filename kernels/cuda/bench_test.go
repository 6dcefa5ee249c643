//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"exp/kernels"
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
// and of a sampling step. On the fake driver all sizes are a fraction.
func Benchmark7B(b *testing.B) {
	be, part := openIn(b, "matrix/16x25"), 1
	if _, fake := os.LookupEnv(fakeVariable); fake {
		part = 32
	}
	for _, layer := range []struct {
		name    string
		out, in int
	}{{"qkv", 4608, 3584}, {"o", 3584, 3584}, {"gate and up", 37888, 3584}, {"down", 3584, 18944}} {
		for _, M := range []int{64, 256, 4096} {
			benchProducts(b, be, layer.name, M/part, layer.out/part, layer.in/part, M == 4096)
		}
	}
}

// benchProducts measures a linear map of M rows, and its gradients if wanted.
func benchProducts(b *testing.B, be *Backend, name string, M, N, K int, gradients bool) {
	x, y, dw := random(b, be, kernels.BF16, M*K), random(b, be, kernels.BF16, M*N), random(b, be, kernels.F32, N*K)
	w := kernels.Matrix{W: dw, Packed: random(b, be, kernels.BF16, N*pitch(K)), Out: N, In: K}
	blocks := upload(b, be, kernels.I32, []int32{0, int32(M)})
	for _, op := range []struct {
		name string
		run  func()
	}{
		{"MatMul", func() { be.MatMul(y, x, w, kernels.Buffer{}) }},
		{"MatMulDX", func() { be.MatMulDX(x, y, w) }},
		{"MatMulDW", func() { be.MatMulDW(dw, kernels.Buffer{}, y, x, blocks) }},
	} {
		if op.name != "MatMul" && !gradients {
			continue
		}
		b.Run(fmt.Sprintf("%s/%s/M=%d/N=%d/K=%d", op.name, name, M, N, K), func(b *testing.B) {
			for b.Loop() {
				op.run()
				be.Sync()
			}
			b.ReportMetric(2*float64(M)*float64(N)*float64(K)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
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
	for lo := 0; lo < n; lo += len(some) {
		hi := min(n, lo+len(some))
		be.Copy(x.Slice(lo, hi), kernels.Host(some[:hi-lo]))
	}
	be.Sync()
	return x
}

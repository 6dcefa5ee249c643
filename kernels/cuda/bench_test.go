//go:build cuda

package cuda

import (
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

//go:build cuda

package cuda

import (
	"math"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
)

// Host memory of the backend serves operations and copies like the device's, in order, however late
// the work runs.
func TestCopiesPinned(t *testing.T) {
	b := open(t)
	const n = 1000
	alloc := func(be kernels.Backend) kernels.Buffer {
		x, err := be.Alloc(kernels.F32, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Free(x) })
		return x
	}
	before := b.Allocated()
	host, other := alloc(kernels.OnHost(b)), alloc(kernels.OnHost(b))
	if b.Allocated() != before || len(b.pinned) != 2 {
		t.Errorf("%d bytes of the device, %d buffers of the host", b.Allocated()-before, len(b.pinned))
	}
	dev := alloc(b)
	read := func(x kernels.Buffer) []float32 {
		out := make([]float32, n)
		b.Copy(kernels.Host(out), x)
		b.Sync()
		return out
	}
	if x := read(host); slices.Max(x) != 0 || slices.Min(x) != 0 {
		t.Error("new memory of the host is not zero")
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	check := func(what string, got []float32, times float32) {
		t.Helper()
		for i, v := range got {
			if v != times*float32(i) {
				t.Fatalf("%s: element %d is %v, want %v", what, i, v, times*float32(i))
			}
		}
	}
	b.Copy(host, kernels.Host(x))
	b.Copy(dev, host)
	b.Add(host, dev) // 2x
	b.Copy(dev, host)
	b.Add(dev, host) // 4x
	b.Copy(other, dev)
	check("from the device", read(other), 4)
	b.Add(other, host) // 6x
	before6 := make([]float32, n)
	b.Copy(kernels.Host(before6), other)
	b.Add(other, host) // 8x
	b.Copy(host, other)
	b.Zero(other.Slice(1, n))
	b.Sync()
	check("before the sum", before6, 6)
	check("within the host", read(host), 8)
	check("zeroed", read(other), 0)
	wide, err := b.Alloc(kernels.F64, n)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free(wide)
	b.Copy(wide, host)
	b.Copy(dev, wide)
	check("between types", read(dev), 8)
}

// AdamW gives the same bits with moments on the host.
func TestCopiesPinnedMoments(t *testing.T) {
	b := open(t)
	const n = 3000
	update := func(be kernels.Backend) (out [3][]float32) {
		var bufs [4]kernels.Buffer
		for i := range bufs {
			from := be
			if i == 0 || i == 3 {
				from = b
			}
			x, err := from.Alloc(kernels.F32, n)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Free(x)
			bufs[i] = x
		}
		g := make([]float32, n)
		for step := range 3 {
			for i := range g {
				g[i] = float32(math.Sin(float64(i * (step + 1))))
			}
			b.Copy(bufs[3], kernels.Host(g))
			b.AdamW(bufs[0], bufs[1], bufs[2], bufs[3], kernels.AdamW{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8,
				WeightDecay: 0.1, GradScale: 0.5, Step: step + 1})
		}
		for i := range out {
			out[i] = make([]float32, n)
			b.Copy(kernels.Host(out[i]), bufs[i])
		}
		b.Sync()
		return out
	}
	device, host := update(b), update(kernels.OnHost(b))
	for i, name := range []string{"parameters", "m", "v"} {
		if !slices.Equal(device[i], host[i]) {
			t.Errorf("%s differ", name)
		}
	}
}

// Too much pinned memory is an error that says what to do.
func TestPinnedLack(t *testing.T) {
	fake(t)
	_, err := open(t).AllocHost(kernels.F32, 1<<58)
	if err == nil || !strings.Contains(err.Error(), "no more pinned memory") {
		t.Errorf("error %v", err)
	}
}

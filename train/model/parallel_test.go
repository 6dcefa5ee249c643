package model

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
)

func TestParallelValidation(t *testing.T) {
	for _, tt := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Names = GraniteNames }, "must be in all layers, with Bamba's names"},
		{func(c *Config) { c.Linear = []bool{true, false} }, "must be in all layers"},
		{func(c *Config) { c.QKNorm = true }, "have one norm before each block"},
		{func(c *Config) { c.PostNorms = true }, "have one norm before each block"},
		{func(c *Config) { c.ResidualScale = 2 }, "have one norm before each block"},
		{func(c *Config) { c.Gate = kernels.ReLU2 }, "have gates, and a norm"},
		{func(c *Config) { c.ScanNorm = NoScanNorm + 1 }, "have gates, and a norm"},
		{func(c *Config) { c.Multipliers.Key = -1 }, "the multiplier of keys is -1"},
		{func(c *Config) { c.Multipliers.Scan[3] = math.NaN() }, "the multiplier of its C is NaN"},
		{func(c *Config) { c.Multipliers.Down = math.Inf(1) }, "the multiplier of the output of feed-forward blocks is +Inf"},
		{func(c *Config) { c.Parallel = false }, "only layers with attention beside Mamba-2 have multipliers"},
	} {
		c := variants["falcon-h1"]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	for _, change := range []func(c *Config){func(c *Config) { c.ScanNorm = NoScanNorm }, func(c *Config) { c.ScanBias = true }} {
		c := variants["bamba"]
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "only layers with attention beside Mamba-2") {
			t.Errorf("error %v", err)
		}
	}
}

// Every multiplier of the struct is listed, so that Validate and descriptions know it.
func TestMultipliersAreListed(t *testing.T) {
	var count func(v reflect.Value) int
	count = func(v reflect.Value) (n int) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				n += count(v.Field(i))
			}
		case reflect.Array:
			n = v.Len()
		default:
			n = 1
		}
		return n
	}
	list := allMultipliers.List()
	if got, want := len(list), count(reflect.ValueOf(allMultipliers)); got != want {
		t.Errorf("%d multipliers are listed, there are %d", got, want)
	}
	for i, x := range list {
		if x.By == 1 || x.By == 0 || slices.ContainsFunc(list[:i], func(y Multiplier) bool { return x == y }) {
			t.Errorf("%+v is 1, missing or there twice", x)
		}
	}
}

// A gate alone leaves its other factor as it is, to the bit, and so does its gradient.
func TestGateAloneIsExact(t *testing.T) {
	s := kernels.DeltaShape{Keys: 1, Values: 2, KeyDim: 3, ValueDim: 21, Taps: 2, Scan: true}
	const M = 5
	wave := func(n int, by float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(by * math.Sin(0.7*float64(i)+by))
		}
		return x
	}
	x, p, dout := wave(M*s.Out(), 300), wave(M*s.Stride(), 3), wave(M*s.Out(), 1)
	c := variants["falcon-h1"]
	c.Delta = s
	for _, be := range []kernels.Backend{ref.New[float32](), openAs(t, cpu.Options{Threads: 2})} {
		m, err := New(be, c, Heads{LM: true}, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		on := func(x []float32) kernels.Buffer {
			b, err := be.Alloc(kernels.F32, len(x))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { be.Free(b) })
			be.Copy(b, kernels.Host(x))
			return b
		}
		blocks, err := be.Alloc(kernels.I32, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { be.Free(blocks) })
		be.Copy(blocks, kernels.Host([]int32{0, M}))
		zeros := func(n int) []float32 { return make([]float32, n) }
		d := &deltaActs{x: on(p), out: on(x), normed: on(zeros(len(x))), rstd: on(zeros(M * s.Values))}
		m.normScan(&delta{}, d)
		dx, dp := on(dout), on(zeros(len(p)))
		m.normScanBackward(&delta{}, d, dp, dx, blocks)
		out, grad := zeros(len(x)), zeros(len(x))
		be.Copy(kernels.Host(out), d.normed)
		be.Copy(kernels.Host(grad), dx)
		be.Sync()
		for i := range x {
			z := p[i/s.Out()*s.Stride()+i%s.Out()]
			gate := float32(z * ref.Sigmoid(z))
			if want := x[i] * gate; out[i] != want {
				t.Fatalf("%s: gated %v is %v, want %v", be.Name(), x[i], out[i], want)
			}
			if want := dout[i] * gate; grad[i] != want {
				t.Fatalf("%s: gradient %v is %v, want %v", be.Name(), dout[i], grad[i], want)
			}
		}
	}
}

// Attention takes 4·HD for each token and key, beside what Mamba-2 takes of each token.
func TestParallelFLOPs(t *testing.T) {
	c := variants["falcon-h1"]
	const n = 10
	keys := float64(n * (n - 1) / 2) // more than n sequences of one token have
	want := n*c.ForwardFLOPs(1, 0) + 4*keys*float64(c.Layers*c.Heads*c.Head)
	if got := c.ForwardFLOPs(n, 0); got != want {
		t.Errorf("%d tokens take %g operations, want %g", n, got, want)
	}
}

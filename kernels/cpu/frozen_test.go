package cpu

import (
	"fmt"
	"testing"

	"exp/kernels"
)

// weights are the products of a decoder-only model: layers of queries, keys and values; attention's
// output; gate and up; down; and the output layer. Each layer has its own weights, so that none
// stay in the caches.
type weights struct {
	qkv, o, gateUp, down []kernels.Matrix
	head                 kernels.Matrix
	bytes                int
	C, F, QKV            int
}

// newWeights has the shape of Qwen2.5-0.5B: 494 million weights.
func newWeights(tb testing.TB, b *Backend, packed kernels.DType) *weights {
	const layers, V = 24, 151936
	d := &weights{C: 896, F: 4864, QKV: 18 * 64}
	row := make([]uint16, kernels.PackAlign*d.F)
	for i := range row {
		row[i] = uint16(0x3c00 + i*7919%255 | i%2<<15)
	}
	matrix := func(out, in int) kernels.Matrix {
		n, _ := b.PackedLen(out, in)
		buf, err := b.Alloc(packed, n)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { b.Free(buf) })
		w := kernels.Matrix{Packed: buf, Out: out, In: in}
		for at := 0; at < out; at += kernels.PackAlign {
			b.PackRows(w, at, kernels.HostBits(row[:min(kernels.PackAlign, out-at)*in]))
		}
		d.bytes += out * in * packed.Size()
		return w
	}
	for range layers {
		d.qkv, d.o = append(d.qkv, matrix(d.QKV, d.C)), append(d.o, matrix(d.C, d.C))
		d.gateUp, d.down = append(d.gateUp, matrix(2*d.F, d.C)), append(d.down, matrix(d.C, d.F))
	}
	d.head = matrix(V, d.C)
	return d
}

// step returns a function that does the products of rows.
func (d *weights) step(tb testing.TB, b *Backend, rows int, sample bool) func() {
	room := func(n int) kernels.Buffer {
		buf, err := b.Alloc(kernels.F32, n)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { b.Free(buf) })
		for i, v := 0, kernels.Elems[float32](buf); i < len(v); i++ {
			v[i] = 0.01 * float32(i%37-18)
		}
		return buf
	}
	x, qkv, y, act, u := room(rows*d.C), room(rows*d.QKV), room(rows*d.C), room(rows*d.F), room(rows)
	sc := kernels.Scores{LogProb: room(rows), Entropy: room(rows), LSE: room(rows)}
	ids, err := b.Alloc(kernels.I32, rows)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.Free(ids) })
	none := kernels.Buffer{}
	return func() {
		for l := range d.qkv {
			b.MatMul(qkv, x, d.qkv[l], none)
			b.MatMul(y, x, d.o[l], none)
			b.MatMulSwiGLU(act, none, x, d.gateUp[l])
			b.MatMul(y, act, d.down[l], none)
		}
		if sample {
			b.Sample(ids, sc, x, d.head, u, kernels.Sampling{Temperature: 1, TopP: 1})
		}
		b.Sync()
	}
}

// BenchmarkDecodeStep measures the products of one token for each of some sequences, and of 512
// tokens of a prompt, which draws none: tokens/s, and the bytes of the weights a second.
func BenchmarkDecodeStep(b *testing.B) {
	for _, packed := range []kernels.DType{kernels.BF16, kernels.F32} {
		be := openAs(b, Options{})
		b.Run(fmt.Sprint("weights=", packed), func(b *testing.B) {
			d := newWeights(b, be, packed)
			for _, rows := range []int{1, 2, 4, 8, 16, 64, 512} {
				b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
					step := d.step(b, be, rows, rows < 512)
					b.SetBytes(int64(d.bytes))
					for b.Loop() {
						step()
					}
					b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "tok/s")
				})
			}
		})
	}
}

// BenchmarkFrozenDX measures gradients through weights that have no copy for them, and through
// weights that have one.
func BenchmarkFrozenDX(b *testing.B) {
	const out, in = 4864, 896
	be := openAs(b, Options{})
	n, nT := be.PackedLen(out, in)
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		buf, err := be.Alloc(t, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { be.Free(buf) })
		return buf
	}
	for name, w := range map[string]kernels.Matrix{
		"PackedT": {Packed: alloc(kernels.F32, n), PackedT: alloc(kernels.F32, nT)},
		"f32":     {Packed: alloc(kernels.F32, n)},
		"bf16":    {Packed: alloc(kernels.BF16, n)},
	} {
		w.Out, w.In = out, in
		for _, rows := range []int{64, 256, 1024} {
			b.Run(fmt.Sprintf("weights=%s/rows=%d", name, rows), func(b *testing.B) {
				dx, dout := alloc(kernels.F32, rows*in), alloc(kernels.F32, rows*out)
				for b.Loop() {
					be.MatMulDX(dx, dout, w)
					be.Sync()
				}
				b.ReportMetric(2*float64(rows*out*in)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

package tensor

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train/model"
	"exp/train/ranks"
)

// device is a CPU with room for tests.
type device struct {
	kernels.Backend
	t *testing.T
}

func open(t *testing.T, operand kernels.DType) *cpu.Backend {
	be, err := cpu.Open(cpu.Options{Threads: 1, Operand: operand})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

// random returns n numbers, the same for the same seed.
func (d device) random(dtype kernels.DType, n int, seed uint64) kernels.Buffer {
	r, x := rand.New(rand.NewPCG(seed, 1)), make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	b := d.zeros(dtype, n)
	d.Copy(b, kernels.Host(x))
	d.Sync()
	return b
}

func (d device) zeros(dtype kernels.DType, n int) kernels.Buffer {
	b, err := d.Alloc(dtype, n)
	if err != nil {
		d.t.Error(err)
	}
	return b
}

// products are the results of all products of a matrix [out,in] with m rows.
func (d device) products(m, out, in int) (list []kernels.Buffer) {
	b, operand := d.Backend, d.Operand()
	w := kernels.Matrix{W: d.random(kernels.F32, out*in, 1), Out: out, In: in}
	length, lo, hi := b.PackedLen, 0, out
	if c, ok := b.(*Backend); ok {
		length = c.CutLen
		if model.Cuts(out, in, c.group.Size()) {
			lo, hi = c.part(out)
			w.W = w.W.Slice(lo*in, hi*in)
		}
	}
	p, pt := length(out, in)
	w.Packed, w.PackedT = d.zeros(operand, p), d.zeros(operand, pt)
	b.Pack(w)
	x, dout, bias := d.random(operand, m*in, 2), d.random(operand, m*out, 3), d.random(kernels.F32, out, 4)
	y, dx := d.zeros(kernels.F32, m*out), d.zeros(kernels.F32, m*in)
	b.MatMul(y, x, w, bias)
	b.MatMulDX(dx, dout, w)
	dw, dbias := d.random(kernels.F32, out*in, 5).Slice(lo*in, hi*in), d.random(kernels.F32, out, 6)
	blocks := d.zeros(kernels.I32, 3)
	b.Copy(blocks, kernels.Host([]int32{0, int32(m / 2), int32(m)}))
	b.MatMulDW(dw, dbias, dout, x, blocks)
	act, gateUp := d.zeros(operand, m*out/2), d.zeros(operand, m*out)
	b.MatMulSwiGLU(act, gateUp, x, w)
	alone := d.zeros(operand, m*out/2)
	b.MatMulSwiGLU(alone, kernels.Buffer{}, x, w)
	dgate := d.random(operand, int(m*2*in), 7)
	b.MatMulDXSwiGLU(dgate, dgate, dout, w)
	return []kernels.Buffer{y, dx, dw, dbias, act, gateUp, alone, dgate}
}

// bits returns a buffer's bits.
func (d device) bits(b kernels.Buffer) []uint32 {
	x := make([]float32, b.Len())
	d.Copy(kernels.Host(x), b)
	d.Sync()
	out := make([]uint32, len(x))
	for i := range x {
		out[i] = math.Float32bits(x[i])
	}
	return out
}

// Each product has the bits of one rank, for matrices that can be cut, of which a rank packs
// its part, and for others.
func TestProducts(t *testing.T) {
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		for _, size := range []int{2, 4} {
			for _, shape := range [][3]int{{5, 256, 128}, {300, 128, 384}, {1, 384, 256}, {7, 48, 128}} {
				one := device{open(t, operand), t}
				var want [][]uint32
				for _, x := range one.products(shape[0], shape[1], shape[2]) {
					want = append(want, one.bits(x))
				}
				backends := make([]*Backend, size)
				for i, g := range ranks.InProcess(size) {
					backends[i] = New(open(t, operand), g)
				}
				var all sync.WaitGroup
				for r, b := range backends {
					all.Go(func() {
						d := device{b, t}
						for i, x := range d.products(shape[0], shape[1], shape[2]) {
							want := want[i]
							if n := x.Len(); n < len(want) { // this rank's rows
								want = want[r*n : (r+1)*n]
							}
							if at := firstDifferent(d.bits(x), want); at >= 0 {
								t.Errorf("%v, shape %v, rank %d of %d: result %d differs at %d", operand, shape, r, size, i, at)
							}
						}
						b.Close()
					})
				}
				all.Wait()
				whole, wholeT := one.PackedLen(shape[1], shape[2])
				p, pt := backends[0].CutLen(shape[1], shape[2])
				if cut := shape[1] != 48; cut && (p != whole/size || pt != wholeT/size) || !cut && p != whole {
					t.Errorf("%d ranks pack %d and %d of %d and %d", size, p, pt, whole, wholeT)
				}
			}
		}
	}
}

func firstDifferent(a, b []uint32) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func TestCheck(t *testing.T) {
	c := model.Config{Width: 128, Heads: 4, KVHeads: 2, Head: 32, FFN: 384, Vocab: 9}
	if err := Check(c, 4); err != nil {
		t.Error(err)
	}
	err := Check(c, 8)
	if err == nil || !strings.Contains(err.Error(), "compute.tensor_parallel is 8, but the model's width of 128 is not a multiple of 256") {
		t.Error(err)
	}
	c.Vocab, c.FFN = 128, 100
	if err := Check(c, 2); err == nil || !strings.Contains(err.Error(), "feed-forward width of 100") {
		t.Error(err)
	}
}

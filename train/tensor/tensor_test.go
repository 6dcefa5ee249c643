package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train/model"
	"exp/train/ranks"
)

// device is a CPU with room for tests.
type device struct {
	kernels.Backend
	t *testing.T
}

// kind is a kind of devices. Those that are slow compute small shapes only.
type kind struct {
	name string
	slow bool
	open func(t *testing.T) kernels.Backend
}

// kinds are devices of the CPU: with packed weights, and others whose products read the weights.
func kinds() []kind {
	onCPU := func(operand kernels.DType) func(t *testing.T) kernels.Backend {
		return func(t *testing.T) kernels.Backend {
			be, err := cpu.Open(cpu.Options{Threads: 1, Operand: operand})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(be.Close)
			return be
		}
	}
	return []kind{{"float32", false, onCPU(kernels.F32)}, {"bf16", false, onCPU(kernels.BF16)},
		{"float32 without copies", true, func(*testing.T) kernels.Backend { return ref.New[float32]() }},
		{"bf16 without copies", true, func(*testing.T) kernels.Backend { return ref.NewMixed() }},
		{"matrix without copies", true, func(*testing.T) kernels.Backend { return ref.NewMatrix() }}}
}

// staged is a group whose messages go through the host's memory: tests have no link between devices.
type staged struct {
	ranks.Group
	be kernels.Backend
}

// Exchange implements ranks.Group.
func (s staged) Exchange(parts []ranks.Part) error {
	list := slices.Clone(parts)
	for i, p := range parts {
		switch n := p.Data.Len(); p.Data.DType() {
		case kernels.F32:
			list[i].Data = kernels.Host(make([]float32, n))
		case kernels.I32:
			list[i].Data = kernels.Host(make([]int32, n))
		default:
			list[i].Data = kernels.HostBits(make([]uint16, n))
		}
		if p.Send {
			s.be.Copy(list[i].Data, p.Data)
		}
	}
	s.be.Sync()
	err := s.Group.Exchange(list)
	for i, p := range parts {
		if err == nil && !p.Send {
			s.be.Copy(p.Data, list[i].Data)
		}
	}
	s.be.Sync()
	return err
}

// together calls f for each of size ranks, with its share of a device.
func together(t *testing.T, size int, open func(t *testing.T) kernels.Backend, f func(rank int, d device)) {
	t.Helper()
	var all sync.WaitGroup
	for r, g := range ranks.InProcess(size) {
		be := open(t)
		all.Go(func() {
			b := New(be, staged{g, be})
			f(r, device{b, t})
			b.Close()
		})
	}
	all.Wait()
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

// host returns a buffer's numbers.
func (d device) host(b kernels.Buffer) []float32 {
	x := make([]float32, b.Len())
	d.Copy(kernels.Host(x), b)
	d.Sync()
	return x
}

// bits returns a buffer's bits.
func (d device) bits(b kernels.Buffer) []uint32 { return bitsOf(d.host(b)) }

func bitsOf(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i := range x {
		out[i] = math.Float32bits(x[i])
	}
	return out
}

// Each product has the bits of one rank, for matrices that are cut into the ranks' parts, and for
// others.
func TestProducts(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { sameProducts(t, k) })
	}
}

func sameProducts(t *testing.T, k kind) {
	shapes := [][3]int{{5, 256, 128}, {7, 48, 128}, {1, 384, 256}, {300, 128, 384}}
	if k.slow {
		shapes = shapes[:2]
	}
	for _, size := range []int{2, 4} {
		for _, shape := range shapes {
			one := device{k.open(t), t}
			var want [][]uint32
			for _, x := range one.products(shape[0], shape[1], shape[2]) {
				want = append(want, one.bits(x))
			}
			whole, wholeT := one.PackedLen(shape[1], shape[2])
			together(t, size, k.open, func(r int, d device) {
				for i, x := range d.products(shape[0], shape[1], shape[2]) {
					want := want[i]
					if n := x.Len(); n < len(want) { // this rank's rows
						want = want[r*n : (r+1)*n]
					}
					if at := firstDifferent(d.bits(x), want); at >= 0 {
						t.Errorf("shape %v, rank %d of %d: result %d differs at %d", shape, r, size, i, at)
					}
				}
				p, pt := d.Backend.(*Backend).CutLen(shape[1], shape[2])
				if cut := shape[1] != 48; cut && (p != whole/size || pt != wholeT/size) || !cut && p != whole {
					t.Errorf("%d ranks pack %d and %d of %d and %d", size, p, pt, whole, wholeT)
				}
			})
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

// A rank reads its part of the weights.
func TestRowsPerRead(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	share := New(be, ranks.InProcess(4)[0])
	t.Cleanup(share.Close)
	for _, part := range []int{1 << 20, 20 << 20, 1 << 30} {
		if got, want := kernels.RowsPerRead(share, 4*part), be.RowsPerRead(part); got != want {
			t.Errorf("%d rows in the time of %d bytes of 4 ranks, want %d", got, 4*part, want)
		}
	}
}

func TestCheck(t *testing.T) {
	c := model.Config{Width: 128, Heads: 4, KVHeads: 2, Head: 32, FFN: 384, Vocab: 9}
	if err := Check("compute.tensor_parallel", c, 4); err != nil {
		t.Error(err)
	}
	err := Check("compute.tensor_parallel", c, 8)
	if err == nil || !strings.Contains(err.Error(), "compute.tensor_parallel is 8, but the model's width of 128 is not a multiple of 256") {
		t.Error(err)
	}
	c.Vocab, c.FFN = 128, 100
	if err := Check("compute.tensor_parallel", c, 2); err == nil || !strings.Contains(err.Error(), "feed-forward width of 100") {
		t.Error(err)
	}
}

// Package tensor shares the products of a model's layers among ranks (tensor parallelism), by
// gathers alone: a rank computes whole chains for a part of each product's outputs, and the
// ranks exchange their parts. No rank computes part of a sum, so any number of ranks
// gives the bits of one (kernels.Linear defines each element).
//
//	product           a rank computes             from
//	out = x·Wᵀ        its part of the outputs     rows of W
//	dx = dout·W       its part of the inputs      columns of W
//	dW = doutᵀ·x      its rows of W               its part of the outputs
//	log-probs, draws  its part of the rows        the whole output layer
//
// A rank packs only its rows and columns of the layers' weights, so both packed copies shrink
// by the number of ranks. Parameters, gradients, activations and everything else are whole on
// each rank, which computes norms, attention and the output layer's gradient like the others.
// All ranks must call the same operations in the same order, on a CPU.
package tensor

import (
	"fmt"
	"unsafe"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
)

// Unit is what a part's width must be a multiple of: the columns that a CPU packs together.
const Unit = 32

// Check returns an error if the layers of c cannot be cut into n parts.
func Check(c model.Config, n int) error {
	for _, x := range []struct {
		what string
		size int
	}{
		{"width", c.Width}, {"queries, keys and values", c.QKV()}, {"heads' width", c.Heads * c.Head},
		{"feed-forward width", c.FFN},
	} {
		if x.size%(Unit*n) != 0 {
			return fmt.Errorf("compute.tensor_parallel is %d, but the model's %s of %d is not a multiple of %d", n,
				x.what, x.size, Unit*n)
		}
	}
	return nil
}

// Backend is a rank's share of a device: it computes the products of cut matrices with the
// other ranks of its group.
type Backend struct {
	kernels.Backend
	group ranks.Group
	rooms map[use]kernels.Buffer
}

// use is what a room is for.
type use struct {
	what string
	t    kernels.DType
}

// New shares be with the ranks of g. Close it before be.
func New(be kernels.Backend, g ranks.Group) *Backend {
	return &Backend{Backend: be, group: g, rooms: map[use]kernels.Buffer{}}
}

// Whole returns the device, for models that this rank computes alone.
func (b *Backend) Whole() kernels.Backend { return b.Backend }

// Close frees the rooms for parts.
func (b *Backend) Close() {
	for _, x := range b.rooms {
		b.Free(x)
	}
	clear(b.rooms)
}

// AllocSparse implements kernels.SparseMemory.
func (b *Backend) AllocSparse(t kernels.DType, n int) (kernels.Buffer, error) {
	return kernels.AllocSparse(b.Backend, t, n)
}

// RoomBytes returns the memory of the rooms of n ranks for micro-batches of so many tokens.
func RoomBytes(c model.Config, tokens, n int, operand kernels.DType) int {
	if n == 1 {
		return 0
	}
	const float = 4
	wide := max(c.QKV(), 2*c.FFN, c.Heads*c.Head) // operands; floats are of the residual stream's width
	parts := int(tokens*wide*operand.Size()) + int(tokens*c.Width*float)
	if operand == kernels.F32 {
		parts = int(tokens * max(wide, c.Width) * float)
	}
	columns := int(c.Width*max(c.QKV(), 2*c.FFN)) / n
	return parts + parts/n + int(columns*(float+operand.Size())) + int(tokens*2*c.FFN*operand.Size())
}

// room returns scratch memory of n elements, valid until the next call for the same use.
func (b *Backend) room(what string, t kernels.DType, n int) kernels.Buffer {
	at := use{what, t}
	if have := b.rooms[at]; have.Len() < n {
		if !have.Empty() {
			b.Sync()
			b.Free(have)
		}
		x, err := b.Alloc(t, n)
		if err != nil {
			panic(&kernels.RoomError{Part: kernels.ScratchRoom, Err: err})
		}
		b.rooms[at] = x
	}
	return b.rooms[at].Slice(0, n)
}

// part returns this rank's part of n.
func (b *Backend) part(n int) (lo, hi int) {
	r, size := b.group.Rank(), b.group.Size()
	return r * n / size, (r + 1) * n / size
}

// cuts reports whether n outputs or inputs have a part for each rank.
func (b *Backend) cuts(n int) bool { return n%(Unit*b.group.Size()) == 0 }

// CutLen implements model.Cutter.
func (b *Backend) CutLen(out, in int) (packed, packedT int) {
	if !b.cuts(out) || !b.cuts(in) {
		return b.PackedLen(out, in)
	}
	packed, _ = b.PackedLen(out/b.group.Size(), in)
	_, packedT = b.PackedLen(out, in/b.group.Size())
	return packed, packedT
}

// cut reports whether w has only this rank's parts packed.
func (b *Backend) cut(w kernels.Matrix) bool {
	if !b.cuts(w.Out) || !b.cuts(w.In) || w.Packed.Empty() {
		return false
	}
	whole, _ := b.PackedLen(w.Out, w.In)
	return w.Packed.Len() < whole
}

// rows returns this rank's rows of w.
func (b *Backend) rows(w kernels.Matrix) kernels.Matrix {
	lo, hi := b.part(w.Out)
	x := kernels.Matrix{Out: hi - lo, In: w.In, Packed: w.Packed}
	if !w.W.Empty() {
		x.W = w.W.Slice(lo*w.In, hi*w.In)
	}
	return x
}

// columns returns this rank's columns of w, as MatMulDX reads them.
func (b *Backend) columns(w kernels.Matrix) kernels.Matrix {
	lo, hi := b.part(w.In)
	return kernels.Matrix{Out: w.Out, In: hi - lo, PackedT: w.PackedT}
}

// Pack implements kernels.Linear.
func (b *Backend) Pack(w kernels.Matrix) {
	if !b.cut(w) {
		b.Backend.Pack(w)
		return
	}
	b.Backend.Pack(b.rows(w))
	if w.PackedT.Empty() {
		return
	}
	lo, hi := b.part(w.In)
	c := b.columns(w)
	c.W = b.room("columns", w.W.DType(), c.Out*c.In)
	packed, _ := b.PackedLen(c.Out, c.In)
	c.Packed = b.room("packed columns", w.Packed.DType(), packed)
	b.TakeColumns(c.W, w.W, hi-lo, w.In, lo, 1)
	b.Backend.Pack(c)
}

// MatMul implements kernels.Linear.
func (b *Backend) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	if !b.cut(w) {
		b.Backend.MatMul(out, x, w, bias)
		return
	}
	lo, hi := b.part(w.Out)
	if !bias.Empty() {
		bias = bias.Slice(lo, hi)
	}
	part := b.room("part", out.DType(), out.Len()/b.group.Size())
	b.Backend.MatMul(part, x, b.rows(w), bias)
	b.gather(out, part, w.Out)
}

// MatMulDX implements kernels.Linear.
func (b *Backend) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	if !b.cut(w) {
		b.Backend.MatMulDX(dx, dout, w)
		return
	}
	part := b.room("part", dx.DType(), dx.Len()/b.group.Size())
	b.Backend.MatMulDX(part, dout, b.columns(w))
	b.gather(dx, part, w.In)
}

// MatMulSwiGLU implements kernels.Linear: the product, then the gate.
func (b *Backend) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	if !b.cut(w) {
		b.Backend.MatMulSwiGLU(act, gateUp, x, w)
		return
	}
	if gateUp.Empty() {
		gateUp = b.room("gate", act.DType(), int(2*act.Len()))
	}
	b.MatMul(gateUp, x, w, kernels.Buffer{})
	b.Gate(act, gateUp, w.Out/2, kernels.SiLU)
}

// MatMulDXSwiGLU implements kernels.Linear: the product, then the gate.
func (b *Backend) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	if !b.cut(w) {
		b.Backend.MatMulDXSwiGLU(dgateUp, gateUp, dout, w)
		return
	}
	dact := b.room("gate", gateUp.DType(), gateUp.Len()/2)
	b.MatMulDX(dact, dout, w)
	b.GateBackward(dgateUp, gateUp, dact, w.In, kernels.SiLU)
}

// MatMulDW implements kernels.Linear.
func (b *Backend) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	b.Sync()
	offsets := kernels.Elems[int32](blocks)
	m := int(offsets[len(offsets)-1])
	if m == 0 {
		return
	}
	out, in := dout.Len()/m, x.Len()/m
	if !b.cuts(out) {
		b.Backend.MatMulDW(dw, dbias, dout, x, blocks)
		return
	}
	lo, hi := b.part(out)
	part := b.room("part", dout.DType(), int(m*(hi-lo)))
	b.TakeColumns(part, dout, hi-lo, out, lo, 1)
	partBias := dbias
	if !dbias.Empty() {
		partBias = dbias.Slice(lo, hi)
	}
	b.Backend.MatMulDW(dw.Slice(lo*in, hi*in), partBias, part, x, blocks)
	b.complete(dw, in, b.ends(out))
	if !dbias.Empty() {
		b.complete(dbias, 1, b.ends(out))
	}
}

// LogProb implements kernels.Output.
func (b *Backend) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	rows := targets.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.LogProb(slice(out, lo, hi), h.Slice(lo*w.In, hi*w.In), w, targets.Slice(lo, hi), x)
	}
	b.completeScores(out, b.ends(rows))
}

// Sample implements kernels.Output.
func (b *Backend) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	u kernels.Buffer, p kernels.Sampling) {
	rows := ids.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.Sample(ids.Slice(lo, hi), slice(out, lo, hi), h.Slice(lo*w.In, hi*w.In), w, u.Slice(lo, hi), p)
	}
	b.complete(ids, 1, b.ends(rows))
	b.completeScores(out, b.ends(rows))
}

// slice returns rows lo to hi of scores.
func slice(s kernels.Scores, lo, hi int) kernels.Scores {
	return kernels.Scores{LogProb: s.LogProb.Slice(lo, hi), Entropy: s.Entropy.Slice(lo, hi), LSE: s.LSE.Slice(lo, hi)}
}

func (b *Backend) completeScores(s kernels.Scores, ends []int) {
	for _, x := range []kernels.Buffer{s.LogProb, s.Entropy, s.LSE} {
		b.complete(x, 1, ends)
	}
}

// ends returns where each rank's part of n ends.
func (b *Backend) ends(n int) []int {
	size := b.group.Size()
	list := make([]int, size)
	for r := range list {
		list[r] = (r + 1) * n / size
	}
	return list
}

// complete gives every rank all rows of x, of so many elements; ends cuts them by rank.
func (b *Backend) complete(x kernels.Buffer, width int, ends []int) {
	for r := range ends {
		ends[r] *= width
	}
	b.Sync()
	ranks.Must(ranks.Gather(b.group, x, ends))
}

// gather sets out [M,N] to the ranks' parts of its columns; part [M,N/ranks] is this rank's.
func (b *Backend) gather(out, part kernels.Buffer, N int) {
	if out.Empty() {
		b.Sync()
		return
	}
	size, each := b.group.Size(), part.Len()
	all := b.room("parts", part.DType(), int(size*each))
	var list []ranks.Part
	for r := range size {
		if r == b.group.Rank() {
			continue
		}
		list = append(list, ranks.Part{Data: part, Peer: r, Send: true},
			ranks.Part{Data: all.Slice(r*each, (r+1)*each), Peer: r})
	}
	b.Sync()
	ranks.Must(b.group.Exchange(list))
	bytes := part.DType().Size()
	width, stride := int(N/size*bytes), int(N*bytes)
	to := bytesOf(out)
	for r := range size {
		from := bytesOf(part)
		if r != b.group.Rank() {
			from = bytesOf(all.Slice(r*each, (r+1)*each))
		}
		for m := 0; m < len(to)/stride; m++ {
			copy(to[m*stride+r*width:][:width], from[m*width:][:width])
		}
	}
}

// bytesOf returns the memory of a buffer of the CPU.
func bytesOf(x kernels.Buffer) []byte {
	return unsafe.Slice((*byte)(x.Addr()), int(x.Len()*x.DType().Size()))
}

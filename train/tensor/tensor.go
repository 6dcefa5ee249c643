// Package tensor shares the products of a model's layers among ranks (tensor parallelism), by
// gathers alone: a rank computes whole chains for a part of each product's outputs, and the
// ranks exchange their parts. No rank computes part of a sum, so any number of ranks
// gives the bits of one (kernels.Linear defines each element).
//
//	product           a rank computes             from
//	out = x·Wᵀ        its part of the outputs     rows of W
//	dx = dout·W       its part of the inputs      columns of W
//	dW = doutᵀ·x      its rows of W               its part of the outputs
//	log-probs, draws  its part of the rows        the whole output projection
//	their dh          its part of the rows        the whole output projection
//	their dW          its tokens' rows of W       its tokens' part of the logits
//	embeddings        the rows of its tokens      its rows of W
//	paged attention   its heads                   its heads of the cache
//
// A rank holds only its rows of these weights and of their gradients (model.Span), packs only
// its rows of the layers' weights, and keeps its rows of the layers' inputs where the backward pass
// recomputes the rest. It packs its columns too where the device multiplies dx from such a copy, as
// a CPU does; elsewhere the ranks exchange a weight's columns for each product of dx. The copy of the
// output projection, all other parameters and the activations of a layer are whole on each rank,
// which computes norms and training's attention like the others. All ranks must call the same
// operations in the same order.
package tensor

import (
	"fmt"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
)

// Check returns an error if the layers of c cannot be cut into n parts, which a key asks for.
func Check(key string, c model.Config, n int) error {
	if n == 1 {
		return nil
	}
	if c.Global.Head > 0 {
		return fmt.Errorf("%s is %d, but heads of two sizes, as Gemma 4's, cannot be shared among ranks: set it to 1",
			key, n)
	}
	for _, x := range []struct {
		what string
		size int
	}{
		{"width", c.Width}, {"queries, keys and values", c.Projected()}, {"heads' width", c.Heads * c.Head},
		{"feed-forward width", c.FFN},
	} {
		if x.size%(model.CutUnit*n) != 0 {
			return fmt.Errorf("%s is %d, but the model's %s of %d is not a multiple of %d", key, n, x.what, x.size,
				model.CutUnit*n)
		}
	}
	if c.Vocab < n {
		return fmt.Errorf("%s is %d, but the vocabulary has only %d tokens", key, n, c.Vocab)
	}
	return nil
}

// Backend is a rank's share of a device: it computes the products of cut matrices with the
// other ranks of its group.
type Backend struct {
	kernels.Backend
	group ranks.Group
	rooms map[use]kernels.Buffer
	lists map[string][4]int // what the lists of rows on the device are for
	vocab int               // tokens of the last cut embedding
}

// use is the purpose of a room.
type use struct {
	what string
	t    kernels.DType
}

// New shares be with the ranks of g. Close it before be.
func New(be kernels.Backend, g ranks.Group) *Backend {
	return &Backend{Backend: be, group: g, rooms: map[use]kernels.Buffer{}, lists: map[string][4]int{}}
}

// Products returns the ranks that share b's products, and so must take the same steps.
func (b *Backend) Products() ranks.Group { return b.group }

// Whole returns the device, for models that this rank computes alone.
func (b *Backend) Whole() kernels.Backend { return b.Backend }

// Uncut returns b for weights that every rank holds whole: they have no parts.
func (b *Backend) Uncut() kernels.Backend { return uncut{b, b} }

// uncut hides model.Cutter.
type uncut struct {
	kernels.Backend
	kernels.SparseMemory
}

// EmbedBackward implements kernels.Linear: the table is whole, whatever its length.
func (u uncut) EmbedBackward(dweight, dout, ids kernels.Buffer, C int, scale float64) {
	u.Backend.(*Backend).Backend.EmbedBackward(dweight, dout, ids, C, scale)
}

// Close frees the rooms for parts.
func (b *Backend) Close() {
	for _, x := range b.rooms {
		b.Free(x)
	}
	clear(b.rooms)
	clear(b.lists)
}

// RowsPerRead asks the rank's backend, which reads its part of the weights and computes its part of the products.
func (b *Backend) RowsPerRead(bytes int) int {
	return kernels.RowsPerRead(b.Backend, bytes/b.group.Size())
}

// AllocSparse implements kernels.SparseMemory.
func (b *Backend) AllocSparse(t kernels.DType, n int) (kernels.Buffer, error) {
	return kernels.AllocSparse(b.Backend, t, n)
}

// AllocHost implements kernels.HostMemory.
func (b *Backend) AllocHost(t kernels.DType, n int) (kernels.Buffer, error) {
	return kernels.OnHost(b.Backend).Alloc(t, n)
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

// cuts reports whether n outputs have a part for each rank.
func (b *Backend) cuts(n int) bool { return n%(model.CutUnit*b.group.Size()) == 0 }

// Part implements model.Cutter.
func (b *Backend) Part() (rank, size int) { return b.group.Rank(), b.group.Size() }

// CutLen implements model.Cutter.
func (b *Backend) CutLen(out, in int) (packed, packedT int) {
	if !model.Cuts(out, in, b.group.Size()) {
		return b.PackedLen(out, in)
	}
	packed, _ = b.PackedLen(out/b.group.Size(), in)
	_, packedT = b.PackedLen(out, in/b.group.Size())
	return packed, packedT
}

// OutputLen implements model.Cutter. Where products read the weight itself, they read a copy of all
// its rows.
func (b *Backend) OutputLen(out, in int) (packed, packedT int) {
	if packed, packedT = b.PackedLen(out, in); packed == 0 {
		packed = int(out * in)
	}
	return packed, packedT
}

// cut reports whether this rank multiplies only from its parts of w.
func (b *Backend) cut(w kernels.Matrix) bool {
	if !model.Cuts(w.Out, w.In, b.group.Size()) {
		return false
	}
	if w.Packed.Empty() {
		return partial(w)
	}
	whole, _ := b.PackedLen(w.Out, w.In)
	return w.Packed.Len() < whole
}

// rows returns this rank's rows of w.
func (b *Backend) rows(w kernels.Matrix) kernels.Matrix {
	lo, hi := b.part(w.Out)
	return kernels.Matrix{W: w.W, Out: hi - lo, In: w.In, Packed: w.Packed}
}

// whole returns w as operations read it that need all rows.
func (b *Backend) whole(w kernels.Matrix) kernels.Matrix {
	if packed, _ := b.PackedLen(w.Out, w.In); packed == 0 && !w.Packed.Empty() {
		return kernels.Matrix{W: w.Packed, Out: w.Out, In: w.In}
	}
	return w
}

// partial reports whether this rank holds only its rows of w.
func partial(w kernels.Matrix) bool { return !w.W.Empty() && w.W.Len() < int(w.Out*w.In) }

// columns returns this rank's columns of w, as MatMulDX reads them.
func (b *Backend) columns(w kernels.Matrix) kernels.Matrix {
	if w.PackedT.Empty() {
		return b.exchanged(w)
	}
	lo, hi := b.part(w.In)
	return kernels.Matrix{Out: w.Out, In: hi - lo, PackedT: w.PackedT}
}

// exchanged returns this rank's columns of w, whose rows lie on their ranks, in a room; PackedT too,
// unless it is empty.
func (b *Backend) exchanged(w kernels.Matrix) kernels.Matrix {
	lo, hi := b.part(w.In)
	c := kernels.Matrix{Out: w.Out, In: hi - lo, PackedT: w.PackedT}
	c.W = b.room("columns", w.W.DType(), int(c.Out*c.In))
	b.exchangeColumns(c.W, w)
	if packed, _ := b.PackedLen(c.Out, c.In); packed > 0 {
		c.Packed = b.room("packed columns", w.Packed.DType(), packed)
		b.Backend.Pack(c)
	}
	return c
}

// Pack implements kernels.Linear.
func (b *Backend) Pack(w kernels.Matrix) {
	switch {
	case !b.cut(w) && partial(w):
		b.packWhole(w)
		return
	case !b.cut(w):
		b.Backend.Pack(w)
		return
	}
	b.Backend.Pack(b.rows(w))
	if !w.PackedT.Empty() {
		b.exchanged(w)
	}
}

// exchangeColumns sets columns [Out,In/ranks] to this rank's columns of w, whose rows lie on their
// ranks.
func (b *Backend) exchangeColumns(columns kernels.Buffer, w kernels.Matrix) {
	rank, size := b.Part()
	lo, hi := b.part(w.Out)
	width, block := w.In/size, int((hi-lo)*w.In)/size
	from := b.room("rows by columns", w.W.DType(), w.W.Len())
	var list []ranks.Part
	for r := range size {
		x := from.Slice(r*block, (r+1)*block)
		b.TakeColumns(x, w.W, width, w.In, int(r*width), 1)
		to := columns.Slice(r*block, (r+1)*block) // rows of rank r
		if r == rank {
			b.Copy(to, x)
			continue
		}
		list = append(list, ranks.Part{Data: x, Peer: r, Send: true}, ranks.Part{Data: to, Peer: r})
	}
	b.Sync()
	ranks.Must(b.group.Exchange(list))
}

// packWhole packs or copies all of w, whose rows lie on their ranks: some rows at a time where only
// MatMul needs it.
func (b *Backend) packWhole(w kernels.Matrix) {
	step := w.Out
	if w.PackedT.Empty() {
		step = max(1, packElements/w.In/kernels.PackAlign) * kernels.PackAlign
	}
	room, err := b.Alloc(w.W.DType(), int(min(step, w.Out)*w.In))
	if err != nil {
		panic(&kernels.RoomError{Part: kernels.ScratchRoom, Err: err})
	}
	defer b.Free(room)
	all := b.ends(w.Out)
	first, _ := b.part(w.Out)
	for lo := 0; lo < w.Out; lo += step {
		hi := min(lo+step, w.Out)
		x, ends := room.Slice(0, int((hi-lo)*w.In)), make([]int, len(all))
		for r, end := range all {
			ends[r] = min(max(end, lo), hi) - lo
		}
		if from, to := max(lo, first), min(hi, all[b.group.Rank()]); from < to {
			b.Copy(x.Slice(int((from-lo)*w.In), int((to-lo)*w.In)),
				w.W.Slice(int((from-first)*w.In), int((to-first)*w.In)))
		}
		b.complete(x, w.In, ends)
		if w.PackedT.Empty() {
			b.PackRows(b.whole(w), lo, x)
		} else {
			b.Backend.Pack(kernels.Matrix{W: x, Out: w.Out, In: w.In, Packed: w.Packed, PackedT: w.PackedT})
		}
		b.Sync()
	}
}

// packElements is the number of elements of a weight that are gathered and packed at a time.
const packElements = 1 << 22

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
	b.Backend.MatMul(b.own(out), x, b.rows(w), bias)
	b.gather(out, w.Out)
}

// MatMulDX implements kernels.Linear.
func (b *Backend) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	if !b.cut(w) {
		b.Backend.MatMulDX(dx, dout, w)
		return
	}
	if !dx.Empty() {
		b.Backend.MatMulDX(b.own(dx), dout, b.columns(w))
		b.gather(dx, w.In)
	}
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
	m := int(b.download(blocks.Slice(blocks.Len()-1, blocks.Len()))[0])
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
	if dw.Len() < int(out*in) { // this rank's rows
		b.Backend.MatMulDW(dw, partBias, part, x, blocks)
	} else {
		b.Backend.MatMulDW(dw.Slice(lo*in, hi*in), partBias, part, x, blocks)
		b.complete(dw, in, b.ends(out))
	}
	if !dbias.Empty() {
		b.complete(dbias, 1, b.ends(out))
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

// Complete implements model.Cutter.
func (b *Backend) Complete(x kernels.Buffer, width int) { b.complete(x, width, b.ends(x.Len()/width)) }

// complete gives every rank all rows of x, of so many elements; ends cuts them by rank.
func (b *Backend) complete(x kernels.Buffer, width int, ends []int) {
	wide := make([]int, len(ends))
	for r, end := range ends {
		wide[r] = end * width
	}
	b.Sync()
	ranks.Must(ranks.Gather(b.group, x, wide))
}

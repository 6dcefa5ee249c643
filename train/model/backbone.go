package model

import (
	"exp/kernels"
)

// Backbone holds weights that never change: the backbone and, with LM, the output
// projection, of one or several models. It stores matrices once, in the layout that the
// backend multiplies from, in F32 or in BF16: with BF16 weights every result has the bits
// of the float32 model with the same values. It is used by one goroutine at a time, and
// must be closed after the models on it.
type Backbone struct {
	Config Config
	LM     bool          // has an output projection
	DType  kernels.DType // of the matrices and the embedding

	be        kernels.Backend
	rank      int // of those that share products: each holds its rows of the layers and the embedding
	size      int
	tensors   []Tensor
	vectors   arena            // norms and biases, floats
	tower     arena            // of a copy (NewCopy), floats
	images    []LearningImages // of the models on a copy
	embed     kernels.Matrix
	table     kernels.Matrix            // of the tokens' embeddings for all layers
	positions kernels.Matrix            // learned
	matrices  map[string]kernels.Matrix // by the name of the first tensor
	owned     []kernels.Buffer
}

// NewBackbone allocates a base with all weights zero. dtype is kernels.F32 or kernels.BF16.
// It returns an error if the device has no room or the configuration is impossible.
func NewBackbone(be kernels.Backend, c Config, lm bool, dtype kernels.DType) (*Backbone, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if dtype != kernels.F32 && dtype != kernels.BF16 {
		panic("model: a base is f32 or bf16")
	}
	b := &Backbone{Config: c, LM: lm, DType: dtype, be: be, matrices: map[string]kernels.Matrix{}}
	b.rank, b.size = partOn(be)
	b.tensors, _ = Layout(c.WithoutTower(), Heads{LM: lm})
	if err := b.allocate(); err != nil {
		return nil, err
	}
	return b, nil
}

// stored returns the type of weights that the backend does not pack.
func (b *Backbone) stored() kernels.DType {
	if b.DType == kernels.F32 {
		return b.be.Float()
	}
	return b.DType
}

// allocate makes room for everything. On an error it frees what it allocated.
func (b *Backbone) allocate() error {
	c := b.Config
	x, end := &layout{}, -1
	for _, t := range b.tensors {
		if !t.vector() {
			continue
		}
		if t.off != end { // else it continues the tensor before
			x.group()
		}
		x.add(t.Name, t.Shape...)
		end = t.off + t.Len()
	}
	x.group()
	var r rooms
	var vectors kernels.Buffer
	r.add(&vectors, b.be.Float(), x.n)
	named, embed := map[string]*kernels.Matrix{}, &kernels.Matrix{Out: c.Vocab, In: c.Width}
	for _, s := range c.allLinears() {
		first, _ := s.weights()
		rows := s.out()
		if Cuts(s.out(), s.in, b.size) {
			lo, hi := partOf(rows, b.rank, b.size)
			rows = hi - lo
		}
		named[first] = b.matrix(&r, rows, s.in)
		named[first].Out = s.out()
	}
	tied := b.LM && c.TieEmbeddings
	if tied {
		embed = b.matrix(&r, c.Vocab, c.Width)
	} else if b.LM {
		named[outputName] = b.matrix(&r, c.Vocab, c.OutputWidth())
	}
	if n, t := b.packed(c.Vocab, c.Width); !tied || n > 0 && t != b.DType { // packed ones are rounded or absent
		lo, hi := partOf(c.Vocab, b.rank, b.size)
		r.add(&embed.W, b.stored(), int((hi-lo)*c.Width))
	}
	if c.PerLayer > 0 {
		b.table = kernels.Matrix{Out: c.Vocab, In: c.layersWidth()}
		r.add(&b.table.W, b.stored(), int(c.Vocab*c.layersWidth()))
	}
	if c.Learned {
		b.positions = kernels.Matrix{Out: c.MaxPositions, In: c.Width}
		r.add(&b.positions.W, b.stored(), int(c.MaxPositions*c.Width))
	}
	var err error
	if b.owned, err = r.take(b.be); err != nil {
		return err
	}
	b.vectors, b.embed = newArena(vectors, x.tensors, []Span{{Hi: x.n, Whole: true}}), *embed
	for name, w := range named {
		b.matrices[name] = *w
	}
	return nil
}

// packed returns the length and the type of a packed matrix; the length is 0 where the
// backend does not pack.
func (b *Backbone) packed(out, in int) (n int, t kernels.DType) {
	n, _ = b.be.PackedLen(out, in)
	if t = b.be.Operand(); t == kernels.F32 {
		t = b.DType
	}
	return n, t
}

// matrix requests room for a matrix in the layout that the backend multiplies from.
func (b *Backbone) matrix(r *rooms, out, in int) *kernels.Matrix {
	w := &kernels.Matrix{Out: out, In: in}
	if n, t := b.packed(out, in); n > 0 {
		r.add(&w.Packed, t, n)
	} else {
		r.add(&w.W, b.stored(), out*in)
	}
	return w
}

// rooms are buffers allocated together, one allocation for each type: many single ones
// would waste the ends of large pages.
type rooms []room

type room struct {
	into *kernels.Buffer
	t    kernels.DType
	n    int
}

func (r *rooms) add(into *kernels.Buffer, t kernels.DType, n int) { *r = append(*r, room{into, t, n}) }

// take allocates everything and returns the buffers to free; on an error it frees them
// itself.
func (r rooms) take(be kernels.Backend) (owned []kernels.Buffer, err error) {
	const align = 128 // elements, so that none share a cache line
	aligned := func(n int) int { return (n + align - 1) / align * align }
	lengths := map[kernels.DType]int{}
	for _, x := range r {
		lengths[x.t] += aligned(x.n)
	}
	left := map[kernels.DType]kernels.Buffer{}
	for t, n := range lengths {
		all, err := be.Alloc(t, n)
		if err != nil {
			for _, x := range owned {
				be.Free(x)
			}
			return nil, &kernels.RoomError{Part: kernels.WeightRoom, Err: err}
		}
		owned, left[t] = append(owned, all), all
	}
	for _, x := range r {
		all := left[x.t]
		*x.into, left[x.t] = all.Slice(0, x.n), all.Slice(aligned(x.n), all.Len())
	}
	return owned, nil
}

// allLinears returns the linear maps but the output projection.
func (c Config) allLinears() (list []linearSpec) {
	list = c.modelLinears()
	for l := range c.Layers {
		s := c.linears(l)
		if c.mixes(l) {
			list = append(append(append(list, s.qkv), s.inner...), s.o)
		}
		if c.feeds(l) && c.sparse(l) {
			list = append(append(list, s.router), s.experts...)
		}
		if c.dense(l) {
			list = append(list, s.gateUp, s.down)
		}
	}
	return list
}

// Tensors returns the tensors that Load asks for.
func (b *Backbone) Tensors() []Tensor { return b.tensors }

// Piece is rows [From, From+N) of a tensor. A vector is one row.
type Piece struct {
	Name    string
	From, N int
}

// Rows returns a piece in host memory: BF16 for a matrix of a BF16 base, else F32. The
// slice must stay valid until the next call.
type Rows func(p Piece) (kernels.Buffer, error)

// Pieces returns the pieces that Load asks for, in order.
func (b *Backbone) Pieces() (list []Piece) {
	for _, f := range b.fills() {
		list = append(list, f.pieces...)
	}
	return list
}

// Fill is a step that sets weights from elements Lo to Hi of a model's arena (Layout).
type Fill struct {
	Lo, Hi int
	set    func(x kernels.Buffer)
}

// Set sets the weights to x [Hi-Lo], floats on the host or the device.
func (f Fill) Set(x kernels.Buffer) { f.set(x) }

// Fills returns the steps that set all weights of this rank from a model's arena, instead of Load.
func (b *Backbone) Fills() (list []Fill) {
	tensors := b.byName()
	for _, f := range b.fills() { // its pieces follow one another in the arena
		first, last := f.pieces[0], f.pieces[len(f.pieces)-1]
		lo, hi := tensors[first.Name].row(first.From), tensors[last.Name].row(last.From+last.N)
		list = append(list, Fill{lo, hi, f.set})
	}
	return append(list, b.towerFills()...)
}

func (b *Backbone) byName() map[string]Tensor {
	tensors := make(map[string]Tensor, len(b.tensors))
	for _, t := range b.tensors {
		tensors[t.Name] = t
	}
	return tensors
}

// row returns the place in the arena where row i begins. A vector is one row.
func (t Tensor) row(i int) int {
	if t.vector() {
		return t.off + int(i*t.Len())
	}
	return t.off + int(i*t.Shape[1])
}

// Load sets all weights. It returns the error of rows.
func (b *Backbone) Load(rows Rows) error {
	fills := b.fills()
	stage := b.hostRoom(fills)
	for _, f := range fills {
		stage.reset()
		for _, p := range f.pieces {
			x, err := rows(p)
			if err != nil {
				return err
			}
			if len(f.pieces) > 1 {
				stage.add(x)
				continue
			}
			f.set(x)
			b.be.Sync()
		}
		if len(f.pieces) > 1 {
			f.set(stage.buffer())
			b.be.Sync()
		}
	}
	return nil
}

// fill is a unit of loading: pieces one after another.
type fill struct {
	pieces []Piece
	set    func(x kernels.Buffer)
}

// fills returns the steps that set all weights, in the order of Tensors.
func (b *Backbone) fills() []fill {
	c := b.Config
	linears := map[string]linearSpec{outputName: {[]string{"lm_head"}, []int{c.Vocab}, c.OutputWidth()}}
	for _, s := range c.allLinears() {
		first, _ := s.weights()
		linears[first] = s
	}
	list := b.embeddingFills()
	for _, t := range b.tensors {
		if t.Name == layerTable {
			list = append(list, b.tableFills()...)
		} else if t.Name == positionTable {
			list = append(list, b.positionFills()...)
		} else if t.vector() {
			list = append(list, fill{[]Piece{{t.Name, 0, 1}},
				func(x kernels.Buffer) { b.be.Copy(b.vectors.view(t.Name), x) }})
		} else if s, ok := linears[t.Name]; ok { // else it is set with the first tensor of its map
			list = append(list, b.matrixFills(b.matrices[t.Name], s)...)
		}
	}
	return list
}

func (b *Backbone) embeddingFills() (list []fill) {
	c := b.Config
	if !b.embed.Packed.Empty() {
		list = b.matrixFills(b.embed, linearSpec{[]string{"model.embed_tokens"}, []int{c.Vocab}, c.Width})
	}
	if b.embed.W.Empty() {
		return list
	}
	step := rowsAtATime(c.Width)
	first, last := 0, c.Vocab
	if b.embed.W.Len() < int(c.Vocab*c.Width) {
		first, last = partOf(c.Vocab, b.rank, b.size)
	}
	for lo := first; lo < last; lo += step {
		n := min(step, last-lo)
		at := lo - first
		list = append(list, fill{[]Piece{{embedName, lo, n}},
			func(x kernels.Buffer) { b.be.Copy(b.embed.W.Slice(int(at*c.Width), int((at+n)*c.Width)), x) }})
	}
	return list
}

// tableFills returns the steps that set the embeddings for all layers.
func (b *Backbone) tableFills() (list []fill) { return b.lookupFills(layerTable, b.table) }

// positionFills returns the steps that set the learned positions.
func (b *Backbone) positionFills() (list []fill) { return b.lookupFills(positionTable, b.positions) }

// lookupFills returns the steps that set a table whose rows are looked up.
func (b *Backbone) lookupFills(name string, w kernels.Matrix) (list []fill) {
	step := rowsAtATime(w.In)
	for lo := 0; lo < w.Out; lo += step {
		n := min(step, w.Out-lo)
		list = append(list, fill{[]Piece{{name, lo, n}},
			func(x kernels.Buffer) { b.be.Copy(w.W.Slice(int(lo*w.In), int((lo+n)*w.In)), x) }})
	}
	return list
}

// fillElems is the elements that are packed together, 2 MiB of BF16.
const fillElems = 1 << 20

// rowsAtATime returns how many rows of a width are packed together: about fillElems, in
// whole steps of PackRows.
func rowsAtATime(in int) int {
	return max(1, fillElems/in/kernels.PackAlign) * kernels.PackAlign
}

// matrixFills packs a linear map, or this rank's rows of it, a few rows at a time. It first joins
// rows from two tensors on the host.
func (b *Backbone) matrixFills(w kernels.Matrix, s linearSpec) (list []fill) {
	begin, end := 0, w.Out
	whole, _ := b.packed(w.Out, w.In)
	if whole == 0 {
		whole = int(w.Out * w.In)
	}
	if w.Packed.Len()+w.W.Len() < whole {
		begin, end = partOf(w.Out, b.rank, b.size)
		w.Out = end - begin
	}
	step, tensor, first := rowsAtATime(s.in), 0, 0 // first: start of the tensor
	for lo := begin; lo < end; lo += step {
		f := fill{set: func(x kernels.Buffer) { b.be.PackRows(w, lo-begin, x) }}
		hi := min(lo+step, end)
		for at := lo; at < hi; {
			for at >= first+s.rows[tensor] {
				first += s.rows[tensor]
				tensor++
			}
			n := min(hi, first+s.rows[tensor]) - at
			f.pieces = append(f.pieces, Piece{s.names[tensor] + ".weight", at - first, n})
			at += n
		}
		list = append(list, f)
	}
	return list
}

// hostRoom returns room for the largest fill of several pieces.
func (b *Backbone) hostRoom(fills []fill) *hostRows {
	tensors := b.byName()
	most := 0
	for _, f := range fills {
		n := 0
		for _, p := range f.pieces {
			n += tensors[p.Name].row(p.From+p.N) - tensors[p.Name].row(p.From)
		}
		if len(f.pieces) > 1 {
			most = max(most, n)
		}
	}
	if b.DType == kernels.BF16 {
		return &hostRows{t: kernels.BF16, half: make([]uint16, 0, most)}
	}
	return &hostRows{t: b.DType, wide: make([]float32, 0, most)}
}

// hostRows gathers rows on the host.
type hostRows struct {
	t    kernels.DType
	wide []float32
	half []uint16
}

// reset empties r, which keeps its room.
func (r *hostRows) reset() { r.half, r.wide = r.half[:0], r.wide[:0] }

func (r *hostRows) add(x kernels.Buffer) {
	if r.t == kernels.BF16 {
		r.half = append(r.half, kernels.Bits(x)...)
		return
	}
	r.wide = append(r.wide, kernels.Elems[float32](x)...)
}

func (r *hostRows) buffer() kernels.Buffer {
	if r.t == kernels.BF16 {
		return kernels.HostBits(r.half)
	}
	return kernels.Host(r.wide)
}

// Close frees the base's memory.
func (b *Backbone) Close() {
	for _, x := range b.owned {
		b.be.Free(x)
	}
	b.owned = nil
}

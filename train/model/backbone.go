package model

import (
	"errors"
	"fmt"

	"exp/kernels"
)

// Backbone holds weights that never change: the backbone and, with LM, the output
// projection, of one or several models. Matrices lie there once, in the layout that the
// backend multiplies from, in F32 or in BF16: with BF16 weights every result has the
// bits of the float32 model with the same values. It is used by one goroutine at a time,
// and must be closed after the models on it.
type Backbone struct {
	Config Config
	LM     bool          // has an output projection
	DType  kernels.DType // of the matrices and the embedding

	be       kernels.Backend
	tensors  []Tensor
	vectors  arena // norms and biases, floats
	embed    kernels.Matrix
	matrices map[string]kernels.Matrix // by the name of the first tensor
	owned    []kernels.Buffer
}

// NewBackbone allocates a base with all weights zero. dtype is kernels.F32 or kernels.BF16.
// The error says that the device has no room or that the configuration is impossible.
func NewBackbone(be kernels.Backend, c Config, lm bool, dtype kernels.DType) (*Backbone, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if dtype != kernels.F32 && dtype != kernels.BF16 {
		panic("model: a base is f32 or bf16")
	}
	b := &Backbone{Config: c, LM: lm, DType: dtype, be: be, matrices: map[string]kernels.Matrix{}}
	b.tensors, _ = Layout(c, Heads{LM: lm})
	var errs []error
	b.allocate(func(t kernels.DType, n int) kernels.Buffer {
		x, err := be.Alloc(t, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("model: %w", err))
			return kernels.Buffer{}
		}
		b.owned = append(b.owned, x)
		return x
	})
	if len(errs) > 0 {
		b.Close()
		return nil, errors.Join(errs...)
	}
	return b, nil
}

// stored returns the type in which weights are kept unless the backend packs them.
func (b *Backbone) stored() kernels.DType {
	if b.DType == kernels.F32 {
		return b.be.Float()
	}
	return b.DType
}

func (b *Backbone) allocate(alloc func(t kernels.DType, n int) kernels.Buffer) {
	c := b.Config
	x, end := &layout{}, -1
	for _, t := range b.tensors {
		if len(t.Shape) != 1 {
			continue
		}
		if t.off != end { // else it is used together with the one before
			x.group()
		}
		x.add(t.Name, t.Shape...)
		end = t.off + t.Len()
	}
	x.group()
	b.vectors = newArena(alloc(b.be.Float(), x.n), x.tensors)
	for _, s := range c.allLinears() {
		first, _ := s.weights()
		b.matrices[first] = b.matrix(alloc, s.out(), s.in)
	}
	tied := b.LM && c.TieEmbeddings
	if tied {
		b.embed = b.matrix(alloc, c.Vocab, c.Width)
	} else if b.LM {
		b.matrices[outputName] = b.matrix(alloc, c.Vocab, c.Width)
	}
	b.embed.Out, b.embed.In = c.Vocab, c.Width
	if b.embed.W.Empty() && (!tied || b.embed.Packed.DType() != b.DType) { // packed ones are rounded, or not there
		b.embed.W = alloc(b.stored(), c.Vocab*c.Width)
	}
}

// matrix allocates a matrix as the backend multiplies from it.
func (b *Backbone) matrix(alloc func(t kernels.DType, n int) kernels.Buffer, out, in int) kernels.Matrix {
	w := kernels.Matrix{Out: out, In: in}
	packed, _ := b.be.PackedLen(out, in)
	if packed == 0 {
		w.W = alloc(b.stored(), out*in)
		return w
	}
	t := b.be.Operand()
	if t == kernels.F32 {
		t = b.DType
	}
	w.Packed = alloc(t, packed)
	return w
}

// allLinears returns the linear maps of all layers.
func (c Config) allLinears() (list []linearSpec) {
	for l := range c.Layers {
		s := c.linears(l)
		list = append(list, s.qkv, s.o)
		if c.sparse(l) {
			list = append(append(list, s.router), s.experts...)
		} else {
			list = append(list, s.gateUp, s.down)
		}
	}
	return list
}

// Tensors returns what Load asks for.
func (b *Backbone) Tensors() []Tensor { return b.tensors }

// Rows returns rows [from, from+n) of a tensor in host memory: BF16 of a BF16 base, else
// F32. A vector has one row. They must stay until the next call.
type Rows func(name string, from, n int) (kernels.Buffer, error)

// Load sets all weights. The error is that of rows.
func (b *Backbone) Load(rows Rows) error {
	for _, t := range b.tensors {
		if len(t.Shape) != 1 {
			continue
		}
		x, err := rows(t.Name, 0, 1)
		if err != nil {
			return err
		}
		b.be.Copy(b.vectors.view(t.Name), x)
		b.be.Sync()
	}
	if err := b.loadEmbedding(rows); err != nil {
		return err
	}
	for _, s := range b.Config.allLinears() {
		first, _ := s.weights()
		if err := b.loadMatrix(b.matrices[first], s, rows); err != nil {
			return err
		}
	}
	if w, ok := b.matrices[outputName]; ok {
		return b.loadMatrix(w, linearSpec{[]string{"lm_head"}, []int{b.Config.Vocab}, b.Config.Width}, rows)
	}
	return nil
}

func (b *Backbone) loadEmbedding(rows Rows) error {
	c := b.Config
	if !b.embed.Packed.Empty() {
		err := b.loadMatrix(b.embed, linearSpec{[]string{"model.embed_tokens"}, []int{c.Vocab}, c.Width}, rows)
		if err != nil || b.embed.W.Empty() {
			return err
		}
	}
	step := rowsAtATime(c.Width)
	for lo := 0; lo < c.Vocab; lo += step {
		n := min(step, c.Vocab-lo)
		x, err := rows(embedName, lo, n)
		if err != nil {
			return err
		}
		b.be.Copy(b.embed.W.Slice(lo*c.Width, (lo+n)*c.Width), x)
		b.be.Sync()
	}
	return nil
}

// rowsAtATime is how many rows of a width are packed together: about 8 MiB of floats,
// in whole steps of PackRows.
func rowsAtATime(in int) int {
	return max(1, (2<<20)/in/kernels.PackAlign) * kernels.PackAlign
}

// loadMatrix packs a linear map a few rows at a time. Rows that come from two tensors
// are put together on the host first.
func (b *Backbone) loadMatrix(w kernels.Matrix, s linearSpec, rows Rows) error {
	step, tensor, first := rowsAtATime(s.in), 0, 0 // first: where the tensor begins
	var stage hostRows
	for lo := 0; lo < w.Out; lo += step {
		hi := min(lo+step, w.Out)
		stage.reset(b.DType)
		for at := lo; at < hi; {
			for at >= first+s.rows[tensor] {
				first += s.rows[tensor]
				tensor++
			}
			n := min(hi, first+s.rows[tensor]) - at
			x, err := rows(s.names[tensor]+".weight", at-first, n)
			if err != nil {
				return err
			}
			if n == hi-lo {
				b.be.PackRows(w, lo, x)
				b.be.Sync()
			} else {
				stage.add(x)
			}
			at += n
		}
		if stage.len() > 0 {
			b.be.PackRows(w, lo, stage.buffer())
			b.be.Sync()
		}
	}
	return nil
}

// hostRows gathers rows on the host.
type hostRows struct {
	t    kernels.DType
	wide []float32
	half []uint16
}

func (r *hostRows) reset(t kernels.DType) { r.t, r.wide, r.half = t, r.wide[:0], r.half[:0] }

func (r *hostRows) len() int { return len(r.wide) + len(r.half) }

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

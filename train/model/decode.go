package model

import (
	"errors"
	"fmt"

	"exp/kernels"
)

// Cache holds the keys and values of many sequences in pages, all layers.
type Cache struct {
	be     kernels.Backend
	layers []kernels.Pages
	pages  int
	size   int
	owned  []kernels.Buffer
}

// NewCache allocates pages of size positions, for models of configuration c.
func NewCache(be kernels.Backend, c Config, pages, size int) (*Cache, error) {
	x := &Cache{be: be, pages: pages, size: size}
	for range c.Layers {
		var p kernels.Pages
		p.Size = size
		for _, b := range []*kernels.Buffer{&p.Keys, &p.Values} {
			buf, err := be.Alloc(be.Operand(), pages*size*c.KVHeads*c.Head)
			if err != nil {
				x.Close()
				return nil, fmt.Errorf("kv cache: %w", err)
			}
			*b = buf
			x.owned = append(x.owned, buf)
		}
		x.layers = append(x.layers, p)
	}
	return x, nil
}

// Pages returns the number of pages.
func (x *Cache) Pages() int { return x.pages }

// Close frees the cache's memory.
func (x *Cache) Close() {
	for _, b := range x.owned {
		x.be.Free(b)
	}
	x.owned = nil
}

// Step is one forward pass over rows whose keys and values go to a cache: prompt
// tokens (prefill) and freshly sampled ones (decode) alike, in any mix. A row
// sees what its sequence has in the cache up to its own position, so the rows of a
// sequence must be complete up to there, in this step or earlier ones.
type Step struct {
	Tokens []int32   // [M]
	Pos    []int32   // [M] position in the sequence
	Seq    []int32   // [M] row of Table
	Slots  []int32   // [M] page·size + position in the page, where the row's key goes
	Table  []int32   // [sequences, Width] pages of each sequence, in order
	Width  int       // pages a sequence can have
	Sample []int32   // [Q] rows after which a token is to be drawn
	U      []float32 // [Q] uniform numbers in [0,1) that decide the draws
}

// Decoder holds the activations of one Step.
type Decoder struct {
	be    kernels.Backend
	c     Config
	owned []kernels.Buffer

	x, n1, att, o, n2, delta, rstd kernels.Buffer
	qkv, raw, qRstd, act           kernels.Buffer
	h, u                           kernels.Buffer
	scores                         kernels.Scores
	tokens, pos, seq, slots        kernels.Buffer
	table, sample, ids             kernels.Buffer
	pairs                          kernels.Buffer
}

// NewDecoder allocates room for steps of at most rows rows and page tables of at
// most table entries.
func NewDecoder(be kernels.Backend, c Config, rows, table int) (*Decoder, error) {
	d := &Decoder{be: be, c: c}
	var errs []error
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, err := be.Alloc(t, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("decoder: %w", err))
			return kernels.Buffer{}
		}
		d.owned = append(d.owned, b)
		return b
	}
	d.alloc(rows, table, func(n int) kernels.Buffer { return alloc(be.Float(), n) },
		func(n int) kernels.Buffer { return alloc(be.Operand(), n) },
		func(n int) kernels.Buffer { return alloc(kernels.I32, n) })
	if len(errs) > 0 {
		d.Close()
		return nil, errors.Join(errs...)
	}
	return d, nil
}

// alloc makes the buffers: f those of floats, o those of operands, i those of indices.
func (d *Decoder) alloc(rows, table int, f, o, i func(n int) kernels.Buffer) {
	c := d.c
	C, HD := c.Width, c.Heads*c.Head
	d.x, d.n1, d.o, d.n2, d.delta, d.h = f(rows*C), o(rows*C), f(rows*C), o(rows*C), f(rows*C), o(rows*C)
	d.att, d.rstd, d.qkv = o(rows*HD), f(rows), o(rows*c.QKV())
	d.act = o(rows * c.FFN)
	if c.QKNorm {
		d.raw, d.qRstd = o(rows*c.QKV()), f(rows*c.Heads)
	}
	d.u = f(rows)
	d.scores = kernels.Scores{LogProb: f(rows), Entropy: f(rows), LSE: f(rows)}
	d.tokens, d.pos, d.seq, d.slots, d.sample, d.ids = i(rows), i(rows), i(rows), i(rows), i(rows), i(rows)
	d.table, d.pairs = i(table), i(2*rows)
}

// Close frees the decoder's memory.
func (d *Decoder) Close() {
	for _, b := range d.owned {
		d.be.Free(b)
	}
	d.owned = nil
}

// Drawn are the tokens that a Step drew, [Q] each, on the host.
type Drawn struct {
	IDs              []int32
	LogProb, Entropy []float32
}

// Step runs one step and draws a token after each of its Sample rows. The slices
// of out must have length Q.
func (m *Model) Step(d *Decoder, x *Cache, st Step, p kernels.Sampling, out Drawn) {
	be, c := m.be, m.Config
	n, C := len(st.Tokens), c.Width
	load := func(dst kernels.Buffer, src []int32) kernels.Buffer {
		v := dst.Slice(0, len(src))
		be.Copy(v, kernels.Host(src))
		return v
	}
	// All that the step reads is there before its first operation: one that waits for others
	// would have to run before a copy.
	pos, seq, slots, table := load(d.pos, st.Pos), load(d.seq, st.Seq), load(d.slots, st.Slots), load(d.table, st.Table)
	tokens, sample, u := load(d.tokens, st.Tokens), load(d.sample, st.Sample), d.u.Slice(0, len(st.U))
	be.Copy(u, kernels.Host(st.U))
	xs, n1, delta := d.x.Slice(0, n*C), d.n1.Slice(0, n*C), d.delta.Slice(0, n*C)
	rstd := d.rstd.Slice(0, n)
	be.Embed(xs, m.embed, tokens, 1)
	for l := range m.layers {
		y := &m.layers[l]
		if l == 0 {
			be.RMSNorm(n1, rstd, xs, y.norm1, plain(C), c.NormEps)
		} else {
			be.AddRMSNorm(xs, n1, rstd, xs, delta, y.norm1, plain(C), c.NormEps)
		}
		m.stepBlock(d, y, x.layers[l], n, pos, seq, slots, table, st.Width)
		be.MatMul(delta, d.act.Slice(0, n*c.FFN), y.down, kernels.Buffer{})
	}
	q := len(st.Sample)
	if q == 0 {
		be.Sync()
		return
	}
	be.AddRMSNorm(xs, n1, rstd, xs, delta, m.norm, plain(C), c.NormEps)
	h, ids := d.h.Slice(0, q*C), d.ids.Slice(0, q)
	be.GatherRows(h, n1, sample, C)
	sc := kernels.Scores{LogProb: d.scores.LogProb.Slice(0, q), Entropy: d.scores.Entropy.Slice(0, q), LSE: d.scores.LSE.Slice(0, q)}
	be.Sample(ids, sc, h, m.output, u, p)
	be.Copy(kernels.Host(out.IDs), ids)
	be.Copy(kernels.Host(out.LogProb), sc.LogProb)
	be.Copy(kernels.Host(out.Entropy), sc.Entropy)
	be.Sync()
}

// stepBlock computes a layer from d.n1 up to d.act, with its residual in d.x.
func (m *Model) stepBlock(d *Decoder, y *layer, p kernels.Pages, n int, pos, seq, slots, table kernels.Buffer, width int) {
	be, c := m.be, m.Config
	C := c.Width
	qkv, att, o := d.qkv.Slice(0, n*c.QKV()), d.att.Slice(0, n*c.Heads*c.Head), d.o.Slice(0, n*C)
	be.MatMul(qkv, d.n1.Slice(0, n*C), y.qkv, y.qkvBias)
	if c.QKNorm {
		raw := d.raw.Slice(0, n*c.QKV())
		be.Copy(raw, qkv)
		be.RMSNorm(qkv, d.qRstd.Slice(0, n*c.Heads), raw, y.qNorm, c.queryHeads(), c.NormEps)
		be.RMSNorm(qkv, d.qRstd.Slice(0, n*c.KVHeads), raw, y.kNorm, c.keyHeads(), c.NormEps)
	}
	be.Rope(qkv, m.cos, m.sin, pos, c.attention(), false)
	be.AppendKV(p, qkv, slots, c.attention())
	be.PagedAttention(att, qkv, p, table, seq, pos, width, c.attention())
	be.MatMul(o, att, y.o, kernels.Buffer{})
	xs := d.x.Slice(0, n*C)
	be.AddRMSNorm(xs, d.n2.Slice(0, n*C), d.rstd.Slice(0, n), xs, o, y.norm2, plain(C), c.NormEps)
	be.MatMulSwiGLU(d.act.Slice(0, n*c.FFN), kernels.Buffer{}, d.n2.Slice(0, n*C), y.gateUp)
}

// CopyPages copies page pairs[2i] to page pairs[2i+1] in all layers.
func (m *Model) CopyPages(d *Decoder, x *Cache, pairs []int32) {
	if len(pairs) == 0 {
		return
	}
	v := d.pairs.Slice(0, len(pairs))
	m.be.Copy(v, kernels.Host(pairs))
	for _, p := range x.layers {
		m.be.CopyPages(p, v, m.Config.attention())
	}
	m.be.Sync()
}

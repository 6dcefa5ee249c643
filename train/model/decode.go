package model

import "exp/kernels"

// Cache holds the keys and values of many sequences in pages, for all layers, and in slots what layers
// with linear attention keep of a sequence.
type Cache struct {
	be     kernels.Backend
	layers []kernels.Pages // empty for layers with linear attention alone
	memory []deltaMemory   // of those layers
	pages  int
	owned  []kernels.Buffer
}

// NewCache allocates pages of size positions, for models of configuration c, and slots for the states of
// that many sequences, if the model has any. It asks for the pages of all layers at once: most are never
// touched, and only a large buffer is sparse. Ranks that share products hold the keys and values of their
// heads.
func NewCache(be kernels.Backend, c Config, pages, size, slots int) (*Cache, error) {
	_, shared := partOn(be)
	c = c.cacheOf(shared)
	x := &Cache{be: be, layers: make([]kernels.Pages, c.Layers), memory: make([]deltaMemory, c.Layers), pages: pages}
	var err error
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, e := kernels.AllocSparse(be, t, n)
		if e != nil && err == nil {
			err = &kernels.RoomError{Part: kernels.CacheRoom, Err: e}
		}
		x.owned = append(x.owned, b)
		return b
	}
	pool := alloc(be.Operand(), c.cacheElements(pages, size))
	linear := c.linearLayers()
	states, tails := slots*c.Delta.State(), slots*c.Delta.Tail()
	of := be.Operand()
	if c.Delta.Conv {
		of = be.Float()
	}
	memory := deltaMemory{alloc(of, linear*tails), alloc(be.Float(), linear*states)}
	if err != nil {
		x.Close()
		return nil, err
	}
	with, at := 0, 0
	for l := range x.layers {
		if c.shares(l) {
			continue
		}
		if c.linear(l) {
			x.memory[l] = deltaMemory{memory.tails.Slice(with*tails, (with+1)*tails),
				memory.states.Slice(with*states, (with+1)*states)}
			with++
		}
		if !c.attends(l) {
			continue
		}
		n, stride := c.layerPages(l, pages, size)
		x.layers[l] = kernels.Pages{Keys: pool.Slice(at, at+n), Values: pool.Slice(at+stride, at+stride+n), Size: size}
		at += 2 * stride
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

// Step is one forward pass over rows whose keys and values go to a cache: prompt tokens
// (prefill) and freshly sampled ones (decode), in any mix. A row sees its sequence's cache
// up to its own position, so the rows of a sequence must be complete up to there, in this
// step or earlier ones.
type Step struct {
	Tokens []int32        // [M]
	Pos    []int32        // [M] position in the sequence
	Seq    []int32        // [M] row of Table
	Slots  []int32        // [M] page·size + position in the page, where the row's key goes
	Table  []int32        // [sequences, Width] pages of each sequence, in order
	Width  int            // pages a sequence can have
	States []int32        // [sequences] slot of each sequence's state; empty without linear attention
	Sample []int32        // [Q] rows after which to draw a token
	U      []float32      // [Q] uniform numbers in [0,1) that decide the draws
	Places []Place        // [M] rotary positions, where sequences show images; empty: Pos
	Runs   []Run          // rows of Sample with parameters of their own, in order; empty: all have the call's
	Adjust [][]Adjustment // [Q] tokens whose logits change before the draw; empty: none have such
	Masks  [][]uint32     // [Q] words of kernels.Sampling.Mask; nil: all tokens may be drawn; empty: so in all draws
	Finish bool           // computes what ScoreRows reads, where nothing is drawn too
}

// Run is a number of consecutive draws with the same parameters.
type Run struct {
	Rows     int
	Sampling kernels.Sampling
}

// Adjustment changes the logit of a token before a draw, as kernels.Adjustments says.
type Adjustment struct {
	Token                 int32
	Before, Factor, After float32
}

// longest is one more than the last position.
func (st Step) longest() (n int) {
	for _, p := range st.Pos {
		n = max(n, int(p)+1)
	}
	return n
}

// Decoder holds the activations of one Step.
type Decoder struct {
	be    kernels.Backend
	c     Config
	owned []kernels.Buffer

	acts                    acts
	heads                   headNormRoom
	output                  outputRoom
	low                     LowRank
	tables                  tableActs
	images                  imageRoom
	x, o, delta             kernels.Buffer // [M,C]
	h, u                    kernels.Buffer
	last                    kernels.Buffer // [M,C] what the output layer reads of the last step
	scores                  kernels.Scores
	tokens, pos, seq, slots kernels.Buffer
	table, sample, ids      kernels.Buffer
	pairs                   kernels.Buffer
	runEnds, runSlots       indexBuffer // runs of rows of one sequence, of linear attention
	adjust                  adjustRoom
	masks                   maskRoom
}

// NewDecoder allocates room for steps of at most rows rows and page tables of at
// most table entries, for models of configuration c with heads h.
func NewDecoder(be kernels.Backend, c Config, h Heads, rows, table int) (*Decoder, error) {
	d := &Decoder{be: be, c: c}
	var err error
	alloc := func(t kernels.DType, n int) kernels.Buffer {
		b, e := be.Alloc(t, n)
		if e != nil && err == nil {
			err = &kernels.RoomError{Part: kernels.StepRoom, Err: e}
		}
		d.owned = append(d.owned, b)
		return b
	}
	d.alloc(h, rows, table, func(n int) kernels.Buffer { return alloc(be.Float(), n) },
		func(n int) kernels.Buffer { return alloc(be.Operand(), n) },
		func(n int) kernels.Buffer { return alloc(kernels.I32, n) })
	if err != nil {
		d.Close()
		return nil, err
	}
	d.output.fill(be)
	return d, nil
}

// alloc makes the buffers: f allocates floats, o operands, i indices.
func (d *Decoder) alloc(h Heads, rows, table int, f, o, i func(n int) kernels.Buffer) {
	c := d.c
	C := c.Width
	d.acts.alloc(c, c.parts(), h.Adapters, rows, false, f, o, i)
	if c.Sinks {
		d.acts.stats = f(rows * c.Heads * 2)
	}
	d.heads.alloc(c, rows, false, f)
	d.acts.heads = &d.heads
	d.output.alloc(c, rows, false, f, o)
	d.low.alloc(c, h.Adapters, rows, false, f, o)
	d.tables.alloc(c, rows, f, o)
	d.images.alloc(c, rows, f)
	d.images.allocIndex(c, rows, false, func(n int) indexBuffer { return indexBuffer{dev: i(n)} })
	d.x, d.o, d.delta, d.h = f(rows*C), f(rows*C), f(rows*C), o(rows*C)
	d.u = f(rows)
	d.scores = kernels.Scores{LogProb: f(rows), Entropy: f(rows), LSE: f(rows)}
	d.tokens, d.pos, d.seq, d.slots, d.sample, d.ids = i(rows), i(rows), i(rows), i(rows), i(rows), i(rows)
	d.table, d.pairs = i(table), i(2*rows)
	if c.hasLinear() {
		d.runEnds.dev, d.runSlots.dev = i(rows+1), i(rows)
	}
}

// Close frees the decoder's memory.
func (d *Decoder) Close() {
	d.adjust.close(d.be)
	d.masks.close(d.be)
	for _, b := range d.owned {
		d.be.Free(b)
	}
	d.owned = nil
}

// Drawn are the tokens drawn by a Step, [Q] each, on the host.
type Drawn struct {
	IDs              []int32
	LogProb, Entropy []float32
}

// paged holds the locations of a step's rows, on the device.
type paged struct {
	pos, seq, slots, table kernels.Buffer
	width                  int
	turns                  turns
	images                 *imageRoom
}

// Step runs one step and draws a token after each of its Sample rows. The slices of out
// must have length Q.
func (m *Model) Step(d *Decoder, x *Cache, st Step, p kernels.Sampling, out Drawn) {
	be, c := m.be, m.Config
	n, C := len(st.Tokens), c.Width
	m.reach(st.longest())
	m.readScalars()
	// All inputs are on the device before the first operation: an operation that waits for
	// others would have to run before a copy.
	at := m.locate(d, st)
	tokens, sample, u := d.load(d.tokens, st.Tokens), d.load(d.sample, st.Sample), d.u.Slice(0, len(st.U))
	be.Copy(u, kernels.Host(st.U))
	runs := d.runs(st)
	xs, delta := d.x.Slice(0, n*C), kernels.Buffer{}
	a := d.layerActs(0, n)
	n2 := a.n2
	m.embedTokens(&d.images, xs, tokens, d.delta.Slice(0, n*C))
	m.addPositions(xs, at.pos, d.delta.Slice(0, n*C))
	m.normEmbeddings(xs, a.rstd1)
	tables := d.tables.cut(c, n)
	m.embedLayers(tables, xs, tokens)
	for l := range m.layers {
		y := &m.layers[l]
		if l == 0 {
			m.enter(a.n1, a.rstd1, xs, y.norm1, d.delta.Slice(0, n*C))
		} else {
			if c.Global.Head > 0 {
				d.acts.mix.host, d.acts.mix.offsets = a.mix.host, a.mix.offsets
				a = d.layerActs(l, n)
			}
			m.leave(l-1, xs, a.n1, a.rstd1, xs, delta, y.norm1)
		}
		if y.mixes {
			a.n2 = n2
			m.mixStep(y, &a, &d.low, x, l, at, runs)
			delta = d.o.Slice(0, n*C)
			m.join(y, &a, &d.low, xs, delta, d.delta.Slice(0, n*C))
		} else {
			a.n2 = a.n1
		}
		if y.feeds {
			delta = m.feedForward(y, &a, &d.low, d.delta.Slice(0, n*C))
			m.readLayer(y, &a, &d.low, tables.rows, delta)
			m.deepen(&d.images, l, delta, d.o.Slice(0, n*C))
		}
	}
	d.acts.mix.host, d.acts.mix.offsets = a.mix.host, a.mix.offsets // keep the memory for the next step
	q := len(st.Sample)
	if q > 0 || st.Finish {
		m.finish(xs, a.n1, a.rstd1, xs, delta)
		d.last = a.n1
	}
	if q == 0 {
		be.Sync()
		return
	}
	h, ids := d.h.Slice(0, q*C), d.ids.Slice(0, q)
	be.GatherRows(h, a.n1, sample, C)
	h = m.outputRows(h, d.output)
	sc := kernels.Scores{LogProb: d.scores.LogProb.Slice(0, q), Entropy: d.scores.Entropy.Slice(0, q),
		LSE: d.scores.LSE.Slice(0, q)}
	m.draw(d, ids, sc, h, u, st, p)
	be.Copy(kernels.Host(out.IDs), ids)
	be.Copy(kernels.Host(out.LogProb), sc.LogProb)
	be.Copy(kernels.Host(out.Entropy), sc.Entropy)
	be.Sync()
}

// load copies src to the beginning of dst, and returns it.
func (d *Decoder) load(dst kernels.Buffer, src []int32) kernels.Buffer {
	v := dst.Slice(0, len(src))
	d.be.Copy(v, kernels.Host(src))
	return v
}

// locate copies the locations of a step's rows, and what images give them, to the device.
func (m *Model) locate(d *Decoder, st Step) paged {
	at := paged{pos: d.load(d.pos, st.Pos), seq: d.load(d.seq, st.Seq), slots: d.load(d.slots, st.Slots),
		table: d.load(d.table, st.Table), width: st.Width, images: &d.images}
	m.placeRows(&d.images, st.Tokens, st.Places)
	at.turns = d.images.turns(at.pos, len(st.Tokens))
	return at
}

// draw draws a token after each row of h [Q,OutputWidth], with p or the parameters of the step's runs.
func (m *Model) draw(d *Decoder, ids kernels.Buffer, sc kernels.Scores, h, u kernels.Buffer, st Step,
	p kernels.Sampling) {
	c, lo := m.Config, 0
	W := c.OutputWidth()
	d.adjust.used, d.masks.used = 0, 0
	sample := func(rows int, p kernels.Sampling) {
		p = c.sampling(p)
		for end := lo + rows; lo < end; {
			hi := end
			if len(st.Adjust) > 0 {
				n, a := d.adjust.next(m, st.Adjust[lo:end])
				hi, p.Adjust = lo+n, a
			}
			if len(st.Masks) > 0 {
				p.Mask = d.masks.next(m, st.Masks[lo:hi])
			}
			m.be.Sample(ids.Slice(lo, hi), sc.Rows(lo, hi), h.Slice(lo*W, hi*W), m.output.w,
				u.Slice(lo, hi), p)
			lo = hi
		}
	}
	if len(st.Runs) == 0 {
		sample(ids.Len(), p)
	}
	for _, r := range st.Runs {
		sample(r.Rows, r.Sampling)
	}
}

// layerActs returns the activations of layer l, cut to n rows.
func (d *Decoder) layerActs(l, n int) acts {
	a := d.acts
	a.cut(d.c.at(l), n)
	a.x1 = d.x.Slice(0, n*d.c.Width)
	if d.c.Branches == OneNorm {
		a.n2, a.rstd2 = a.n1, a.rstd1
	}
	if d.c.PerLayer > 0 {
		a.per.x = a.x1
	}
	return a
}

// mixStep computes the attention of layer l for a step's rows, up to what the output projection reads.
func (m *Model) mixStep(y *layer, a *acts, low *LowRank, x *Cache, l int, at paged, runs kernels.Runs) {
	if y.delta != nil {
		m.linearAttention(y, a, low, x.memory[l], runs)
	}
	if !y.attends {
		return
	}
	m.project(y, a, low, at.turns)
	own := x.layers[m.Config.owner(l)]
	if !y.shares {
		m.be.AppendKV(own, a.qkv, at.slots, y.attention)
	}
	m.be.PagedAttention(a.att, a.stats, a.qkv, own, at.table, at.seq, at.pos, at.width, at.images.seen(y.attention))
	m.sink(y, a)
}

// CopyPages copies page pairs[2i] to page pairs[2i+1] in all layers.
func (m *Model) CopyPages(d *Decoder, x *Cache, pairs []int32) {
	if len(pairs) == 0 {
		return
	}
	v := d.pairs.Slice(0, len(pairs))
	m.be.Copy(v, kernels.Host(pairs))
	for l, p := range x.layers {
		if !p.Keys.Empty() {
			m.be.CopyPages(p, v, m.Config.attention(l))
		}
	}
	m.be.Sync()
}

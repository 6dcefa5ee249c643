package model

import (
	"slices"

	"exp/kernels"
)

// Model is a set of parameters on a backend, ready for products. A trainable model has a
// gradient for each parameter. It is used by one goroutine at a time.
//
// The backbone is either the model's own or a Backbone's, which never changes; in the
// latter case only adapters and heads learn, and they alone are the model's parameters.
type Model struct {
	Config Config
	Heads  Heads

	be           kernels.Backend
	base         *Backbone // nil: the backbone is the model's own
	ownsBackbone bool
	trainable    bool
	tensors      []Tensor
	whole        int      // length of the arena of all parameters
	cut          []cutMap // weights whose parts lie on different ranks
	params       arena
	grads        arena          // empty unless trainable
	tied         kernels.Buffer // gradient of the embedding as input, if it is also the output
	unread       kernels.Buffer // gradients of frozen norms
	zeros        kernels.Buffer // the weight of norms without one; of a gate alone, not zeros (parallel.go)
	scalars      scalars
	tables       layerTables
	positions    positions
	kept         kernels.Buffer // the constants, during an update
	owned        []kernels.Buffer

	layers          []layer
	embed           kernels.Matrix // [V,C]
	dEmbed          kernels.Buffer
	norm            norm
	output          linear         // [V,C]
	value           kernels.Matrix // [1,C]
	hidden          kernels.Matrix // [C,C] before it; zero without Heads.Hidden
	logZ            []logZLayer
	rope, localRope rotary // [MaxPositions, R/2]
	reached         int    // positions of the tables that are filled
	images          Images // of the sequences; nil: none
	shownGrads      featureGradients
	cosines, sines  []float64 // [positions, R/2] on the host, for places of images
	length          int       // of the sequences that their frequencies are for; 0 below the fixed length
}

// norm is the weight of a norm, or another vector, and its gradient, empty if frozen. A LayerNorm has a bias, too.
type norm struct{ w, d, bias, dbias kernels.Buffer }

// layer holds the parameters of one layer and, if trainable, their gradients.
type layer struct {
	norm1, norm2, post1, post2 norm
	qNorm, kNorm, sinks        norm
	qkv, o, gateUp, down       linear
	gate                       linear    // that makes gates of attention's output
	scanIn, scanOut            linear    // of Mamba-2 beside attention
	fused                      bool      // the gate is computed within the product
	mixes, feeds               bool      // has attention, linear or not; a feed-forward block
	attends                    bool      // has attention that is not linear
	mix                        *mixture  // instead of gateUp and down
	delta                      *delta    // instead of attention, or beside it
	latent                     *latent   // of latent attention
	beside                     *beside   // of experts beside gateUp and down
	own                        Config    // the model's, with the heads of this layer
	per                        *perLayer // of the layer's embeddings
	number                     int
	shares, lends              bool // reads the keys and values of another layer; others read its own
	kind                       int  // of keys and values
	attention                  kernels.AttentionShape
	rope                       rotary
	rotates                    bool           // has rotary positions
	dXielu                     kernels.Buffer // gradient of xIELU's learned numbers; empty if frozen
}

// linears returns the layer's linear maps but the experts'.
func (y *layer) linears() []*linear {
	return append(append(append([]*linear{&y.qkv, &y.gate, &y.scanIn, &y.scanOut}, y.latent.linears()...), &y.o,
		&y.gateUp, &y.down), y.per.linears()...)
}

// New allocates a model with all parameters zero. It returns an error if the device has no
// room or the configuration is impossible.
func New(be kernels.Backend, c Config, h Heads, trainable bool) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if h.Adapters != nil {
		panic("model: adapters need a Backbone")
	}
	m := &Model{Config: c, Heads: h, be: be, trainable: trainable}
	m.shownGrads.room = GradientBytes
	return m, m.allocate()
}

// NewOn allocates a model whose backbone is base: its parameters are the adapters and
// auxiliary heads of h, all zero, and learn if trainable.
func NewOn(base *Backbone, h Heads, trainable bool) (*Model, error) {
	if h.LM && !base.LM {
		panic("model: the base has no output projection")
	}
	if h.Adapters != nil {
		if err := h.Adapters.Validate(base.Config); err != nil {
			return nil, err
		}
	}
	m := &Model{Config: base.Config, Heads: h, be: base.be, base: base, trainable: trainable}
	m.shownGrads.room = GradientBytes
	return m, m.allocate()
}

// OwnBackbone makes the model close its base when it is closed: no other model uses it.
func (m *Model) OwnBackbone() { m.ownsBackbone = true }

// Base returns the model's Backbone, nil if the backbone is the model's own.
func (m *Model) Base() *Backbone { return m.base }

// allocate makes room for everything. On an error it frees what it allocated.
func (m *Model) allocate() error {
	c, be := m.Config, m.be
	rank, size := partOn(be)
	if m.base == nil {
		m.tensors, m.whole = Layout(c, m.Heads)
		m.cut = c.cutMaps(m.tensors, size)
	} else {
		m.tensors, m.whole = AdapterLayout(c, m.Heads, m.Heads.Adapters)
	}
	spans, n := spansOf(m.cut, m.whole, rank, size)
	var err error
	fail := func(e error) {
		if e != nil && err == nil {
			err = &kernels.RoomError{Part: kernels.WeightRoom, Err: e}
		}
	}
	allocAs := func(t kernels.DType, n int) kernels.Buffer {
		b, e := be.Alloc(t, n)
		fail(e)
		m.owned = append(m.owned, b)
		return b
	}
	alloc := func(n int) kernels.Buffer { return allocAs(be.Float(), n) }
	buf := alloc(n)
	var gradBuf kernels.Buffer
	if m.trainable {
		gradBuf = alloc(n)
		if m.base == nil && m.Heads.LM && c.TieEmbeddings {
			lo, hi := partOf(c.Vocab, rank, size)
			m.tied = alloc(int((hi - lo) * c.Width))
		}
		if n := constants(m.tensors); n > 0 {
			m.kept = alloc(n)
		}
		if m.base != nil || c.zeroWeights() > 0 {
			m.unread = alloc(c.widestVector())
		}
	}
	if n := c.zeroWeights(); n > 0 {
		m.zeros = alloc(n)
	}
	tables := []*rotary{&m.rope}
	if c.LocalTheta > 0 {
		tables = append(tables, &m.localRope)
	}
	for i, t := range tables {
		var e error
		*t, e = m.newRotary([]Config{c.global(), c}[i].rotated())
		fail(e)
	}
	if err != nil {
		m.Close()
		return err
	}
	if c.ScanNorm != NormAfterGate {
		m.plainWeight()
	}
	m.layerNormOnes()
	m.fillHeadOnes()
	m.params = newArena(buf, m.tensors, spans)
	if m.trainable {
		m.grads = newArena(gradBuf, m.tensors, spans)
	}
	m.bind(func(n int) kernels.Buffer { return allocAs(be.Operand(), n) })
	if err != nil {
		m.Close()
	}
	return err
}

// binder makes the views that the passes use, and allocates packed weights by alloc.
type binder struct {
	*Model
	alloc    func(n int) kernels.Buffer
	adapters uint32 // so far
}

// matrix returns w with room for its packed copies.
func (b *binder) matrix(w kernels.Buffer, out, in int) kernels.Matrix {
	return b.packed(w, out, in, b.be.PackedLen)
}

// cut is matrix for a linear map of a layer, which ranks may share.
func (b *binder) cut(w kernels.Buffer, out, in int) kernels.Matrix {
	if c, ok := b.be.(Cutter); ok {
		return b.packed(w, out, in, c.CutLen)
	}
	return b.matrix(w, out, in)
}

// projection is matrix for the output projection.
func (b *binder) projection(w kernels.Buffer) kernels.Matrix {
	length := b.be.PackedLen
	if c, ok := b.be.(Cutter); ok {
		length = c.OutputLen
	}
	return b.packed(w, b.Config.Vocab, b.Config.OutputWidth(), length)
}

func (b *binder) packed(w kernels.Buffer, out, in int, length func(out, in int) (int, int)) kernels.Matrix {
	p, pt := length(out, in)
	x := kernels.Matrix{W: w, Out: out, In: in}
	if p > 0 {
		x.Packed = b.alloc(p)
	}
	if pt > 0 && b.trainable {
		x.PackedT = b.alloc(pt)
	}
	return x
}

func (b *binder) grad(name string) kernels.Buffer {
	if !b.trainable {
		return kernels.Buffer{}
	}
	return b.grads.view(name)
}

// vector returns a non-matrix tensor of the backbone and its gradient; nothing for the name "".
func (b *binder) vector(name string) norm {
	if name == "" {
		return norm{}
	}
	if b.base != nil {
		return norm{w: b.base.vectors.view(name)}
	}
	return norm{w: b.params.view(name), d: b.grad(name)}
}

// vectors returns the contiguous vectors from first to last.
func (b *binder) vectors(first, last string) norm {
	if b.base != nil {
		return norm{w: b.base.vectors.span(first, last)}
	}
	v := norm{w: b.params.span(first, last)}
	if b.trainable {
		v.d = b.grads.span(first, last)
	}
	return v
}

// linear binds a linear map of the backbone and its adapters.
func (b *binder) linear(s linearSpec, bias bool) linear {
	var y linear
	first, last := s.weights()
	if b.base != nil {
		y.w = b.base.matrices[first]
	} else {
		y.w = b.cut(b.params.span(first, last), s.out(), s.in)
		if b.trainable {
			y.dw = b.grads.span(first, last)
		}
	}
	if bias {
		v := b.vectors(s.names[0]+".bias", s.names[len(s.names)-1]+".bias")
		y.bias, y.dbias = v.w, v.d
	}
	b.adapt(&y, s)
	return y
}

// adapt binds the adapters of a linear map.
func (b *binder) adapt(y *linear, s linearSpec) {
	a := b.Heads.Adapters
	if a == nil {
		return
	}
	y.scale, y.drop = a.Scale(), a.Dropout
	offset := 0
	for i, name := range s.names {
		if slices.Contains(a.Targets, lastPart(name)) && b.has(name) {
			an, bn := adapterNames(name)
			y.adapters = append(y.adapters, Adapter{
				A: b.matrix(b.params.view(an), a.Rank, s.in), DA: b.grad(an),
				B: b.matrix(b.params.view(bn), s.rows[i], a.Rank), DB: b.grad(bn),
				Offset: offset, number: b.adapters,
			})
			b.adapters++
		}
		offset += s.rows[i]
	}
}

// has reports whether a linear map has an adapter: experts and routers have none.
func (b *binder) has(name string) bool {
	an, _ := adapterNames(name)
	_, ok := b.params.byName[an]
	return ok
}

// bind makes the views.
func (m *Model) bind(alloc func(n int) kernels.Buffer) {
	b := &binder{Model: m, alloc: alloc}
	m.bindEmbedding(b)
	m.norm = b.finalNorm()
	m.tables = b.layerTables()
	m.positions = b.positions()
	for l := range m.Config.Layers {
		m.layers = append(m.layers, b.layer(l))
	}
	if m.Heads.Value || m.Heads.Score {
		m.value = b.matrix(m.params.view("score.weight"), 1, m.Config.Width)
	}
	m.bindHidden(b.matrix)
	m.bindLogZ(b.matrix, b.grad)
}

// bindEmbedding binds the embedding and the output projection.
func (m *Model) bindEmbedding(b *binder) {
	c := m.Config
	if m.base != nil {
		m.embed = m.base.embed
		if m.Heads.LM {
			m.output.w = m.base.matrices[outputName]
			if c.TieEmbeddings {
				m.output.w = m.base.embed
			}
		}
		return
	}
	m.embed, m.dEmbed = kernels.Matrix{W: m.params.view(embedName), Out: c.Vocab, In: c.Width}, b.grad(embedName)
	if !m.Heads.LM {
		return
	}
	name := outputName
	if c.TieEmbeddings {
		name = embedName
	}
	m.output = linear{w: b.projection(m.params.view(name)), dw: b.grad(name)}
	if m.trainable && c.TieEmbeddings {
		m.dEmbed = m.tied
	}
}

func (b *binder) layer(l int) layer {
	c := b.Config
	s := c.linears(l)
	before1, after1, before2, after2 := c.norms(l)
	y := layer{norm1: b.streamNorm(before1), norm2: b.streamNorm(before2), post1: b.vector(after1),
		post2: b.vector(after2), attention: c.attention(l), rope: b.rotary(l), rotates: c.rotates(l),
		own: c.at(l), number: l, per: b.perLayer(l, s), shares: c.shares(l), lends: c.lends(l), kind: c.sharedKind(l),
		mixes: c.mixes(l), feeds: c.feeds(l), attends: c.attends(l), dXielu: b.xielu(l)}
	switch {
	case !y.mixes:
		y.norm2 = y.norm1
	case c.Parallel:
		y.scanIn, y.scanOut = b.linear(s.inner[0], false), b.linear(s.inner[1], c.ScanBias)
		y.delta = b.delta(l)
		y.qkv, y.o = b.linear(s.qkv, c.QKVBias), b.linear(s.o, c.OutBias)
	case c.linear(l):
		y.qkv, y.o = b.linear(s.qkv, false), b.linear(s.o, false)
		y.delta = b.delta(l)
	case c.latent():
		y.qkv, y.latent, y.o = b.linear(s.qkv, false), b.latent(l, s), b.linear(s.o, false)
	default:
		y.qkv, y.o = b.linear(s.qkv, c.QKVBias), b.linear(s.o, c.OutBias)
	}
	if (c.QKNorm || c.HeadLayerNorm) && y.attends {
		query, key := c.headNorms(l)
		if y.qNorm = b.vector(query); !y.shares {
			y.kNorm = b.vector(key)
		}
	}
	if c.bareNorms() {
		b.bareLayer(&y)
	}
	if c.Branches == OneNorm {
		y.norm2 = norm{}
	}
	if c.Sinks && y.attends {
		y.sinks = b.vector(sinksName(l))
	}
	if c.GateMap {
		y.gate = b.linear(c.gateMap(l), false)
	}
	if !y.feeds {
		return y
	}
	if c.dense(l) {
		y.gateUp, y.down = b.linear(s.gateUp, c.FFNBias), b.linear(s.down, c.FFNBias)
		y.fused = c.fusedGate() && len(y.gateUp.adapters) == 0
	}
	if !c.sparse(l) {
		return y
	}
	if c.Experts.Beside {
		y.beside = b.beside(l)
	}
	bias := c.Experts.Bias
	y.mix = &mixture{router: b.linear(s.router, bias)}
	if c.Experts.Corrected {
		y.mix.bias = b.vector(c.correction(l)).w
	}
	for i := 0; i < len(s.experts); i += 2 {
		y.mix.experts = append(y.mix.experts, expert{b.linear(s.experts[i], bias), b.linear(s.experts[i+1], bias)})
	}
	return y
}

// Close frees the model's memory.
func (m *Model) Close() {
	for _, b := range m.owned {
		m.be.Free(b)
	}
	m.owned = nil
	if m.ownsBackbone {
		m.base.Close()
	}
}

// Tensors returns the parameters in arena order.
func (m *Model) Tensors() []Tensor { return m.tensors }

// Constants returns what this rank holds of the parameters that no gradient changes.
func (m *Model) Constants() (list []kernels.Buffer) {
	for _, t := range m.tensors {
		if t.Constant() {
			list = append(list, m.params.view(t.Name))
		}
	}
	return list
}

// KeepConstants calls update, which may change every parameter, and gives the constants their values back.
func (m *Model) KeepConstants(update func()) {
	list := m.Constants()
	each := func(f func(own, kept kernels.Buffer)) {
		at := 0
		for _, b := range list {
			f(b, m.kept.Slice(at, at+b.Len()))
			at += b.Len()
		}
	}
	each(func(own, kept kernels.Buffer) { m.be.Copy(kept, own) })
	update()
	each(func(own, kept kernels.Buffer) { m.be.Copy(own, kept) })
}

// Trainable reports whether the model has gradients.
func (m *Model) Trainable() bool { return m.trainable }

// Params returns the arena of parameters, [n] in the order of Layout; of ranks that share
// products, this rank's part (Spans). Call Refresh after writing to it.
func (m *Model) Params() kernels.Buffer { return m.params.buf }

// Grads returns the arena of gradients, which lie as Params do.
func (m *Model) Grads() kernels.Buffer { return m.grads.buf }

// View returns what this rank holds of the named parameter; it panics if there is none.
func (m *Model) View(name string) kernels.Buffer { return m.params.view(name) }

// Grad returns the gradient of that parameter; it panics if there is none.
func (m *Model) Grad(name string) kernels.Buffer { return m.grads.view(name) }

// Refresh updates the packed copies of the weights from the parameters. Call it after every
// change of them.
func (m *Model) Refresh() {
	m.scalars.read = false
	if x := m.learning(); x != nil {
		x.Refresh()
	}
	for i := range m.layers {
		y := &m.layers[i]
		m.refresh(&y.qkv, &y.gate, &y.scanIn, &y.scanOut, &y.o, &y.gateUp, &y.down)
		m.refresh(y.per.linears()...)
		if y.latent != nil {
			m.refresh(&y.latent.qb, &y.latent.kva, &y.latent.kvb)
		}
		if y.mix != nil {
			m.refresh(&y.mix.router)
			for e := range y.mix.experts {
				m.refresh(&y.mix.experts[e].gateUp, &y.mix.experts[e].down)
			}
		}
	}
	m.refresh(&m.output, &m.tables.projection)
	m.pack(m.value)
	m.pack(m.hidden)
	for _, z := range m.logZ {
		m.pack(z.linear)
	}
}

// refresh packs linear maps, unless a Backbone holds them, and their adapters.
func (m *Model) refresh(list ...*linear) {
	for _, y := range list {
		if m.base == nil {
			m.pack(y.w)
		}
		for _, a := range y.adapters {
			m.pack(a.A)
			m.pack(a.B)
		}
	}
}

func (m *Model) pack(w kernels.Matrix) {
	if !w.Packed.Empty() {
		m.be.Pack(w)
	}
}

// ZeroGrads clears all gradients.
func (m *Model) ZeroGrads() {
	m.be.Zero(m.grads.buf)
	m.shownGrads.clear()
	if !m.tied.Empty() {
		m.be.Zero(m.tied)
	}
}

// FinishGrads must be called once after the last backward pass of a mini-batch: with tied
// embeddings it adds the embedding's gradient as input to its gradient as output. They stay
// separate until then so that the order of the sum does not depend on how the mini-batch
// was cut. A vision tower gets its gradients here, too.
func (m *Model) FinishGrads() {
	m.towerBackward()
	if !m.tied.Empty() {
		m.be.Add(m.grads.view("model.embed_tokens.weight"), m.tied)
	}
}

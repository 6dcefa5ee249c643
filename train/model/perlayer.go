package model

import (
	"fmt"
	"math"

	"exp/kernels"
)

// This file has what Gemma 4 E2B and E4B add: layers that read the keys and values of an earlier layer, and an
// embedding of every token for each layer. With e the embeddings at the first layer, [N,C],
//
//	p  = (Norm(Wmodel · e / √C) + √P · Table[token]) / √2     [L,P]
//	x += Norm(Wprojection · (GELU(Wgate · x) · p[l]))         at the end of layer l, before layer_scalar

const (
	layerTable      = "model.embed_tokens_per_layer.weight"
	layerProjection = "model.per_layer_model_projection"
	layerTableNorm  = "model.per_layer_projection_norm.weight"
)

// shares reports whether layer l reads the keys and values of the last layer of its kind that has its own.
func (c Config) shares(l int) bool { return l >= c.Layers-c.SharedKV }

// owner returns the layer whose keys and values layer l reads.
func (c Config) owner(l int) int {
	if !c.shares(l) {
		return l
	}
	for i := c.Layers - c.SharedKV - 1; i >= 0; i-- {
		if c.windowed(i) == c.windowed(l) {
			return i
		}
	}
	return -1
}

// lends reports whether another layer reads the keys and values of layer l.
func (c Config) lends(l int) bool {
	for i := range c.Layers {
		if i != l && c.owner(i) == l {
			return true
		}
	}
	return false
}

// sharedKind numbers the kinds of layers that share keys and values.
func (c Config) sharedKind(l int) int {
	if c.windowed(l) {
		return 0
	}
	return 1
}

// keysOf returns the width of keys and values of a row, of a configuration of one kind.
func (c Config) keysOf() int { return 2 * c.KVHeads * c.Head }

// layersWidth is the width of a token's embeddings for all layers.
func (c Config) layersWidth() int { return int(c.Layers * c.PerLayer) }

// validatePerLayer reports invalid settings of them.
func (c Config) validatePerLayer() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	if c.SharedKV < 0 || c.SharedKV >= max(c.Layers, 1) {
		bad("%d of %d layers read the keys and values of others", c.SharedKV, c.Layers)
		return errs
	}
	for l := range c.Layers {
		if c.owner(l) < 0 {
			bad("no layer has keys and values of the kind that layer %d reads", l)
			break
		}
	}
	if c.SharedKV > 0 && (c.Global.Head == 0 || c.Sinks || c.OutBias) {
		bad("layers that read the keys and values of others need heads of two sizes, and no sinks or biases")
	}
	if c.WideFFN && c.SharedKV == 0 {
		bad("no layers have a wide feed-forward block: none reads the keys and values of others")
	}
	if c.PerLayer < 0 || c.PerLayer > 0 && !c.LayerScales {
		bad("embeddings of %d channels for each layer need numbers that multiply layers", c.PerLayer)
	}
	return errs
}

// perLayerLinears returns the linear maps of layer l that read its embeddings.
func (c Config) perLayerLinears(p string) []linearSpec {
	if c.PerLayer == 0 {
		return nil
	}
	return []linearSpec{{[]string{p + "per_layer_input_gate"}, []int{c.PerLayer}, c.Width},
		{[]string{p + "per_layer_projection"}, []int{c.Width}, c.PerLayer}}
}

// modelLinears returns the linear maps outside the layers but the output projection.
func (c Config) modelLinears() []linearSpec {
	if c.PerLayer == 0 {
		return nil
	}
	return []linearSpec{{[]string{layerProjection}, []int{c.layersWidth()}, c.Width}}
}

// perLayerNorm returns the name of the norm of what those maps add.
func perLayerNorm(l int) string {
	return fmt.Sprintf("model.layers.%d.post_per_layer_input_norm.weight", l)
}

// tables adds the tensors of such embeddings outside the layers.
func (x *layout) tables(c Config) {
	if c.PerLayer == 0 {
		return
	}
	x.one(layerTable, c.Vocab, c.layersWidth())
	for _, s := range c.modelLinears() {
		x.linear(s, false)
	}
	x.one(layerTableNorm, c.PerLayer)
}

// perLayer adds the tensors of layer l that read its embeddings.
func (x *layout) perLayer(c Config, l int, s layerLinears) {
	if c.PerLayer == 0 {
		return
	}
	for _, y := range s.inner {
		x.linear(y, false)
	}
	x.one(perLayerNorm(l), c.Width)
}

// perLayer holds a layer's parameters that read its embeddings.
type perLayer struct {
	gate, projection linear
	norm             norm
}

func (y *perLayer) linears() []*linear {
	if y == nil {
		return nil
	}
	return []*linear{&y.gate, &y.projection}
}

// layerTables holds the parameters outside the layers.
type layerTables struct {
	table      kernels.Matrix
	dTable     kernels.Buffer
	projection linear
	norm       norm
}

func (b *binder) layerTables() (t layerTables) {
	c := b.Config
	if c.PerLayer == 0 {
		return t
	}
	if b.base != nil {
		t.table = b.base.table
	} else {
		t.table = kernels.Matrix{W: b.params.view(layerTable), Out: c.Vocab, In: c.layersWidth()}
		t.dTable = b.grad(layerTable)
	}
	t.projection, t.norm = b.linear(c.modelLinears()[0], false), b.vector(layerTableNorm)
	return t
}

func (b *binder) perLayer(l int, s layerLinears) *perLayer {
	if b.Config.PerLayer == 0 {
		return nil
	}
	return &perLayer{b.linear(s.inner[0], false), b.linear(s.inner[1], false), b.vector(perLayerNorm(l))}
}

// tableActs are the embeddings of N rows for all layers.
type tableActs struct {
	rows         kernels.Buffer // [N,L·P] floats
	proj, normed kernels.Buffer // [N,L·P] operands: of the projection, before and after its norm
	rstd         kernels.Buffer // [N,L]
}

func (a *tableActs) alloc(c Config, N int, f, o func(n int) kernels.Buffer) {
	if W := c.layersWidth(); W > 0 {
		a.rows, a.proj, a.normed, a.rstd = f(N*W), o(N*W), o(N*W), f(N*c.Layers)
	}
}

func (a tableActs) cut(c Config, n int) tableActs {
	if W := c.layersWidth(); W > 0 {
		a.rows, a.proj, a.normed = a.rows.Slice(0, n*W), a.proj.Slice(0, n*W), a.normed.Slice(0, n*W)
		a.rstd = a.rstd.Slice(0, n*c.Layers)
	}
	return a
}

// tablesNorm returns the shape of the norm of the projection.
func (c Config) tablesNorm() kernels.NormShape {
	return kernels.NormShape{Heads: c.Layers, Dim: c.PerLayer, Stride: c.layersWidth()}
}

// embedLayers computes the embeddings of rows x [N,C] of tokens ids for all layers.
func (m *Model) embedLayers(a tableActs, x, ids kernels.Buffer) {
	c, be, t := m.Config, m.be, &m.tables
	if c.PerLayer == 0 {
		return
	}
	W := c.layersWidth()
	be.MatMul(a.proj, x, t.projection.w, kernels.Buffer{})
	m.multiply(a.proj, W, 1/math.Sqrt(float64(c.Width)))
	be.RMSNorm(a.normed, a.rstd, a.proj, t.norm.w, c.tablesNorm(), c.NormEps)
	be.Embed(a.rows, t.table, ids, math.Sqrt(float64(c.PerLayer)))
	be.AddColumns(a.rows, a.normed, W, W, 0, 1)
	m.multiply(a.rows, W, math.Sqrt(0.5))
}

// embedLayersBackward takes d [N,L·P], the gradient of those embeddings, back to the parameters and adds x's gradient
// to dx. It overwrites a.normed and a.rows.
func (m *Model) embedLayersBackward(a tableActs, d, dx, x, ids, dIn, blocks kernels.Buffer) {
	c, be, t := m.Config, m.be, &m.tables
	W := c.layersWidth()
	m.multiply(d, W, math.Sqrt(0.5))
	be.EmbedBackward(t.dTable, d, ids, W, math.Sqrt(float64(c.PerLayer)))
	be.Copy(a.normed, d)
	m.normBackward(a.normed, a.normed, a.proj, t.norm, a.rstd, blocks, c.tablesNorm(), true)
	m.multiply(a.normed, W, 1/math.Sqrt(float64(c.Width)))
	t.projection.backward(be, dIn, a.normed, x, blocks, nil)
	be.Add(dx, dIn)
}

// perLayerActs are the activations of a layer that reads its embeddings, for N rows.
type perLayerActs struct {
	x, y       kernels.Buffer // [N,C] floats: the residual stream before, and the part to add before its norm
	rstd       kernels.Buffer // [N]
	g, act, gu kernels.Buffer // [N,P], [N,P], [N,2P] operands
}

func (a *perLayerActs) alloc(c Config, N int, f, o func(n int) kernels.Buffer) {
	if P := c.PerLayer; P > 0 {
		a.x, a.y, a.rstd, a.g, a.act, a.gu = f(N*c.Width), f(N*c.Width), f(N), o(N*P), o(N*P), o(N*2*P)
	}
}

func (a *perLayerActs) cut(c Config, n int) {
	if P := c.PerLayer; P > 0 {
		a.x, a.y, a.rstd = a.x.Slice(0, n*c.Width), a.y.Slice(0, n*c.Width), a.rstd.Slice(0, n)
		a.g, a.act, a.gu = a.g.Slice(0, n*P), a.act.Slice(0, n*P), a.gu.Slice(0, n*2*P)
	}
}

// readLayer adds delta, the output of the feed-forward block, to the residual stream, as a.per.x, and sets delta to
// what the layer's embeddings add.
func (m *Model) readLayer(y *layer, a *acts, low *LowRank, rows, delta kernels.Buffer) {
	c, be, p := m.Config, m.be, &a.per
	if y.per == nil {
		return
	}
	if p.x != a.x1 {
		be.Copy(p.x, a.x1)
	}
	be.Add(p.x, delta)
	P := c.PerLayer
	y.per.gate.apply(be, p.g, p.x, low)
	be.Zero(p.gu)
	be.AddColumns(p.gu, p.g, P, 2*P, 0, 1)
	be.TakeColumns(p.g, rows, P, c.layersWidth(), int(y.number*P), 1)
	be.AddColumns(p.gu, p.g, P, 2*P, P, 1)
	be.Gate(p.act, p.gu, P, kernels.GELUTanh)
	y.per.projection.apply(be, p.y, p.act, low)
	be.RMSNorm(delta, p.rstd, p.y, y.per.norm.w, c.norm(), c.NormEps)
}

// left returns the residual stream to which the layer's last output is added.
func (a *acts) left(c Config) kernels.Buffer {
	if c.PerLayer > 0 {
		return a.per.x
	}
	return a.x1
}

// readLayerBackward takes dx, the gradient of the layer's output, back to a.per.x.
func (m *Model) readLayerBackward(ws *Workspace, y *layer, a *acts, dx, blocks kernels.Buffer) {
	c, be, p, n := m.Config, m.be, &a.per, ws.n
	if y.per == nil {
		return
	}
	P, dy, dIn := c.PerLayer, ws.dPost.Slice(0, n*c.Width), ws.dNorm.Slice(0, n*c.Width)
	m.normBackward(dy, dx, p.y, y.per.norm, p.rstd, blocks, c.norm(), true)
	y.per.projection.backward(be, p.g, dy, p.act, blocks, &ws.low)
	be.GateBackward(p.gu, p.gu, p.g, P, kernels.GELUTanh)
	if m.base == nil {
		be.TakeColumns(p.g, p.gu, P, 2*P, P, 1)
		be.AddColumns(ws.dTables.Slice(0, n*c.layersWidth()), p.g, P, c.layersWidth(), int(y.number*P), 1)
	}
	be.TakeColumns(p.g, p.gu, P, 2*P, 0, 1)
	y.per.gate.backward(be, dIn, p.g, p.x, blocks, &ws.low)
	be.Add(dx, dIn)
}

// sharedActs are keys and values that layers without their own read, and their gradients, for each kind of layers.
type sharedActs struct {
	kv [2]kernels.Buffer // [N,2KD] operands
	d  [2]kernels.Buffer // [N,2KD] floats
	t  kernels.Buffer    // scratch for one, operands
}

func (a *sharedActs) alloc(c Config, N int, train bool, f, o func(n int) kernels.Buffer) {
	if c.SharedKV == 0 {
		return
	}
	for i, x := range c.Kinds() {
		if a.kv[i] = o(N * x.keysOf()); train {
			a.d[i] = f(N * x.keysOf())
		}
	}
	if train {
		a.t = o(N * c.most(Config.keysOf))
	}
}

// lend keeps the keys and values of a layer that others read, or puts another layer's into a.qkv.
func (m *Model) lend(ws *Workspace, y *layer, a *acts) {
	c, be := y.own, m.be
	if !y.shares && !y.lends {
		return
	}
	kv := ws.lent.kv[y.kind].Slice(0, ws.n*c.keysOf())
	if y.lends {
		be.TakeColumns(kv, a.qkv, c.keysOf(), c.QKV(), c.Heads*c.Head, 1)
	} else {
		be.AddColumns(a.qkv, kv, c.keysOf(), c.QKV(), c.Heads*c.Head, 1)
	}
}

// lendBackward adds the gradients of lent keys and values in dqkv to a sum for their owner, or, for the owner, that
// sum to dqkv.
func (m *Model) lendBackward(ws *Workspace, y *layer, dqkv kernels.Buffer) {
	c, be := y.own, m.be
	if !y.shares && !y.lends {
		return
	}
	n := ws.n * c.keysOf()
	d, t := ws.lent.d[y.kind].Slice(0, n), ws.lent.t.Slice(0, n)
	if y.lends {
		be.AddColumns(dqkv, d, c.keysOf(), c.QKV(), c.Heads*c.Head, 1)
		return
	}
	be.TakeColumns(t, dqkv, c.keysOf(), c.QKV(), c.Heads*c.Head, 1)
	be.AddColumns(d, t, c.keysOf(), c.keysOf(), 0, 1)
}

// zeroShared clears the gradients that layers add to.
func (m *Model) zeroShared(ws *Workspace) {
	for i, x := range m.Config.Kinds() {
		if m.Config.SharedKV > 0 {
			m.be.Zero(ws.lent.d[i].Slice(0, ws.n*x.keysOf()))
		}
	}
	if m.Config.PerLayer > 0 && m.base == nil {
		m.be.Zero(ws.dTables.Slice(0, ws.n*m.Config.layersWidth()))
	}
}

// queriesAlone computes a.qkv, queries and zeros, of a layer that reads the keys and values of another.
func (m *Model) queriesAlone(y *layer, a *acts, low *LowRank) {
	c, be := y.own, m.be
	q := a.wide.Slice(0, a.qkv.Len()/c.QKV()*c.Heads*c.Head)
	y.qkv.apply(be, q, a.n1, low)
	be.Zero(a.qkv)
	be.AddColumns(a.qkv, q, c.Heads*c.Head, c.QKV(), 0, 1)
}

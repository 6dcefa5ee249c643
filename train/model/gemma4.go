package model

import (
	"fmt"
	"math"
	"strings"

	"exp/kernels"
)

// This file has what Gemma 4 adds to Gemma 3's block: heads of two sizes, values divided by their root mean square,
// keys that are values, experts beside the feed-forward block, and a number that multiplies each layer's output:
//
//	x += PostNorm(Wo · Attention(Rope(QKNorm(Wqkv · PreNorm(x)))))
//	x += PostNorm(Norm1(Wdown · Gate(Wgateup · PreNorm(x))) + Norm2(Experts(PreNorm2(x), Router(NormR(x)))))
//	x *= layer_scalar

// Global describes the heads of layers without a window, if they have a size of their own.
type Global struct {
	Head, KVHeads int  // 0: as in the layers with a window
	KeyValues     bool // they have no v_proj: the keys, before their norm, are the values, too
}

// at returns c with the heads and the norms of layer l in place of both kinds.
func (c Config) at(l int) Config {
	if c.Names == OlmoHybridNames && c.linear(l) {
		c.PostNorms, c.NoPreNorms = false, false
	}
	if c.Global.Head == 0 {
		return c
	}
	if c.WideFFN && c.shares(l) {
		c.FFN *= 2
	}
	c.WideFFN = false
	if c.windowed(l) {
		c.Global = Global{}
	} else {
		c = c.global()
	}
	if c.shares(l) {
		c.Global.KeyValues = false
	}
	return c
}

// global returns c with the heads of layers without a window, if there are two kinds.
func (c Config) global() Config {
	if g := c.Global; g.Head > 0 {
		c.Head, c.KVHeads, c.Global = g.Head, g.KVHeads, Global{KeyValues: g.KeyValues}
	}
	return c
}

// Kinds returns c once for each kind of heads that its layers have, with the widest feed-forward block.
func (c Config) Kinds() []Config {
	if c.Global.Head == 0 {
		return []Config{c}
	}
	if c.WideFFN {
		c.FFN, c.WideFFN = 2*c.FFN, false
	}
	local := c
	local.Global = Global{}
	return []Config{local, c.global()}
}

// most returns the larger value of f for the kinds of heads.
func (c Config) most(f func(c Config) int) (n int) {
	for _, x := range c.Kinds() {
		n = max(n, f(x))
	}
	return n
}

// keyValues reports whether keys are values, of a configuration of one kind.
func (c Config) keyValues() bool { return c.Global.KeyValues && c.Global.Head == 0 }

// HeadsWidth returns the channels of all query heads; of two kinds, the wider one's.
func (c Config) HeadsWidth() int {
	return c.most(func(c Config) int { return int(c.Heads * c.Head) })
}

// beside reports whether layer l has experts beside its feed-forward block.
func (c Config) beside(l int) bool { return c.Experts.Beside && c.sparse(l) }

// dense reports whether layer l has a feed-forward block that all tokens take.
func (c Config) dense(l int) bool { return c.feeds(l) && (!c.sparse(l) || c.Experts.Beside) }

// anyDense reports whether any layer does.
func (c Config) anyDense() bool { return c.some(c.dense) }

// validateGlobal reports invalid settings of heads of two sizes and of what comes with them.
func (c Config) validateGlobal() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	if g := c.Global; g != (Global{}) {
		if g.Head < 2 || g.Head%2 != 0 || g.KVHeads < 1 || c.Heads%max(g.KVHeads, 1) != 0 {
			bad("layers without a window have %d key heads of %d channels for %d query heads", g.KVHeads, g.Head,
				c.Heads)
		}
		if c.latent() || c.hasLinear() || c.Fused || c.OutputGate || c.QKVBias || c.WideQKNorm || c.Rotary != 0 ||
			!(c.LocalTheta > 0) {
			bad("heads of two sizes are not supported with latent or linear attention, fused projections, output " +
				"gates, biases, wide norms or partly rotated heads, and need a rotary base for each")
		}
	}
	if (c.Experts.Beside || c.LayerScales) && (!c.PostNorms || c.NoPreNorms || c.ResidualScale != 0) {
		bad("experts beside a block, and numbers that multiply layers, need norms before and after the blocks")
	}
	if c.Experts.Beside && (c.Experts.Shared > 0 || c.Experts.Bias || c.Experts.Corrected || c.fusedGate()) {
		bad("experts beside a block have no shared expert, no biases and another gate than silu")
	}
	if c.ValueNorm && (!c.QKNorm || c.LateQKNorm || c.WideQKNorm) {
		bad("a norm of values comes with norms of each query and key head")
	}
	return errs
}

// layerScalar and expertScales return the names of the number that multiplies the output of layer l, and of those
// that multiply its experts' results. No gradient changes them.
func layerScalar(l int) string { return fmt.Sprintf("model.layers.%d.%s", l, layerScalarPart) }

func expertScales(l int) string { return fmt.Sprintf("model.layers.%d.router.%s", l, expertScalePart) }

const (
	layerScalarPart = "layer_scalar"
	expertScalePart = "per_expert_scale"
)

// isScale reports whether a vector multiplies at first by 1, but is not a norm by name.
func (t Tensor) isScale() bool {
	for _, part := range []string{layerScalarPart, expertScalePart, "router.scale", "layernorm_1.weight",
		"layernorm_2.weight"} {
		if strings.HasSuffix(t.Name, "."+part) || strings.HasSuffix(t.Name, "feedforward_"+part) {
			return true
		}
	}
	return false
}

// besideNames are the norms of experts beside a block: of the block's result, of what the router and the experts
// read, and of the experts' result.
type besideNames struct{ block, router, before, after string }

func (c Config) besideNames(l int) besideNames {
	p := fmt.Sprintf("model.layers.%d.", l)
	return besideNames{p + "post_feedforward_layernorm_1.weight", p + "router.scale",
		p + "pre_feedforward_layernorm_2.weight", p + "post_feedforward_layernorm_2.weight"}
}

// beside adds the tensors of experts beside a block but the experts' own.
func (x *layout) beside(c Config, l int, s layerLinears) {
	names := c.besideNames(l)
	x.one(names.block, c.Width)
	x.one(names.router, c.Width)
	x.linear(s.router, false)
	x.one(expertScales(l), c.Experts.Count)
	x.one(names.before, c.Width)
	for _, e := range s.experts {
		x.linear(e, false)
	}
	x.one(names.after, c.Width)
}

// beside holds the norms of experts beside a block.
type beside struct{ block, router, before, after norm }

func (b *binder) beside(l int) *beside {
	n := b.Config.besideNames(l)
	return &beside{b.vector(n.block), b.vector(n.router), b.vector(n.before), b.vector(n.after)}
}

// besideActs are the activations of such a layer for N rows.
type besideActs struct {
	block, experts     kernels.Buffer // [N,C] floats: results before their norms
	router, x          kernels.Buffer // [N,C] operands: what the router and the experts read
	rstdBlock, rstdOut kernels.Buffer // [N] of those results
	rstdRouter, rstdX  kernels.Buffer // [N] of what they read
}

func (a *besideActs) alloc(c Config, N int, f, o func(n int) kernels.Buffer) {
	a.block, a.experts, a.router, a.x = f(N*c.Width), f(N*c.Width), o(N*c.Width), o(N*c.Width)
	a.rstdBlock, a.rstdOut, a.rstdRouter, a.rstdX = f(N), f(N), f(N), f(N)
}

func (a *besideActs) cut(c Config, n int) {
	if a.block.Empty() {
		return
	}
	for _, b := range []*kernels.Buffer{&a.block, &a.experts, &a.router, &a.x} {
		*b = b.Slice(0, n*c.Width)
	}
	for _, b := range []*kernels.Buffer{&a.rstdBlock, &a.rstdOut, &a.rstdRouter, &a.rstdX} {
		*b = b.Slice(0, n)
	}
}

// routerScale multiplies the logits of a router beside a block.
func (c Config) routerScale() float64 { return 1 / math.Sqrt(float64(c.Width)) }

// multiply multiplies x [N,width] by a number.
func (m *Model) multiply(x kernels.Buffer, width int, by float64) {
	if by != 1 {
		m.be.TakeColumns(x, x, width, width, 0, by)
	}
}

// expertsBeside sets a.rawF to the sum of the block's result and the experts', each after its norm. t is scratch.
func (m *Model) expertsBeside(y *layer, a *acts, low *LowRank, t kernels.Buffer) {
	c, be, s, b := m.Config, m.be, m.Config.norm(), &a.beside
	m.gate(y, a, low)
	y.down.apply(be, b.block, a.act, low)
	be.RMSNorm(a.rawF, b.rstdBlock, b.block, y.beside.block.w, s, c.NormEps)
	be.RMSNorm(b.router, b.rstdRouter, a.x1, y.beside.router.w, s, c.NormEps)
	be.RMSNorm(b.x, b.rstdX, a.x1, y.beside.before.w, s, c.NormEps)
	y.mix.forward(be, c, &a.mix, b.experts, b.x, b.router, m.scalars.experts[y.number])
	be.RMSNorm(t, b.rstdOut, b.experts, y.beside.after.w, s, c.NormEps)
	be.Add(a.rawF, t)
}

// besideBackward takes dout, the gradient of that sum, back: it adds the experts' part to dx, the gradient of a.x1,
// and sets dNorm to the gradient of the block's input.
func (m *Model) besideBackward(ws *Workspace, y *layer, a *acts, dx, dNorm, dout, blocks kernels.Buffer) {
	c, s, b := m.Config, m.Config.norm(), &a.beside
	d, dRouter := ws.dBeside[0].Slice(0, dout.Len()), ws.dBeside[1].Slice(0, dout.Len())
	m.normBackward(d, dout, b.experts, y.beside.after, b.rstdOut, blocks, s, true)
	y.mix.backward(m.be, c, &a.mix, &ws.mixGrads, dNorm, dRouter, d, b.x, b.router, blocks, ws.blocks.host,
		m.scalars.experts[y.number])
	m.normBackward(dx, dNorm, a.x1, y.beside.before, b.rstdX, blocks, s, false)
	m.normBackward(dx, dRouter, a.x1, y.beside.router, b.rstdRouter, blocks, s, false)
	m.normBackward(d, dout, b.block, y.beside.block, b.rstdBlock, blocks, s, true)
	m.blockBackward(ws, y, a, dNorm, d, blocks)
}

// valueNorm returns the shape of the norm of values, which has no weight: it adds 1 to zeros.
func (c Config) valueNorm() kernels.NormShape {
	s := c.headNorm(c.KVHeads, (c.Heads+c.KVHeads)*c.Head)
	s.UnitOffset = true
	return s
}

// expandKeys sets a.qkv to queries, keys and values from a.wide, queries and keys. a.raw is scratch.
func (m *Model) expandKeys(c Config, a *acts) {
	be, keys, before := m.be, c.KVHeads*c.Head, c.Heads*c.Head
	k := a.raw.Slice(0, a.raw.Len()/c.QKV()*keys)
	be.Zero(a.qkv)
	be.AddColumns(a.qkv, a.wide, before+keys, c.QKV(), 0, 1)
	be.TakeColumns(k, a.wide, keys, before+keys, before, 1)
	be.AddColumns(a.qkv, k, keys, c.QKV(), before+keys, 1)
}

// joinKeys sets dProjected, the gradient of queries and keys, from dqkv, the gradient of queries, keys and values.
// a.raw is scratch.
func (m *Model) joinKeys(c Config, a *acts, dProjected, dqkv kernels.Buffer) {
	be, keys, before := m.be, c.KVHeads*c.Head, c.Heads*c.Head
	v := a.raw.Slice(0, a.raw.Len()/c.QKV()*keys)
	be.TakeColumns(dProjected, dqkv, before+keys, c.QKV(), 0, 1)
	be.TakeColumns(v, dqkv, keys, c.QKV(), before+keys, 1)
	be.AddColumns(dProjected, v, keys, before+keys, before, 1)
}

// scalars are the numbers by which layers and experts are multiplied, and xIELU's, on the host.
type scalars struct {
	read    bool
	layers  []float32       // [L]
	experts [][]float32     // [L][E]
	xielu   []kernels.Xielu // [L]
}

// readScalars reads them from the weights, if the model has any and they may have changed.
func (m *Model) readScalars() {
	c := m.Config
	if m.scalars.read || !c.LayerScales && !c.Experts.Beside && c.Gate != kernels.XIELU {
		return
	}
	if c.Gate == kernels.XIELU {
		m.scalars = scalars{read: true, xielu: m.readXielu()}
		return
	}
	view := func(name string) kernels.Buffer {
		if m.base != nil {
			return m.base.vectors.view(name)
		}
		return m.params.view(name)
	}
	s := scalars{read: true, layers: make([]float32, c.Layers), experts: make([][]float32, c.Layers)}
	for l := range c.Layers {
		s.layers[l] = 1
		if c.LayerScales {
			m.be.Copy(kernels.Host(s.layers[l:l+1]), view(layerScalar(l)))
		}
		if c.beside(l) {
			s.experts[l] = make([]float32, c.Experts.Count)
			m.be.Copy(kernels.Host(s.experts[l]), view(expertScales(l)))
		}
	}
	m.be.Sync()
	m.scalars = s
}

// layerScale returns the number that multiplies the output of layer l.
func (m *Model) layerScale(l int) float64 {
	if !m.Config.LayerScales {
		return 1
	}
	return float64(m.scalars.layers[l])
}

// leave adds delta, the output of layer l's last block, to the residual stream x, as sum, multiplies it by the
// layer's number, and sets in to its norm w. sum may be x.
func (m *Model) leave(l int, sum, in, rstd, x, delta kernels.Buffer, w norm) {
	if !m.Config.LayerScales {
		m.addEnter(sum, in, rstd, x, delta, w)
		return
	}
	if sum != x {
		m.be.Copy(sum, x)
	}
	m.be.Add(sum, delta)
	m.multiply(sum, m.Config.Width, m.layerScale(l))
	m.be.RMSNorm(in, rstd, sum, w.w, m.Config.norm(), m.Config.residualEps())
}

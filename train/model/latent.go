package model

import (
	"fmt"

	"exp/kernels"
)

// This file has latent attention (DeepSeek-V2, arXiv:2405.04434 §2.1): with n the layer's normed input,
//
//	q        = Wqb · Norm(Wqa · n), or Wq · n
//	[l | r]  = Wkva · n                      r: the rotated channels of all keys
//	[k | v]  = Wkvb · Norm(l)                of each head
//	x       += Wo · values(Attention(Rope(JoinLatent(q, [k | v], r))))
//
// The cache holds the heads' keys and values, not l and r, so sampling and training are one computation.

// Latent is the shape of latent attention.
type Latent struct {
	Rank        int     // of keys and values
	QueryRank   int     // of queries; 0: one map makes them
	Nope, Rope  int     // channels of a query or key, without and with rotary positions
	Value       int     // channels of a value
	Interleaved bool    // neighbouring channels are rotated together
	NormEps     float64 // of the norms of l and of the queries
}

// latent reports whether attention is latent.
func (c Config) latent() bool { return c.Latent.Rank > 0 }

// latentShape returns the shape for kernels.
func (c Config) latentShape() kernels.LatentShape {
	x := c.Latent
	return kernels.LatentShape{H: c.Heads, Nope: x.Nope, Rope: x.Rope, Value: x.Value, Interleaved: x.Interleaved}
}

// kva, kvb and values are the widths of rows of [l | r], [k | v] and v.
func (c Config) kva() int    { return c.Latent.Rank + c.Latent.Rope }
func (c Config) kvb() int    { return c.Heads * (c.Latent.Nope + c.Latent.Value) }
func (c Config) values() int { return c.Heads * c.Latent.Value }

// validateLatent reports invalid settings of latent attention.
func (c Config) validateLatent() (errs []error) {
	if !c.latent() {
		return nil
	}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	x := c.Latent
	if x.QueryRank < 0 || x.Nope < 0 || x.Rope < 2 || x.Rope%2 != 0 || x.Value < 1 || x.Value > x.Nope+x.Rope ||
		!(x.NormEps > 0) {
		bad("invalid latent attention: queries of rank %d, %d channels without and %d with positions, values of %d, "+
			"norm_eps %g", x.QueryRank, x.Nope, x.Rope, x.Value, x.NormEps)
	}
	if c.Head != x.Nope+x.Rope || c.Rotary != x.Rope || c.KVHeads != c.Heads {
		bad("heads of latent attention have %d channels, %d of them rotated, and keys of their own; not %d, %d, "+
			"and %d for %d", x.Nope+x.Rope, x.Rope, c.Head, c.Rotary, c.KVHeads, c.Heads)
	}
	if c.QKVBias || c.OutBias || c.QKNorm || c.Fused || c.OutputGate || c.hasLinear() || c.Sinks ||
		c.Interleaved {
		bad("latent attention is not supported with biases, norms of heads, fused projections, output gates, linear " +
			"attention or sinks, and has interleaved positions of its own")
	}
	return errs
}

// latentLinears returns the maps of latent attention, whose names begin with p: the first of the queries, the ones
// between, and the output projection.
func (c Config) latentLinears(p string) (first linearSpec, inner []linearSpec, out linearSpec) {
	x := c.Latent
	one := func(name string, rows, in int) linearSpec { return linearSpec{[]string{p + name}, []int{rows}, in} }
	first = one("q_proj", c.Heads*c.Head, c.Width)
	if x.QueryRank > 0 {
		first = one("q_a_proj", x.QueryRank, c.Width)
		inner = append(inner, one("q_b_proj", c.Heads*c.Head, x.QueryRank))
	}
	inner = append(inner, one("kv_a_proj_with_mqa", c.kva(), c.Width), one("kv_b_proj", c.kvb(), x.Rank))
	return first, inner, one("o_proj", c.Width, c.values())
}

// latentNorms returns the names of the norms of queries and of keys and values.
func latentNorms(l int) (query, keys string) {
	p := fmt.Sprintf("model.layers.%d.self_attn.", l)
	return p + "q_a_layernorm.weight", p + "kv_a_layernorm.weight"
}

// latent adds the tensors of latent attention.
func (x *layout) latent(c Config, l int, s layerLinears) {
	query, keys := latentNorms(l)
	x.linear(s.qkv, false)
	if c.Latent.QueryRank > 0 {
		x.one(query, c.Latent.QueryRank)
	}
	for _, y := range s.inner {
		x.linear(y, false)
	}
	x.one(keys, c.Latent.Rank)
	x.linear(s.o, false)
}

// latent holds the maps of latent attention between its first and last, and its norms.
type latent struct {
	qb, kva, kvb linear // qb is empty if one map makes the queries
	query, keys  norm
}

func (b *binder) latent(l int, s layerLinears) *latent {
	y, inner := &latent{}, s.inner
	query, keys := latentNorms(l)
	if b.Config.Latent.QueryRank > 0 {
		y.qb, y.query, inner = b.linear(inner[0], false), b.vector(query), inner[1:]
	}
	y.kva, y.kvb, y.keys = b.linear(inner[0], false), b.linear(inner[1], false), b.vector(keys)
	return y
}

// linears returns the maps.
func (y *latent) linears() []*linear {
	if y == nil {
		return nil
	}
	return []*linear{&y.qb, &y.kva, &y.kvb}
}

// latentActs are a layer's activations for N rows.
type latentActs struct {
	qa, queryRstd kernels.Buffer // [N,QueryRank] floats, [N]: queries before their norm
	qn, q         kernels.Buffer // [N,QueryRank] after it, [N,HD]
	kva, l        kernels.Buffer // [N,Rank+Rope], [N,Rank] floats
	keysRstd      kernels.Buffer // [N]
	ln, r, kvb    kernels.Buffer // [N,Rank], [N,Rope], [N,H(Nope+Value)]
	values        kernels.Buffer // [N,H·Value]: of attention's result
}

func (a *latentActs) alloc(c Config, N int, f, o func(n int) kernels.Buffer) {
	x := c.Latent
	if x.QueryRank > 0 {
		a.qa, a.queryRstd, a.qn = f(N*x.QueryRank), f(N), o(N*x.QueryRank)
	}
	a.q, a.kva, a.l, a.keysRstd = o(N*c.Heads*c.Head), f(N*c.kva()), f(N*x.Rank), f(N)
	a.ln, a.r, a.kvb, a.values = o(N*x.Rank), o(N*x.Rope), o(N*c.kvb()), o(N*c.values())
}

func (a *latentActs) cut(c Config, n int) {
	x := c.Latent
	for _, b := range []struct {
		b     *kernels.Buffer
		width int
	}{{&a.qa, x.QueryRank}, {&a.queryRstd, 1}, {&a.qn, x.QueryRank}, {&a.q, c.Heads * c.Head}, {&a.kva, c.kva()},
		{&a.l, x.Rank}, {&a.keysRstd, 1}, {&a.ln, x.Rank}, {&a.r, x.Rope}, {&a.kvb, c.kvb()},
		{&a.values, c.values()}} {
		if !b.b.Empty() {
			*b.b = b.b.Slice(0, n*b.width)
		}
	}
}

// plain returns the shape of a norm of whole rows.
func plain(width int) kernels.NormShape {
	return kernels.NormShape{Heads: 1, Dim: width, Stride: width}
}

// projectLatent computes a.qkv from a.n1, before rotation.
func (m *Model) projectLatent(y *layer, a *acts, low *LowRank) {
	c, be, x, t := m.Config, m.be, m.Config.Latent, &a.latent
	if x.QueryRank > 0 {
		y.qkv.apply(be, t.qa, a.n1, low)
		be.RMSNorm(t.qn, t.queryRstd, t.qa, y.latent.query.w, plain(x.QueryRank), x.NormEps)
		y.latent.qb.apply(be, t.q, t.qn, low)
	} else {
		y.qkv.apply(be, t.q, a.n1, low)
	}
	y.latent.kva.apply(be, t.kva, a.n1, low)
	be.TakeColumns(t.l, t.kva, x.Rank, c.kva(), 0, 1)
	be.TakeColumns(t.r, t.kva, x.Rope, c.kva(), x.Rank, 1)
	be.RMSNorm(t.ln, t.keysRstd, t.l, y.latent.keys.w, plain(x.Rank), x.NormEps)
	y.latent.kvb.apply(be, t.kvb, t.ln, low)
	be.JoinLatent(a.qkv, t.q, t.kvb, t.r, c.latentShape())
}

// latentGrads is the working memory of a backward pass.
type latentGrads struct {
	values, q, kvb, r kernels.Buffer // operands
	qa, kva, l, in    kernels.Buffer // floats; in [N,C]
}

func (g *latentGrads) alloc(c Config, N int, f, o func(n int) kernels.Buffer) {
	g.values, g.q, g.kvb, g.r = o(N*c.values()), o(N*c.Heads*c.Head), o(N*c.kvb()), o(N*c.Latent.Rope)
	g.kva, g.l, g.in = f(N*c.kva()), f(N*c.Latent.Rank), f(N*c.Width)
	if c.Latent.QueryRank > 0 {
		g.qa = f(N * c.Latent.QueryRank)
	}
}

// latentBackward sets dNorm, the gradient of the layer's normed input, from dqkv, the gradient before rotation.
func (m *Model) latentBackward(ws *Workspace, y *layer, a *acts, dNorm, dqkv, blocks kernels.Buffer) {
	c, be, n, x, t, g := m.Config, m.be, ws.n, m.Config.Latent, &a.latent, &ws.latentGrads
	dq, dkvb, dr := g.q.Slice(0, t.q.Len()), g.kvb.Slice(0, t.kvb.Len()), g.r.Slice(0, t.r.Len())
	dkva, dl, in := g.kva.Slice(0, t.kva.Len()), g.l.Slice(0, t.l.Len()), g.in.Slice(0, n*c.Width)
	be.SplitLatent(dq, dkvb, dr, dqkv, c.latentShape())
	y.latent.kvb.backward(be, dl, dkvb, t.ln, blocks, &ws.low)
	m.normBackward(dl, dl, t.l, y.latent.keys, t.keysRstd, blocks, plain(x.Rank), true)
	be.Zero(dkva)
	be.AddColumns(dkva, dl, x.Rank, c.kva(), 0, 1)
	be.AddColumns(dkva, dr, x.Rope, c.kva(), x.Rank, 1)
	y.latent.kva.backward(be, dNorm, dkva, a.n1, blocks, &ws.low)
	if x.QueryRank == 0 {
		y.qkv.backward(be, in, dq, a.n1, blocks, &ws.low)
	} else {
		dqa := g.qa.Slice(0, t.qa.Len())
		y.latent.qb.backward(be, dqa, dq, t.qn, blocks, &ws.low)
		m.normBackward(dqa, dqa, t.qa, y.latent.query, t.queryRstd, blocks, plain(x.QueryRank), true)
		y.qkv.backward(be, in, dqa, a.n1, blocks, &ws.low)
	}
	be.Add(dNorm, in)
}

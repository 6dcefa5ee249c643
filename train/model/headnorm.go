package model

import (
	"errors"
	"slices"

	"exp/kernels"
)

// This file has what OLMo 1 and Command R+ do to queries, keys and values before their rotary positions: a limit of
// their values (clip_qkv), and LayerNorm of each head of queries and keys, whose weight is the head's own.
//
// The norm is a LayerNorm of all heads' rows, whose weight is 1, and a product with the weights. This product is an
// RMSNorm whose eps is so large that it divides by exactly 2^plainExponent, as in parallel.go; a factor of
// 2^plainExponent takes that back, exactly, too.

// clip cuts queries, keys and values, which it keeps as a.raw.
func (m *Model) clip(a *acts) {
	if m.Config.ClipQKV > 0 {
		m.be.Copy(a.raw, a.qkv)
		m.be.Clip(a.qkv, a.raw, m.Config.ClipQKV)
	}
}

// headNormRoom is scratch memory of LayerNorm of heads, of all layers: floats, n the heads of queries or of keys.
type headNormRoom struct {
	raw, normed, out kernels.Buffer    // [N,n·D]
	stats, rstd      kernels.Buffer    // [N·n,2], [N]
	d                kernels.Buffer    // [N,n·D] the gradient of the norm's output
	back             [2]kernels.Buffer // [N,n·D] the gradients of queries and keys before it
	blocks           [2]indexBuffer    // gradient blocks of rows of queries' heads, and of keys'
}

// alloc makes the buffers for N rows; f allocates floats.
func (h *headNormRoom) alloc(c Config, N int, train bool, f func(n int) kernels.Buffer) {
	if !c.HeadLayerNorm {
		return
	}
	n := N * c.Heads * c.Head
	h.raw, h.normed, h.out, h.stats, h.rstd = f(n), f(n), f(n), f(2*N*c.Heads), f(N)
	if train {
		h.d, h.back = f(n), [2]kernels.Buffer{f(n), f(N * c.KVHeads * c.Head)}
	}
}

// normedPart is a part of a row of queries, keys and values that is normalised.
type normedPart struct {
	heads, offset int
	w             norm
}

func (y *layer) normedParts() []normedPart {
	c := y.own
	return []normedPart{{c.Heads, 0, y.qNorm}, {c.KVHeads, c.Heads * c.Head, y.kNorm}}
}

// plainEps makes an RMSNorm divide by 2^plainExponent.
const plainEps = 1 << (2 * plainExponent)

// weighHeads sets h.out to a part of a.raw after its norm, over 2^plainExponent, and the rest of h, cut to the rows,
// to what its backward pass needs.
func (m *Model) weighHeads(h headNormRoom, a *acts, p normedPart) headNormRoom {
	c, be := m.Config, m.be
	rows, D := a.raw.Len()/c.QKV(), c.Head
	n := p.heads * D
	cut := func(b *kernels.Buffer, n int) { *b = b.Slice(0, rows*n) }
	cut(&h.raw, n)
	cut(&h.normed, n)
	cut(&h.out, n)
	cut(&h.stats, 2*p.heads)
	cut(&h.rstd, 1)
	be.TakeColumns(h.raw, a.raw, n, c.QKV(), p.offset, 1)
	be.LayerNorm(h.normed, h.stats, h.raw, m.headOnes(), m.zeros.Slice(0, D), D, c.NormEps)
	be.RMSNorm(h.out, h.rstd, h.normed, p.w.w, kernels.NormShape{Heads: 1, Dim: n, Stride: n}, plainEps)
	return h
}

// headOnes is the weight of a LayerNorm of heads.
func (m *Model) headOnes() kernels.Buffer {
	return m.zeros.Slice(m.Config.Width, m.Config.Width+m.Config.Head)
}

// fillHeadOnes sets it.
func (m *Model) fillHeadOnes() {
	if m.Config.HeadLayerNorm {
		m.be.Copy(m.headOnes(), kernels.Host(slices.Repeat([]float32{1}, m.Config.Head)))
		m.be.Sync()
	}
}

// layerNormHeads normalises queries and keys, and keeps them as a.raw.
func (m *Model) layerNormHeads(y *layer, a *acts) {
	c, be := m.Config, m.be
	be.Copy(a.raw, a.qkv)
	be.Zero(a.qkv)
	for _, p := range y.normedParts() {
		h := m.weighHeads(*a.heads, a, p)
		be.AddColumns(a.qkv, h.out, p.heads*c.Head, c.QKV(), p.offset, 1<<plainExponent)
	}
	n, at := c.KVHeads*c.Head, (c.Heads+c.KVHeads)*c.Head
	values := a.heads.raw.Slice(0, a.raw.Len()/c.QKV()*n)
	be.TakeColumns(values, a.raw, n, c.QKV(), at, 1)
	be.AddColumns(a.qkv, values, n, c.QKV(), at, 1)
}

// layerNormHeadsBackward takes dqkv through the norms of queries and keys.
func (m *Model) layerNormHeadsBackward(ws *Workspace, y *layer, a *acts, dqkv, blocks kernels.Buffer) {
	c, be := m.Config, m.be
	D, rows := c.Head, dqkv.Len()/c.QKV()
	for i, p := range y.normedParts() {
		n := p.heads * D
		h := m.weighHeads(*a.heads, a, p)
		d := h.d.Slice(0, int(rows*n))
		be.TakeColumns(d, dqkv, n, c.QKV(), p.offset, 1<<plainExponent)
		m.normBackward(d, d, h.normed, p.w, h.rstd, blocks, kernels.NormShape{Heads: 1, Dim: n, Stride: n}, true)
		own := ws.headBlocks(i)
		be.LayerNormBackward(h.back[i].Slice(0, int(rows*n)), m.unread.Slice(0, D), m.unread.Slice(D, 2*D), d, h.raw,
			m.headOnes(), h.stats, own, D)
	}
	n, at := c.KVHeads*D, (c.Heads+c.KVHeads)*D
	values := a.heads.d.Slice(0, int(rows*n))
	be.TakeColumns(values, dqkv, n, c.QKV(), at, 1)
	be.Zero(dqkv)
	for i, p := range y.normedParts() {
		be.AddColumns(dqkv, a.heads.back[i].Slice(0, int(rows*p.heads*D)), p.heads*D, c.QKV(), p.offset, 1)
	}
	be.AddColumns(dqkv, values, n, c.QKV(), at, 1)
}

// uploadHeadBlocks uploads the gradient blocks of rows of queries' heads, and of keys'.
func (ws *Workspace) uploadHeadBlocks() {
	for i, heads := range []int{ws.c.Heads, ws.c.KVHeads} {
		b := &ws.headNorms.blocks[i]
		if b.dev.Empty() {
			continue
		}
		b.host = b.host[:0]
		for _, at := range ws.blocks.host {
			b.host = append(b.host, at*int32(heads))
		}
		b.upload(ws.be)
	}
}

// headBlocks returns them.
func (ws *Workspace) headBlocks(i int) kernels.Buffer {
	b := ws.headNorms.blocks[i]
	return b.dev.Slice(0, len(b.host))
}

// validateHeadNorm reports settings that no family has together.
func (c Config) validateHeadNorm() (errs []error) {
	if c.ClipQKV < 0 {
		errs = append(errs, errors.New("model: the limit of queries, keys and values cannot be negative"))
	}
	if (c.ClipQKV > 0 || c.HeadLayerNorm) && (c.QKNorm || c.Norm == RMSNorm) {
		errs = append(errs, errors.New("model: a limit of queries, keys and values, or their LayerNorm, goes with "+
			"LayerNorm of the residual stream and without RMSNorm of queries and keys"))
	}
	if c.HeadLayerNorm && (c.ClipQKV > 0 || c.Norm != WeightLayerNorm) {
		errs = append(errs, errors.New("model: LayerNorm of queries and keys goes with LayerNorm without biases, and "+
			"not with a limit of them"))
	}
	return errs
}

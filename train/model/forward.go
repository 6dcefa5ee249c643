package model

import "exp/kernels"

// Forward computes the hidden states of the loaded batch, ws.Hidden.
func (m *Model) Forward(ws *Workspace) {
	c, be := m.Config, m.be
	C := c.Width
	delta := ws.delta.Slice(0, ws.n*C)
	be.Embed(ws.input(0), m.embed, ws.ids.dev.Slice(0, ws.n), 1)
	for l := range m.layers {
		y, a, x0 := &m.layers[l], ws.layerActs(l), ws.input(l)
		if l == 0 {
			be.RMSNorm(a.n1, a.rstd1, x0, y.norm1, plain(C), c.NormEps)
		} else {
			be.AddRMSNorm(x0, a.n1, a.rstd1, ws.layerActs(l-1).x1, delta, y.norm1, plain(C), c.NormEps)
		}
		m.block(ws, y, a, x0)
		be.MatMul(delta, a.act, y.down, kernels.Buffer{})
	}
	x1 := ws.layerActs(len(m.layers) - 1).x1
	be.AddRMSNorm(ws.last.Slice(0, ws.n*C), ws.Hidden(), ws.rstdEnd.Slice(0, ws.n), x1, delta, m.norm, plain(C), c.NormEps)
	ws.gathered = false
}

// block computes a layer's activations from a.n1 up to a.act.
func (m *Model) block(ws *Workspace, y *layer, a acts, x0 kernels.Buffer) {
	c, be := m.Config, m.be
	be.MatMul(a.qkv, a.n1, y.qkv, y.qkvBias)
	if c.QKNorm {
		be.Copy(a.raw, a.qkv)
		be.RMSNorm(a.qkv, a.qRstd, a.raw, y.qNorm, c.queryHeads(), c.NormEps)
		be.RMSNorm(a.qkv, a.kRstd, a.raw, y.kNorm, c.keyHeads(), c.NormEps)
	}
	be.Rope(a.qkv, m.cos, m.sin, ws.pos.dev.Slice(0, ws.n), c.attention(), false)
	offsets, groups := ws.sequences()
	be.Attention(a.att, a.stats, a.qkv, offsets, groups, c.attention())
	out := ws.attOut()
	be.MatMul(out, a.att, y.o, kernels.Buffer{})
	be.AddRMSNorm(a.x1, a.n2, a.rstd2, x0, out, y.norm2, plain(c.Width), c.NormEps)
	be.MatMulSwiGLU(a.act, a.gateUp, a.n2, y.gateUp)
}

// plain is the shape of a norm over rows of C.
func plain(C int) kernels.NormShape { return kernels.NormShape{Heads: 1, Dim: C, Stride: C} }

func (c Config) queryHeads() kernels.NormShape {
	return kernels.NormShape{Heads: c.Heads, Dim: c.Head, Stride: c.QKV()}
}

func (c Config) keyHeads() kernels.NormShape {
	return kernels.NormShape{Heads: c.KVHeads, Dim: c.Head, Stride: c.QKV(), Offset: c.Heads * c.Head}
}

// scoredRows gathers the hidden states that scores and values are read from.
func (ws *Workspace) scoredRows() kernels.Buffer {
	C := ws.c.Width
	h := ws.h.Slice(0, ws.r*C)
	if !ws.gathered {
		ws.be.GatherRows(h, ws.Hidden(), ws.rows.dev.Slice(0, ws.r), C)
		ws.gathered = true
	}
	return h
}

// Scores computes ws.LogProb and ws.Entropy of the completion tokens under
// softmax(logits/temperature).
func (m *Model) Scores(ws *Workspace, temperature float64) {
	ws.temperature = temperature
	m.be.LogProb(ws.currentScores(), ws.scoredRows(), m.output, ws.targets.dev.Slice(0, ws.r), kernels.Softmax{Temperature: temperature})
}

// Values computes ws.Value: the critic's value of the state before each completion
// token.
func (m *Model) Values(ws *Workspace) {
	m.be.MatMul(ws.Value(), ws.scoredRows(), m.value, m.params.view("score.bias"))
}

// Logits sets out [R,V] to the logits of the scored rows, unscaled. It is for
// probes and exact policies on small vocabularies; training never stores logits.
func (m *Model) Logits(ws *Workspace, out kernels.Buffer) {
	m.be.MatMul(out, ws.scoredRows(), m.output, kernels.Buffer{})
}

package model

import (
	"cmp"

	"exp/kernels"
)

// Forward computes the hidden states of the loaded batch, ws.Hidden.
func (m *Model) Forward(ws *Workspace) {
	c := m.Config
	C := c.Width
	delta := kernels.Buffer{}
	m.reach(ws.longest)
	m.readScalars()
	m.showImages(ws)
	m.embedTokens(&ws.images, ws.input(0), ws.ids.dev.Slice(0, ws.n), ws.delta.Slice(0, ws.n*C))
	m.addPositions(ws.input(0), ws.pos.dev.Slice(0, ws.n), ws.delta.Slice(0, ws.n*C))
	m.normEmbeddings(ws.input(0), ws.layerActs(0).rstd1)
	m.embedLayers(ws.tables.cut(c, ws.n), ws.input(0), ws.ids.dev.Slice(0, ws.n))
	for l := range m.layers {
		y, a, x0 := &m.layers[l], ws.layerActs(l), ws.input(l)
		if l == 0 {
			m.enter(a.n1, a.rstd1, x0, y.norm1, ws.delta.Slice(0, ws.n*C))
		} else {
			before := ws.layerActs(l - 1)
			m.leave(l-1, x0, a.n1, a.rstd1, before.left(c), delta, y.norm1)
		}
		ws.keepInput(l)
		if y.mixes {
			delta = m.block(ws, y, a, x0)
		}
		if y.feeds {
			delta = m.feedForward(y, &a, &ws.low, ws.delta.Slice(0, ws.n*C))
			m.readLayer(y, &a, &ws.low, ws.tables.cut(c, ws.n).rows, delta)
			m.deepen(&ws.images, l, delta, ws.attOut())
			ws.keepRouting(l, a)
		}
	}
	end := ws.layerActs(len(m.layers) - 1)
	m.finish(ws.last.Slice(0, ws.n*C), ws.Hidden(), ws.rstdEnd.Slice(0, int(ws.n*c.normStats())), end.left(c), delta)
	ws.gathered = false
}

// finish adds delta, the output of the last block, to the residual stream x, as sum, and sets out to its norm.
func (m *Model) finish(sum, out, rstd, x, delta kernels.Buffer) {
	m.leave(m.Config.Layers-1, sum, out, rstd, x, delta, m.norm)
}

// enter sets in to what a block reads of the residual stream x: x itself where w is empty. t [N,C] is scratch.
func (m *Model) enter(in, rstd, x kernels.Buffer, w norm, t kernels.Buffer) {
	switch {
	case w.w.Empty():
		m.be.Copy(in, x)
	case m.Config.Norm != RMSNorm:
		m.layerNorm(in, rstd, x, w, t)
	default:
		m.be.RMSNorm(in, rstd, x, w.w, m.Config.norm(), m.Config.residualEps())
	}
}

// addEnter adds delta, the output of the block before, to the residual stream x, as sum, and sets
// in to what the next block reads of it. sum may be x. A LayerNorm overwrites delta.
func (m *Model) addEnter(sum, in, rstd, x, delta kernels.Buffer, w norm) {
	if !w.w.Empty() && m.Config.Norm == RMSNorm {
		m.be.AddRMSNorm(sum, in, rstd, x, delta, w.w, m.Config.norm(), m.Config.residualEps())
		return
	}
	m.addTo(sum, x, delta)
	m.enter(in, rstd, sum, w, delta)
}

// addTo adds delta to the residual stream x, as sum, which may be x.
func (m *Model) addTo(sum, x, delta kernels.Buffer) {
	if sum != x {
		m.be.Copy(sum, x)
	}
	m.be.Add(sum, delta)
}

// block computes a layer's activations from a.n1 up to a.n2 and returns what its attention adds to the residual
// stream.
func (m *Model) block(ws *Workspace, y *layer, a acts, x0 kernels.Buffer) kernels.Buffer {
	if y.delta != nil {
		m.linearAttention(y, &a, &ws.low, deltaMemory{}, ws.runs())
	}
	if y.attends {
		m.project(y, &a, &ws.low, ws.turns())
		m.lend(ws, y, &a)
		offsets, groups := ws.sequences()
		m.be.Attention(a.att, a.stats, a.qkv, offsets, groups, ws.images.seen(y.attention))
		m.sink(y, &a)
	}
	out := ws.attOut()
	m.join(y, &a, &ws.low, x0, out, ws.delta.Slice(0, out.Len()))
	return out
}

// sink gives each head of a.att its sink, if the model has them.
func (m *Model) sink(y *layer, a *acts) {
	if m.Config.Sinks {
		m.be.Sink(a.att, a.att, a.stats, y.sinks.w, y.attention)
	}
}

// project computes queries, keys and values of rows from a.n1, turned as t says.
func (m *Model) project(y *layer, a *acts, low *LowRank, t turns) {
	c, be := y.own, m.be
	switch {
	case y.shares:
		m.queriesAlone(y, a, low)
	case c.keyValues():
		y.qkv.apply(be, a.wide, a.n1, low)
		m.expandKeys(c, a)
	case c.latent():
		m.projectLatent(y, a, low)
	case c.OutputGate:
		y.qkv.apply(be, a.wide, a.n1, low)
		be.SplitGates(a.qkv, a.wide, y.attention)
	default:
		y.qkv.apply(be, a.qkv, m.attentionInput(a), low)
	}
	if c.GateMap {
		m.gates(y, a, low)
	}
	if c.QKNorm && !c.LateQKNorm {
		m.normHeads(y, a)
	}
	m.clip(a)
	if c.HeadLayerNorm {
		m.layerNormHeads(y, a)
	}
	if y.rotates {
		table := t.of(y)
		be.Rope(a.qkv, table.cos, table.sin, t.pos, y.attention, false)
	}
	if c.LateQKNorm {
		m.normHeads(y, a)
	}
}

// normHeads normalises queries and keys, and keeps them as a.raw.
func (m *Model) normHeads(y *layer, a *acts) {
	c, be := y.own, m.be
	be.Copy(a.raw, a.qkv)
	be.RMSNorm(a.qkv, a.qRstd, a.raw, y.qNorm.w, c.queryNorm(), c.NormEps)
	if y.shares {
		return
	}
	be.RMSNorm(a.qkv, a.kRstd, a.raw, y.kNorm.w, c.keyNorm(), c.NormEps)
	if c.ValueNorm {
		be.RMSNorm(a.qkv, a.vRstd, a.raw, m.bare(c.Head).w, c.valueNorm(), c.NormEps)
	}
}

// join sets out [N,C] to the attention output. If a feed-forward block follows, it adds that to the residual
// stream x0, as a.x1, and normalises it. t [N,C] is scratch.
func (m *Model) join(y *layer, a *acts, low *LowRank, x0, out, t kernels.Buffer) {
	c, be := m.Config, m.be
	if c.OutputGate && y.delta == nil {
		be.OutputGate(a.gated, a.att, a.wide, y.attention)
	}
	if c.GateMap {
		be.OutputGate(a.gated, a.att, a.gates, c.gateShape())
	}
	if c.latent() {
		be.TakeValues(a.latent.values, a.att, c.latentShape())
	}
	switch {
	case c.Parallel:
		m.joinParallel(y, a, low, out, t)
	case y.post1.w.Empty():
		y.o.apply(be, out, a.joined(c, y), low)
	default:
		y.o.apply(be, a.rawO, a.joined(c, y), low)
		be.RMSNorm(out, a.rstdO, a.rawO, y.post1.w, c.norm(), c.NormEps)
	}
	switch {
	case c.Branches != InTurn:
		m.branch(y, a, x0, out, t)
	case y.feeds:
		m.addEnter(a.x1, a.n2, a.rstd2, x0, out, y.norm2)
	}
}

// feedForward computes and returns the feed-forward block's contribution to the residual
// stream from a.n2: out [N,C].
func (m *Model) feedForward(y *layer, a *acts, low *LowRank, out kernels.Buffer) kernels.Buffer {
	c, be := m.Config, m.be
	raw, normed := out, !y.post2.w.Empty()
	if normed {
		raw = a.rawF
	}
	switch {
	case y.beside != nil:
		m.expertsBeside(y, a, low, out)
	case y.mix != nil:
		y.mix.forward(be, c, &a.mix, raw, a.n2, a.n2, nil)
	default:
		m.gate(y, a, low)
		y.down.apply(be, raw, a.act, low)
		m.multiply(raw, c.Width, cmp.Or(c.Multipliers.Down, 1))
	}
	if normed {
		be.RMSNorm(out, a.rstdF, raw, y.post2.w, c.norm(), c.NormEps)
	}
	return out
}

// gate computes the first half of a dense feed-forward block.
func (m *Model) gate(y *layer, a *acts, low *LowRank) {
	if y.fused {
		m.be.MatMulSwiGLU(a.act, a.gateUp, a.n2, y.gateUp.w)
		return
	}
	F := y.own.FFN
	y.gateUp.apply(m.be, a.gateUp, a.n2, low)
	m.scaleColumns(a.gateUp, a.act, F, m.Config.Gate.Factors()*F, 0, cmp.Or(m.Config.Multipliers.Gate, 1))
	if m.Config.Gate == kernels.XIELU {
		m.be.XIELU(a.act, a.gateUp, F, m.scalars.xielu[y.number])
		return
	}
	m.be.Gate(a.act, a.gateUp, F, m.Config.Gate)
}

// queryNorm and keyNorm return the shapes of QKNorm.
func (c Config) queryNorm() kernels.NormShape { return c.headNorm(c.Heads, 0) }

func (c Config) keyNorm() kernels.NormShape { return c.headNorm(c.KVHeads, c.Heads*c.Head) }

// headNorm returns the shape of a norm of n heads of a row of queries, keys and values.
func (c Config) headNorm(n, offset int) kernels.NormShape {
	s := kernels.NormShape{Heads: n, Dim: c.Head, Stride: c.QKV(), Offset: offset, UnitOffset: c.UnitOffset}
	if c.WideQKNorm {
		s.Heads, s.Dim = 1, n*c.Head
	}
	return s
}

// widestHead returns the most channels that a head has.
func (c Config) widestHead() int { return c.most(func(c Config) int { return c.Head }) }

// widestVector returns the most elements that a norm's weight has, or what the gradients of linear attention's
// frozen tensors need together.
func (c Config) widestVector() int {
	n := max(c.Width, c.queryNorm().Dim, c.widestHead())
	if c.Sinks {
		n = max(n, c.Heads)
	}
	n = max(n, c.Latent.Rank, c.Latent.QueryRank)
	if c.Norm != RMSNorm {
		n = max(n, 2*c.Width)
	}
	if c.HeadLayerNorm {
		n = max(n, c.Heads*c.Head)
	}
	if c.hasLinear() {
		n = max(n, c.Delta.Mixed()*c.Delta.Taps, 2*c.Delta.Values, c.Delta.ValueDim)
		if c.Delta.Scan {
			n = max(n, c.Delta.Mixed()*(c.Delta.Taps+1), 3*c.Delta.Values, c.Delta.Out())
		}
	}
	return n
}

// scoredRows gathers the hidden states that give scores and values.
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
	ws.softmax = m.Config.softmax(temperature)
	m.be.LogProb(ws.currentScores(), m.scoredOutput(ws), m.output.w, ws.targets.dev.Slice(0, ws.r), ws.softmax)
}

// Values computes ws.Value: the critic's value, or the reward model's score, of the state before each completion
// token.
func (m *Model) Values(ws *Workspace) {
	m.be.MatMul(ws.Value(), m.valueRows(ws), m.value, m.valueBias(m.params))
}

// valueBias returns the bias of the value head among parameters or gradients; empty if the head has none.
func (m *Model) valueBias(a arena) kernels.Buffer {
	if m.Heads.Score {
		return kernels.Buffer{}
	}
	return a.view("score.bias")
}

// Logits sets out [R,V] to the unscaled logits of the scored rows. It serves probes and
// exact policies on small vocabularies; training never stores logits.
func (m *Model) Logits(ws *Workspace, out kernels.Buffer) {
	m.logits(out, m.scoredOutput(ws))
}

// AllLogits sets out [n,V] to the logits of rows [from, from+n) of the loaded batch.
func (m *Model) AllLogits(ws *Workspace, from, n int, out kernels.Buffer) {
	C := m.Config.Width
	m.logits(out, m.outputRows(ws.Hidden().Slice(from*C, (from+n)*C), ws.output))
}

func (m *Model) logits(out, h kernels.Buffer) {
	c := m.Config
	m.be.Logits(out, h, m.output.w, c.LogitCap)
	if c.scalesLogits() {
		m.be.TakeColumns(out, out, c.Vocab, c.Vocab, 0, 1/c.logitDivisor())
	}
}

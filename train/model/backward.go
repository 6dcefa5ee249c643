package model

import (
	"cmp"

	"exp/kernels"
)

// Upstream says which results of the forward pass have a gradient waiting in the workspace.
type Upstream struct {
	Scores bool // ws.DLogProb and ws.DEntropy
	Values bool // ws.DValue
	LogZ   bool // ws.DLogZ
	Taught bool // ws.DTaught, which with ws.DEntropy takes the place of Scores
}

// Backward adds to the gradients of all parameters, for the batch of the last Forward. Take
// the micro-batches of a mini-batch in order (package kernels, "Gradient blocks").
func (m *Model) Backward(ws *Workspace, up Upstream) {
	if !m.trainable || ws.keep == KeepNothing {
		panic("model: backward pass of a frozen model or workspace")
	}
	c := m.Config
	C, n := c.Width, ws.n
	dHidden := ws.dNorm.Slice(0, n*C)
	m.headsBackward(ws, up, dHidden)

	blocks := ws.blockOffsets()
	dx := ws.dx.Slice(0, n*C)
	m.zeroShared(ws)
	m.setBackward(dx, dHidden, ws.last.Slice(0, n*C), m.norm, ws.rstdEnd.Slice(0, int(n*c.normStats())), blocks)
	for l := len(m.layers) - 1; l >= 0; l-- {
		y, a, x0 := &m.layers[l], ws.layerActs(l), ws.keptInput(l)
		if ws.keep == KeepInputs {
			m.recompute(ws, y, &a, x0)
		}
		m.multiply(dx, C, m.layerScale(l))
		m.keepDeepGradient(ws, l, dx)
		m.readLayerBackward(ws, y, &a, dx, blocks)
		if y.feeds {
			m.ffnBackward(ws, y, &a, dx, blocks)
		}
		if y.mixes {
			m.attentionBackward(ws, y, &a, x0, dx, blocks)
		}
	}
	if c.PerLayer > 0 && m.base == nil {
		m.embedLayersBackward(ws.tables.cut(c, n), ws.dTables.Slice(0, n*c.layersWidth()), dx, ws.keptInput(0),
			ws.ids.dev.Slice(0, n), ws.dNorm.Slice(0, n*C), blocks)
	}
	if m.dEmbed.Empty() {
		m.addFeatureGradients(ws, dx)
		return
	}
	if c.bareNorms() {
		m.normEmbeddingsBackward(ws, dx, blocks)
	}
	m.embedBackward(ws, dx, ws.dNorm.Slice(0, n*C))
	m.positionsBackward(ws, dx)
}

// recompute recomputes a layer's activations from its input.
func (m *Model) recompute(ws *Workspace, y *layer, a *acts, x0 kernels.Buffer) {
	c := m.Config
	m.enter(a.n1, a.rstd1, x0, y.norm1, ws.delta.Slice(0, ws.n*c.Width))
	if y.mixes {
		m.block(ws, y, *a, x0)
	}
	if !y.feeds {
		return
	}
	if y.mix != nil || !y.post2.w.Empty() {
		delta := m.feedForward(y, a, &ws.low, ws.delta.Slice(0, ws.n*c.Width))
		m.readLayer(y, a, &ws.low, ws.tables.cut(c, ws.n).rows, delta)
		return
	}
	m.gate(y, a, &ws.low)
}

// normBackward is RMSNormBackward for a norm that may be frozen.
func (m *Model) normBackward(dx, dout, x kernels.Buffer, w norm, rstd, blocks kernels.Buffer,
	s kernels.NormShape, set bool) {
	d := w.d
	if d.Empty() {
		d = m.unread.Slice(0, s.Dim)
	}
	m.be.RMSNormBackward(dx, d, dout, x, w.w, rstd, blocks, s, set)
}

// setBackward sets dx from dIn, the gradient of a norm of the residual stream x.
func (m *Model) setBackward(dx, dIn, x kernels.Buffer, w norm, rstd, blocks kernels.Buffer) {
	if m.Config.Norm != RMSNorm {
		m.layerNormBackward(dx, dIn, x, w, rstd, blocks)
		return
	}
	m.normBackward(dx, dIn, x, w, rstd, blocks, m.Config.norm(), true)
}

// enterBackward adds dIn, the gradient of what a block reads of the residual stream x, to dx.
func (m *Model) enterBackward(ws *Workspace, dx, dIn, x kernels.Buffer, w norm, rstd, blocks kernels.Buffer) {
	switch {
	case w.w.Empty():
		m.be.Add(dx, dIn)
	case m.Config.Norm != RMSNorm:
		t := ws.dPost.Slice(0, dx.Len())
		m.layerNormBackward(t, dIn, x, w, rstd, blocks)
		m.be.Add(dx, t)
	default:
		m.normBackward(dx, dIn, x, w, rstd, blocks, m.Config.norm(), false)
	}
}

// headsBackward sets dHidden [N,C] from the heads' gradients.
func (m *Model) headsBackward(ws *Workspace, up Upstream, dHidden kernels.Buffer) {
	C, be := m.Config.Width, m.be
	dh, rows := ws.dh.Slice(0, ws.r*C), ws.rows.dev.Slice(0, ws.r)
	switch {
	case (up.Scores || up.Taught) && up.Values:
		panic("model: cannot train an output projection and a value head together")
	case up.Taught:
		sc, tokens := ws.taughtScores()
		d := m.outputGradient(dh, ws.output)
		be.LogProbBackward(d, m.output.dw, ws.DTaught(), ws.DEntropy(), sc, m.scoredOutput(ws), m.output.w, tokens,
			ws.rowBlocks(), ws.softmax)
		m.takeOutput(dh, d)
		be.ScatterRows(dHidden, dh, rows, C)
	case up.Scores:
		d := m.outputGradient(dh, ws.output)
		be.LogProbBackward(d, m.output.dw, ws.DLogProb(), ws.DEntropy(), ws.currentScores(), m.scoredOutput(ws),
			m.output.w, ws.targets.dev.Slice(0, ws.r), ws.rowBlocks(), ws.softmax)
		m.takeOutput(dh, d)
		be.ScatterRows(dHidden, dh, rows, C)
	case up.Values:
		be.MatMulDW(m.grads.view("score.weight"), m.valueBias(m.grads), ws.DValue(), ws.scoredRows(),
			ws.rowBlocks())
		be.MatMulDX(dh, ws.DValue(), m.value)
		be.ScatterRows(dHidden, dh, rows, C)
	default:
		be.Zero(dHidden)
	}
	if up.LogZ {
		m.logZBackward(ws, dHidden)
	}
}

// ffnBackward takes dx, the gradient of the layer's output, through the
// feed-forward block, and adds the gradient of the block's input to it.
func (m *Model) ffnBackward(ws *Workspace, y *layer, a *acts, dx, blocks kernels.Buffer) {
	c, be, n := m.Config, m.be, ws.n
	dNorm, dout := ws.dNorm.Slice(0, n*c.Width), dx
	if !y.post2.w.Empty() {
		dout = ws.dPost.Slice(0, n*c.Width)
		m.normBackward(dout, dx, a.rawF, y.post2, a.rstdF, blocks, c.norm(), true)
	}
	switch {
	case y.beside != nil:
		m.besideBackward(ws, y, a, dx, dNorm, dout, blocks)
	case y.mix != nil:
		y.mix.backward(be, c, &a.mix, &ws.mixGrads, dNorm, kernels.Buffer{}, dout, a.n2, a.n2, blocks,
			ws.blocks.host, nil)
	default:
		m.blockBackward(ws, y, a, dNorm, m.scaledOutput(ws, dout, c.Multipliers.Down), blocks)
	}
	if c.Branches != InTurn { // attention's gradient comes from dx as it is
		be.Copy(ws.dBranch.Slice(0, n*c.Width), dNorm)
		return
	}
	m.enterBackward(ws, dx, dNorm, a.x1, y.norm2, a.rstd2, blocks)
}

// blockBackward sets dNorm, the gradient of a dense feed-forward block's input, from dout, its result's gradient.
func (m *Model) blockBackward(ws *Workspace, y *layer, a *acts, dNorm, dout, blocks kernels.Buffer) {
	c, be := m.Config, m.be
	switch {
	case y.fused && len(y.down.adapters) == 0:
		be.MatMulDXSwiGLU(a.gateUp, a.gateUp, dout, y.down.w)
		be.MatMulDX(dNorm, a.gateUp, y.gateUp.w)
		if !y.down.dw.Empty() {
			be.MatMulDW(y.down.dw, y.down.dbias, dout, a.act, blocks)
			be.MatMulDW(y.gateUp.dw, y.gateUp.dbias, a.gateUp, a.n2, blocks)
		}
	default:
		F := y.own.FFN
		dAct := ws.dAct.Slice(0, ws.n*F)
		y.down.backward(be, dAct, dout, a.act, blocks, &ws.low)
		if c.Gate == kernels.XIELU {
			d := y.dXielu
			if d.Empty() {
				d = m.unread.Slice(0, 2)
			}
			be.XIELUBackward(a.gateUp, d, a.gateUp, dAct, blocks, F, m.scalars.xielu[y.number])
		} else {
			be.GateBackward(a.gateUp, a.gateUp, dAct, F, c.Gate)
		}
		m.scaleColumns(a.gateUp, dAct, F, c.Gate.Factors()*F, 0, cmp.Or(c.Multipliers.Gate, 1))
		y.gateUp.backward(be, dNorm, a.gateUp, a.n2, blocks, &ws.low)
	}
}

// attentionBackward does the same for the attention block.
func (m *Model) attentionBackward(ws *Workspace, y *layer, a *acts, x0, dx, blocks kernels.Buffer) {
	c, n := m.Config, ws.n
	dNorm, dout := ws.dNorm.Slice(0, n*c.Width), dx
	if !y.post1.w.Empty() {
		dout = ws.dPost.Slice(0, n*c.Width)
		m.normBackward(dout, dx, a.rawO, y.post1, a.rstdO, blocks, c.norm(), true)
	}
	switch {
	case c.Parallel:
		m.parallelBackward(ws, y, a, dNorm, dout, blocks)
	case y.delta != nil:
		m.linearAttentionBackward(ws, y, a, dNorm, dout, blocks)
	default:
		m.headsOfAttentionBackward(ws, y, a, dNorm, dout, blocks)
	}
	m.branchBackward(ws, y, a, x0, dx, dNorm, blocks)
	m.enterBackward(ws, dx, dNorm, x0, y.norm1, a.rstd1, blocks)
}

// normHeadsBackward takes dqkv through the norms of queries and keys.
func (m *Model) normHeadsBackward(y *layer, a *acts, dqkv, blocks kernels.Buffer) {
	c := y.own
	if y.shares {
		m.normBackward(dqkv, dqkv, a.raw, y.qNorm, a.qRstd, blocks, c.queryNorm(), true)
		return
	}
	if c.ValueNorm {
		m.normBackward(dqkv, dqkv, a.raw, m.bare(c.Head), a.vRstd, blocks, c.valueNorm(), true)
	}
	m.normBackward(dqkv, dqkv, a.raw, y.qNorm, a.qRstd, blocks, c.queryNorm(), true)
	m.normBackward(dqkv, dqkv, a.raw, y.kNorm, a.kRstd, blocks, c.keyNorm(), true)
}

// headsOfAttentionBackward sets dNorm, the gradient of the layer's normed input, from dout, the gradient
// of the output projection's result.
func (m *Model) headsOfAttentionBackward(ws *Workspace, y *layer, a *acts, dNorm, dout, blocks kernels.Buffer) {
	c, be, n := y.own, m.be, ws.n
	dAtt, dqkv := ws.dAtt.Slice(0, n*c.Heads*c.Head), ws.dqkv.Slice(0, n*c.QKV())
	if c.latent() {
		dValues := ws.latentGrads.values.Slice(0, n*c.values())
		y.o.backward(be, dValues, dout, a.latent.values, blocks, &ws.low)
		be.PutValues(dAtt, dValues, c.latentShape())
	} else {
		y.o.backward(be, dAtt, dout, a.joined(c, y), blocks, &ws.low)
	}
	dProjected := dqkv
	if c.OutputGate {
		dProjected = ws.dProjected.Slice(0, n*c.Projected())
		be.OutputGateBackward(dAtt, dProjected, dAtt, a.att, a.wide, y.attention)
	}
	if c.GateMap {
		m.gatesBackward(ws, y, a, dAtt)
	}
	if c.Sinks {
		d := y.sinks.d
		if d.Empty() {
			d = m.unread.Slice(0, c.Heads)
		}
		be.SinkBackward(dAtt, d, dAtt, a.att, a.stats, y.sinks.w, blocks, y.attention)
	}
	offsets, groups := ws.sequences()
	be.AttentionBackward(dqkv, dAtt, a.att, a.stats, a.qkv, offsets, groups, ws.images.seen(y.attention))
	m.lendBackward(ws, y, dqkv)
	if c.LateQKNorm {
		m.normHeadsBackward(y, a, dqkv, blocks)
	}
	if y.rotates {
		t := ws.turns()
		table := t.of(y)
		be.Rope(dqkv, table.cos, table.sin, t.pos, y.attention, true)
	}
	if c.latent() {
		m.latentBackward(ws, y, a, dNorm, dqkv, blocks)
		return
	}
	switch {
	case c.QKNorm && !c.LateQKNorm:
		m.normHeadsBackward(y, a, dqkv, blocks)
	case c.HeadLayerNorm:
		m.layerNormHeadsBackward(ws, y, a, dqkv, blocks)
	case c.ClipQKV > 0:
		be.ClipBackward(dqkv, dqkv, a.raw, c.ClipQKV)
	}
	switch {
	case y.shares:
		dProjected = ws.dProjected.Slice(0, n*c.Heads*c.Head)
		be.TakeColumns(dProjected, dqkv, c.Heads*c.Head, c.QKV(), 0, 1)
	case c.OutputGate:
		be.JoinGates(dProjected, dqkv, y.attention)
	case c.keyValues():
		dProjected = ws.dProjected.Slice(0, n*c.Projected())
		m.joinKeys(c, a, dProjected, dqkv)
	}
	y.qkv.backward(be, dNorm, dProjected, m.attentionInput(a), blocks, &ws.low)
	if c.GateMap {
		m.gateMapBackward(ws, y, a, dNorm, blocks)
	}
}

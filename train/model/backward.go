package model

import "exp/kernels"

// Upstream says which results of the forward pass have a gradient waiting in the
// workspace.
type Upstream struct {
	Scores bool // ws.DLogProb and ws.DEntropy
	Values bool // ws.DValue
	LogZ   bool // ws.DLogZ
}

// Backward adds to the gradients of all parameters, for the batch of the last
// Forward. Micro-batches of a mini-batch must be taken in order (package kernels,
// "Gradient blocks").
func (m *Model) Backward(ws *Workspace, up Upstream) {
	if !m.trainable || ws.keep == KeepNothing {
		panic("model: backward pass of a frozen model or workspace")
	}
	c, be := m.Config, m.be
	C, n := c.Width, ws.n
	dHidden := ws.dNorm.Slice(0, n*C)
	m.headsBackward(ws, up, dHidden)

	blocks := ws.blockOffsets()
	dx := ws.dx.Slice(0, n*C)
	be.RMSNormBackward(dx, m.dNorm, dHidden, ws.last.Slice(0, n*C), m.norm, ws.rstdEnd.Slice(0, n), blocks, plain(C), true)
	for l := len(m.layers) - 1; l >= 0; l-- {
		y, a, x0 := &m.layers[l], ws.layerActs(l), ws.input(l)
		if ws.keep == KeepInputs {
			be.RMSNorm(a.n1, a.rstd1, x0, y.norm1, plain(C), c.NormEps)
			m.block(ws, y, a, x0)
		}
		m.ffnBackward(ws, y, a, dx, blocks)
		m.attentionBackward(ws, y, a, x0, dx, blocks)
	}
	be.EmbedBackward(m.dEmbed, dx, ws.ids.dev.Slice(0, n), C, 1)
}

// headsBackward sets dHidden [N,C] from the heads' gradients.
func (m *Model) headsBackward(ws *Workspace, up Upstream, dHidden kernels.Buffer) {
	C, be := m.Config.Width, m.be
	dh, rows := ws.dh.Slice(0, ws.r*C), ws.rows.dev.Slice(0, ws.r)
	switch {
	case up.Scores && up.Values:
		panic("model: a model has an output projection or a value head to train, not both")
	case up.Scores:
		be.LogProbBackward(dh, m.dOutput, ws.DLogProb(), ws.DEntropy(), ws.currentScores(), ws.scoredRows(),
			m.output, ws.targets.dev.Slice(0, ws.r), ws.rowBlocks(), kernels.Softmax{Temperature: ws.temperature})
		be.ScatterRows(dHidden, dh, rows, C)
	case up.Values:
		be.MatMulDW(m.grads.view("score.weight"), m.grads.view("score.bias"), ws.DValue(), ws.scoredRows(), ws.rowBlocks())
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
func (m *Model) ffnBackward(ws *Workspace, y *layer, a acts, dx, blocks kernels.Buffer) {
	c, be, n := m.Config, m.be, ws.n
	none := kernels.Buffer{}
	dNorm := ws.dNorm.Slice(0, n*c.Width)
	be.MatMulDXSwiGLU(a.gateUp, a.gateUp, dx, y.down)
	be.MatMulDX(dNorm, a.gateUp, y.gateUp)
	be.MatMulDW(y.dDown, none, dx, a.act, blocks)
	be.MatMulDW(y.dGateUp, none, a.gateUp, a.n2, blocks)
	be.RMSNormBackward(dx, y.dNorm2, dNorm, a.x1, y.norm2, a.rstd2, blocks, plain(c.Width), false)
}

// attentionBackward does the same for the attention block.
func (m *Model) attentionBackward(ws *Workspace, y *layer, a acts, x0, dx, blocks kernels.Buffer) {
	c, be, n := m.Config, m.be, ws.n
	dAtt, dqkv, dNorm := ws.dAtt.Slice(0, n*c.Heads*c.Head), ws.dqkv.Slice(0, n*c.QKV()), ws.dNorm.Slice(0, n*c.Width)
	be.MatMulDW(y.dO, kernels.Buffer{}, dx, a.att, blocks)
	be.MatMulDX(dAtt, dx, y.o)
	offsets, groups := ws.sequences()
	be.AttentionBackward(dqkv, dAtt, a.att, a.stats, a.qkv, offsets, groups, c.attention())
	be.Rope(dqkv, m.cos, m.sin, ws.pos.dev.Slice(0, n), c.attention(), true)
	if c.QKNorm {
		be.RMSNormBackward(dqkv, y.dQNorm, dqkv, a.raw, y.qNorm, a.qRstd, blocks, c.queryHeads(), true)
		be.RMSNormBackward(dqkv, y.dKNorm, dqkv, a.raw, y.kNorm, a.kRstd, blocks, c.keyHeads(), true)
	}
	be.MatMulDX(dNorm, dqkv, y.qkv)
	be.MatMulDW(y.dQKV, y.dQKVBias, dqkv, a.n1, blocks)
	be.RMSNormBackward(dx, y.dNorm1, dNorm, x0, y.norm1, a.rstd1, blocks, plain(c.Width), false)
}

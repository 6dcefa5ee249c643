package model

import (
	"fmt"

	"exp/kernels"
)

// logZEps is the LayerNorm epsilon of the published head.
const logZEps = 1e-5

// logZLayer is one linear layer of the log Z head; all but the last are followed
// by GELU, LayerNorm and dropout.
type logZLayer struct {
	linear         kernels.Matrix
	bias           kernels.Buffer
	dLinear        kernels.Buffer
	dBias          kernels.Buffer
	scale, shift   kernels.Buffer // of the LayerNorm; empty on the last layer
	dScale, dShift kernels.Buffer
}

func (m *Model) bindLogZ(matrix func(w kernels.Buffer, out, in int) kernels.Matrix,
	grad func(name string) kernels.Buffer) {
	z := m.Heads.LogZ
	if z == nil {
		return
	}
	if z.Layers < 1 {
		panic("model: log Z head needs at least one layer")
	}
	C := m.Config.Width
	for i := range z.Layers {
		name := func(place int, what string) string { return fmt.Sprintf("proj_z.net.%d.%s", 4*i+place, what) }
		out := C
		if i == z.Layers-1 {
			out = 1
		}
		y := logZLayer{
			linear:  matrix(m.params.view(name(0, "weight")), out, C),
			bias:    m.params.view(name(0, "bias")),
			dLinear: grad(name(0, "weight")),
			dBias:   grad(name(0, "bias")),
		}
		if i < z.Layers-1 {
			y.scale, y.shift = m.params.view(name(2, "weight")), m.params.view(name(2, "bias"))
			y.dScale, y.dShift = grad(name(2, "weight")), grad(name(2, "bias"))
		}
		m.logZ = append(m.logZ, y)
	}
}

// logZActs are the activations of one hidden layer of the head, [S,C] each.
type logZActs struct {
	lin, gelu, stats, out kernels.Buffer
}

// LogZ computes ws.LogZ [S] from the hidden states of the last Forward. With train set,
// dropout is active: element masks come from one key per sequence, set by
// ws.SetDropoutKeys.
func (m *Model) LogZ(ws *Workspace, train bool) {
	S, C := ws.s, m.Config.Width
	be := m.be
	p := 0.0
	if train {
		p = m.Heads.LogZ.Dropout
	}
	ws.dropout = p
	ws.poolPrompts(m.Heads.LogZ)
	segments := ws.segments.Slice(0, 2*S)
	be.SegmentMean(ws.pooled.Slice(0, S*C), ws.hidden.Slice(0, ws.n*C), segments, C)
	in := ws.pooled.Slice(0, S*C)
	for i, y := range m.logZ {
		if i == len(m.logZ)-1 {
			be.MatMul(ws.LogZ(), in, y.linear, y.bias)
			return
		}
		a := ws.logZActs(i)
		be.MatMul(a.lin, in, y.linear, y.bias)
		be.GELU(a.gelu, a.lin)
		be.LayerNorm(a.out, a.stats, a.gelu, y.scale, y.shift, C, logZEps)
		if p > 0 {
			be.Dropout(a.out, a.out, ws.dropKeys.Slice(0, 2*S), C, uint32(i), p)
		}
		in = a.out
	}
}

// logZBackward takes ws.DLogZ back to the head's parameters and, unless detached, adds to
// the gradient of the hidden states.
func (m *Model) logZBackward(ws *Workspace, dHidden kernels.Buffer) {
	S, C := ws.s, m.Config.Width
	be := m.be
	blocks := ws.seqBlocks.Slice(0, S+1)
	dOut := ws.DLogZ()
	for i := len(m.logZ) - 1; i >= 0; i-- {
		y := m.logZ[i]
		in := ws.pooled.Slice(0, S*C)
		if i > 0 {
			in = ws.logZActs(i - 1).out
		}
		be.MatMulDW(y.dLinear, y.dBias, dOut, in, blocks)
		dIn := ws.dPooled[i%2].Slice(0, S*C)
		be.MatMulDX(dIn, dOut, y.linear)
		if i > 0 {
			a, below := ws.logZActs(i-1), m.logZ[i-1]
			if ws.dropout > 0 {
				be.Dropout(dIn, dIn, ws.dropKeys.Slice(0, 2*S), C, uint32(i-1), ws.dropout)
			}
			dGelu := ws.dPooled[2].Slice(0, S*C)
			be.LayerNormBackward(dGelu, below.dScale, below.dShift, dIn, a.gelu, below.scale, a.stats, blocks, C)
			be.GELUBackward(dIn, dGelu, a.lin)
		}
		dOut = dIn
	}
	if !m.Heads.LogZ.Detach {
		be.SegmentMeanBackward(dHidden, dOut, ws.segments.Slice(0, 2*S), C)
	}
}

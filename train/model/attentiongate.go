package model

import (
	"fmt"

	"exp/kernels"
)

// This file has the gates of AFMoE's attention, which a map of their own makes: with n the layer's normed input and y
// the result of its attention,
//
//	x += PostNorm(Wo · (y ⊙ Sigmoid(Wg · n)))
//
// kernels.OutputGate wants a query before each gate, so rows of gates are [0 | Wg·n], twice as wide as y.

// gateMap returns the map that makes the gates of layer l.
func (c Config) gateMap(l int) linearSpec {
	attn, _, _ := c.Names.parts(fmt.Sprintf("model.layers.%d.", l))
	return linearSpec{[]string{attn + "gate_proj"}, []int{c.Heads * c.Head}, c.Width}
}

// gateShape is the shape of a row of gates for kernels: one head as wide as all, without keys and values.
func (c Config) gateShape() kernels.AttentionShape {
	return kernels.AttentionShape{H: 1, D: c.Heads * c.Head}
}

// validateGateMap reports settings that do not go together with such gates.
func (c Config) validateGateMap() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: "+format, args...)) }
	if c.GateMap != (c.Names == AfmoeNames) {
		bad("layers with AFMoE's names, and no others, have a map of gates of the attention's output")
	}
	if !c.GateMap {
		return errs
	}
	if c.OutputGate || c.latent() || c.Global != (Global{}) || c.SharedKV > 0 || c.PerLayer > 0 {
		bad("a map of gates is not supported with gates next to queries, latent attention, heads of two sizes, " +
			"shared keys or embeddings for each layer")
	}
	if !c.PostNorms || c.NoPreNorms || c.GLMNorms || c.LateQKNorm {
		bad("layers of AFMoE have norms before and after their blocks, and of queries and keys before the rotary " +
			"positions")
	}
	if x := c.Experts; x.Mixtral || x.Bias || x.Beside || x.Names != "" || x.Shared > 0 && !x.Ungated {
		bad("experts of AFMoE have names of their own, no biases and a shared expert without a gate")
	}
	return errs
}

// gates sets a.gates from a.n1. a.gated is scratch.
func (m *Model) gates(y *layer, a *acts, low *LowRank) {
	be, width := m.be, y.gate.w.Out
	y.gate.apply(be, a.gated, a.n1, low)
	be.Zero(a.gates)
	be.AddColumns(a.gates, a.gated, width, 2*width, width, 1)
}

// gatesBackward turns dAtt, the gradient of the gated result of attention, into the gradient of the result itself, and
// sets a.gated to the gradient of Wg·n.
func (m *Model) gatesBackward(ws *Workspace, y *layer, a *acts, dAtt kernels.Buffer) {
	be, width := m.be, y.gate.w.Out
	d := ws.dProjected.Slice(0, a.gates.Len())
	be.OutputGateBackward(dAtt, d, dAtt, a.att, a.gates, y.own.gateShape())
	be.TakeColumns(a.gated, d, width, 2*width, width, 1)
}

// gateMapBackward adds the part that goes through Wg to dNorm, the gradient of the layer's normed input.
func (m *Model) gateMapBackward(ws *Workspace, y *layer, a *acts, dNorm, blocks kernels.Buffer) {
	in := ws.dh.Slice(0, dNorm.Len()) // the heads no longer need it
	y.gate.backward(m.be, in, a.gated, a.n1, blocks, &ws.low)
	m.be.Add(dNorm, in)
}

package model

import "exp/kernels"

// Branches says how the two blocks of a layer join the residual stream x.
type Branches string

const (
	InTurn   Branches = ""          // x += A(N1(x)); x += F(N2(x))
	TwoNorms Branches = "two_norms" // GPT-NeoX: x += A(N1(x)) + F(N2(x))
	OneNorm  Branches = "one_norm"  // Cohere: x += A(N1(x)) + F(N1(x))
)

// branch adds attention's output to the residual stream x0, as a.x1, which may be x0, and sets a.n2 to what a
// feed-forward block beside it reads: a norm of x0, or a.n1, which a.n2 then is. t [N,C] is scratch.
func (m *Model) branch(y *layer, a *acts, x0, out, t kernels.Buffer) {
	if m.Config.Branches == TwoNorms {
		m.enter(a.n2, a.rstd2, x0, y.norm2, t)
	}
	m.addTo(a.x1, x0, out)
}

// branchBackward takes the gradient of the feed-forward block's input, which ws.dBranch has, back through its norm
// into dx, or adds it to dNorm, the gradient of attention's input, where they share a norm.
func (m *Model) branchBackward(ws *Workspace, y *layer, a *acts, x0, dx, dNorm, blocks kernels.Buffer) {
	if m.Config.Branches == InTurn {
		return
	}
	d := ws.dBranch.Slice(0, dx.Len())
	if m.Config.Branches == OneNorm {
		m.be.Add(dNorm, d)
		return
	}
	m.enterBackward(ws, dx, d, x0, y.norm2, a.rstd2, blocks)
}

package model

import "exp/kernels"

// Parameters returns the number of parameters of the backbone with its output
// projection, and of the auxiliary heads.
func Parameters(c Config, h Heads) (backbone, heads int) {
	tensors, _ := Layout(c, h)
	for _, t := range tensors {
		if t.Auxiliary() {
			heads += t.Len()
		} else {
			backbone += t.Len()
		}
	}
	return backbone, heads
}

// ForwardFLOPs returns the floating-point operations of a forward pass over one
// sequence of n tokens of which scored get logits: two per weight and token, and
// 4·HD per token and key it attends to. A backward pass costs twice as much.
func (c Config) ForwardFLOPs(n, scored int) float64 {
	perLayer := c.Width*c.QKV() + c.Heads*c.Head*c.Width + 3*c.Width*c.FFN
	matmul := 2 * float64(n) * float64(c.Layers*perLayer)
	keys := float64(n) * float64(n+1) / 2
	attention := 4 * keys * float64(c.Layers*c.Heads*c.Head)
	return matmul + attention + 2*float64(scored)*float64(c.Vocab*c.Width)
}

// ActivationFloats returns the number of elements that a Workspace of that
// capacity holds.
func (c Config) ActivationFloats(h Heads, limit Capacity, keep Keep) int {
	counter := &Workspace{c: c, keep: keep, cap: limit}
	n := 0
	counter.allocActs(func(k int) kernels.Buffer { n += k; return kernels.Buffer{} }, h)
	return n
}

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

// The following count the bytes that things allocate on a device whose floats are
// float32 and whose operands are of type operand.

const floatSize = 4

// ModelBytes is for a Model. packed is the backend's PackedLen.
func (c Config) ModelBytes(h Heads, trainable bool, packed func(out, in int) (packed, packedT int), operand kernels.DType) int {
	_, n := Layout(c, h)
	floats := n + 2*(c.MaxPositions*c.Head/2) // parameters, rotary tables
	if trainable {
		floats += n
		if h.LM && c.TieEmbeddings {
			floats += c.Vocab * c.Width
		}
	}
	operands := 0
	add := func(times, out, in int) {
		p, pt := packed(out, in)
		if !trainable {
			pt = 0
		}
		operands += times * (p + pt)
	}
	add(c.Layers, c.QKV(), c.Width)
	add(c.Layers, c.Width, c.Heads*c.Head)
	add(c.Layers, 2*c.FFN, c.Width)
	add(c.Layers, c.Width, c.FFN)
	if h.LM {
		add(1, c.Vocab, c.Width)
	}
	if h.Value {
		add(1, 1, c.Width)
	}
	if h.LogZ != nil {
		add(h.LogZ.Layers-1, c.Width, c.Width)
		add(1, 1, c.Width)
	}
	return floatSize*floats + operand.Size()*operands
}

// counter returns an allocator that adds to n what it would allocate.
func counter(n *int, size int) func(k int) kernels.Buffer {
	return func(k int) kernels.Buffer { *n += k * size; return kernels.Buffer{} }
}

// WorkspaceBytes is for a Workspace.
func (c Config) WorkspaceBytes(h Heads, limit Capacity, keep Keep, operand kernels.DType) int {
	ws := &Workspace{c: c, keep: keep, cap: limit}
	n := 0
	ws.allocActs(counter(&n, floatSize), counter(&n, operand.Size()), h)
	ws.allocIndex(func(k int) indexBuffer { n += k * kernels.I32.Size(); return indexBuffer{} })
	return n
}

// CacheBytes is for a Cache.
func (c Config) CacheBytes(pages, size int, operand kernels.DType) int {
	return 2 * c.Layers * pages * size * c.KVHeads * c.Head * operand.Size()
}

// DecoderBytes is for a Decoder.
func (c Config) DecoderBytes(rows, table int, operand kernels.DType) int {
	n := 0
	(&Decoder{c: c}).alloc(rows, table, counter(&n, floatSize), counter(&n, operand.Size()), counter(&n, kernels.I32.Size()))
	return n
}

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

// The following count the elements that things allocate on a device, floats and
// indices alike: on the CPU each takes four bytes.

// ModelLen is for a Model. packed is the backend's PackedLen.
func (c Config) ModelLen(h Heads, trainable bool, packed func(out, in int) (packed, packedT int)) int {
	_, n := Layout(c, h)
	total := n + 2*(c.MaxPositions*c.Head/2) // parameters, rotary tables
	if trainable {
		total += n
		if h.LM && c.TieEmbeddings {
			total += c.Vocab * c.Width
		}
	}
	add := func(times, out, in int) {
		p, pt := packed(out, in)
		if !trainable {
			pt = 0
		}
		total += times * (p + pt)
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
	return total
}

// WorkspaceLen is for a Workspace.
func (c Config) WorkspaceLen(h Heads, limit Capacity, keep Keep) int {
	counter := &Workspace{c: c, keep: keep, cap: limit}
	n := 0
	counter.allocActs(func(k int) kernels.Buffer { n += k; return kernels.Buffer{} }, h)
	counter.allocIndex(func(k int) indexBuffer { n += k; return indexBuffer{} })
	return n
}

// CacheLen is for a Cache.
func (c Config) CacheLen(pages, size int) int {
	return 2 * c.Layers * pages * size * c.KVHeads * c.Head
}

// DecoderLen is for a Decoder.
func (c Config) DecoderLen(rows, table int) int {
	n := 0
	count := func(k int) kernels.Buffer { n += k; return kernels.Buffer{} }
	(&Decoder{c: c}).alloc(rows, table, count, count)
	return n
}

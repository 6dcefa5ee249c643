package model

import "exp/kernels"

// Parameters returns the number of parameters of the backbone with its output projection,
// and of the auxiliary heads.
func Parameters(c Config, h Heads) (backbone, heads int) {
	tensors, _ := Layout(c, h)
	for _, t := range tensors {
		if t.Auxiliary() {
			heads += t.Len()
		} else {
			backbone += t.Len()
		}
		if c.OutputBias && t.Name == outputName {
			backbone -= int(c.Vocab * (outputPad - 1)) // columns of zeros
		}
	}
	return backbone, heads
}

// ForwardFLOPs returns the floating-point operations of a forward pass over one sequence of
// n tokens when scored of them get logits: two per weight that a token meets, and 4·HD per
// token and key it attends to; linear attention does eight per element of its state. A backward pass
// costs twice as much.
func (c Config) ForwardFLOPs(n, scored int) float64 {
	var weights, keys, states float64
	for _, x := range c.modelLinears() {
		weights += float64(x.out()) * float64(x.in)
	}
	for l := range c.Layers {
		s := c.linears(l)
		met := s.adaptable()
		if c.feeds(l) && c.sparse(l) {
			met = append(append([]linearSpec{s.qkv, s.o, s.router, s.gateUp, s.down}, s.inner...),
				s.experts[:2*c.Experts.Top]...)
			if c.Experts.Shared > 0 {
				met = append(met, s.experts[2*c.Experts.Count:]...)
			}
		}
		for _, x := range met {
			weights += float64(x.out()) * float64(x.in)
		}
		if c.linear(l) {
			states += float64(c.Delta.State())
		}
		if !c.attends(l) {
			continue
		}
		seen := float64(n) * float64(n+1) / 2
		if w := float64(c.Window); c.windowed(l) && n > c.Window {
			seen = w*(w+1)/2 + (float64(n)-w)*w
		}
		keys += seen * float64(c.Heads*c.at(l).Head)
	}
	return 2*float64(n)*(weights+4*states) + 4*keys +
		2*float64(scored)*float64(c.Vocab*c.Width)
}

// RowWeights returns how many weights a row of a step multiplies with: the ones that all rows share, and its own, in
// the experts that it chooses.
func (c Config) RowWeights() (common, own float64) {
	for l := range c.Layers {
		if c.feeds(l) && c.sparse(l) {
			for _, x := range c.linears(l).experts[:2*c.Experts.Top] {
				own += float64(x.out()) * float64(x.in)
			}
		}
	}
	return c.ForwardFLOPs(1, 1)/2 - own, own
}

// The following functions return the bytes allocated on a device whose floats are float32
// and whose operands have type operand.

const floatSize = 4

// constants returns the elements of the tensors that no gradient changes.
func constants(tensors []Tensor) (n int) {
	for _, t := range tensors {
		if t.Constant() {
			n += t.Len()
		}
	}
	return n
}

// PackedLen is a backend's function, for a weight [out,in]; nil counts no copies.
type PackedLen func(out, in int) (packed, packedT int)

// tables returns the number of elements of the rotary tables.
func (c Config) tables() int {
	n := 2 * (c.MaxPositions * c.global().rotated() / 2)
	if c.LocalTheta > 0 {
		n += 2 * (c.MaxPositions * c.rotated() / 2)
	}
	return n
}

// ArenaLen returns the most parameters of a Model with its own backbone that a rank holds, of
// size ranks that share products.
func (c Config) ArenaLen(h Heads, size int) (most int) {
	tensors, n := Layout(c, h)
	cut := c.cutMaps(tensors, size)
	for r := range size {
		_, own := spansOf(cut, n, r, size)
		most = max(most, own)
	}
	return most
}

// ModelBytes returns the size of a Model with its own backbone on each of size ranks that share
// products.
func (c Config) ModelBytes(h Heads, trainable bool, packed PackedLen, operand kernels.DType, size int) int {
	n := c.ArenaLen(h, size)
	floats := n + c.tables() + c.zeroWeightsRoom(trainable)
	if trainable {
		tensors, _ := Layout(c, h)
		floats += n + constants(tensors)
		if h.LM && c.TieEmbeddings {
			floats += int(mostRows(c.Vocab, size) * c.Width)
		}
	}
	operands := 0
	add := func(out, in int) { operands += packedElements(packed, out, in, trainable) }
	for _, s := range c.allLinears() {
		if !Cuts(s.out(), s.in, size) {
			add(s.out(), s.in)
			continue
		}
		forward := packedElements(packed, s.out()/size, s.in, false)
		columns := packedElements(packed, s.out(), s.in/size, trainable) -
			packedElements(packed, s.out(), s.in/size, false)
		operands += forward + columns
	}
	if h.LM {
		output := packedElements(packed, c.Vocab, c.OutputWidth(), trainable)
		if output == 0 && packed != nil && size > 1 { // products read a copy of all rows
			output = int(c.Vocab * c.OutputWidth())
		}
		operands += output
	}
	c.addHeads(h, add)
	return floatSize*floats + operand.Size()*operands
}

// zeroWeightsRoom returns the elements that norms without weights need in a Model.
func (c Config) zeroWeightsRoom(trainable bool) int {
	n := c.zeroWeights()
	if n > 0 && trainable {
		n += c.widestVector()
	}
	return n
}

// mostRows returns the most of n rows that one of size ranks holds.
func mostRows(n, size int) int { return (n + size - 1) / size }

// packedElements returns the length of a weight's packed copies.
func packedElements(packed PackedLen, out, in int, trainable bool) int {
	if packed == nil {
		return 0
	}
	p, pt := packed(out, in)
	if !trainable {
		pt = 0
	}
	return p + pt
}

// addHeads calls add for the matrices of the auxiliary heads.
func (c Config) addHeads(h Heads, add func(out, in int)) {
	if h.Value || h.Score {
		add(1, c.Width)
	}
	if h.Hidden {
		add(c.Width, c.Width)
	}
	if h.LogZ != nil {
		for range h.LogZ.Layers - 1 {
			add(c.Width, c.Width)
		}
		add(1, c.Width)
	}
}

// BackboneBytes returns the size of a Backbone whose matrices have type dtype, on each of size
// ranks that share products.
func (c Config) BackboneBytes(lm bool, dtype kernels.DType, packed PackedLen, operand kernels.DType, size int) int {
	if operand == kernels.F32 {
		operand = dtype
	}
	tensors, _ := Layout(c.WithoutTower(), Heads{LM: lm})
	n := 0
	for _, t := range tensors {
		if t.vector() {
			n += floatSize * (t.Len() + kernels.Lanes)
		}
	}
	rounded := false // the packed output projection differs from the embedding that it is tied to
	add := func(out, in int) {
		if elements := packedElements(packed, out, in, false); elements > 0 {
			n, rounded = n+operand.Size()*elements, operand != dtype
		} else {
			n += dtype.Size() * out * in
		}
	}
	n += dtype.Size() * int(c.Vocab*c.layersWidth())
	if c.Learned {
		n += dtype.Size() * int(c.MaxPositions*c.Width)
	}
	for _, s := range c.allLinears() {
		out := s.out()
		if Cuts(out, s.in, size) {
			out /= size
		}
		add(out, s.in)
	}
	if lm {
		add(c.Vocab, c.OutputWidth())
	}
	if !lm || !c.TieEmbeddings || rounded {
		n += int(dtype.Size() * mostRows(c.Vocab, size) * c.Width)
	}
	return n
}

// AdapterBytes returns the size of a Model on a Backbone.
func (c Config) AdapterBytes(h Heads, trainable bool, packed PackedLen, operand kernels.DType) int {
	_, n := AdapterLayout(c, h, h.Adapters)
	floats, operands := n+c.tables()+c.zeroWeightsRoom(false), 0
	if trainable {
		floats += n + c.widestVector()
	}
	add := func(out, in int) { operands += packedElements(packed, out, in, trainable) }
	for _, t := range adapted(c, h.Adapters) {
		add(h.Adapters.Rank, t.in)
		add(t.out, h.Adapters.Rank)
	}
	c.addHeads(h, add)
	return floatSize*floats + operand.Size()*operands
}

// LongestFill returns the most elements of a Fill of a Backbone on one of size ranks that share products.
func (c Config) LongestFill(size int) int {
	W := c.OutputWidth()
	most := max(int(min(c.Vocab, rowsAtATime(c.Width))*c.Width), int(min(c.Vocab, rowsAtATime(W))*W),
		min(c.TowerLen(), fillElems))
	if W := c.layersWidth(); W > 0 {
		most = max(most, int(min(c.Vocab, rowsAtATime(W))*W))
	}
	if c.Learned {
		most = max(most, int(min(c.MaxPositions, rowsAtATime(c.Width))*c.Width))
	}
	for _, s := range c.allLinears() {
		rows := s.out()
		if Cuts(rows, s.in, size) {
			rows /= size
		}
		most = max(most, int(min(rows, rowsAtATime(s.in))*s.in))
	}
	return most
}

// counter returns an allocator that only adds the sizes to n.
func counter(n *int, size int) func(k int) kernels.Buffer {
	return func(k int) kernels.Buffer { *n += k * size; return kernels.Buffer{} }
}

// WorkspaceBytes returns the size of a Workspace on each of some ranks that share products.
func (c Config) WorkspaceBytes(h Heads, limit Capacity, keep Keep, operand kernels.DType, shared int) (n int) {
	for _, bytes := range c.workspace(h, limit, keep, operand, shared) {
		n += bytes
	}
	return n
}

// ReachedBytes returns how much of WorkspaceBytes a device has memory for if batches need no more than reached, of
// limit. resident says it of a buffer, of which so many bytes are used.
func (c Config) ReachedBytes(h Heads, limit, reached Capacity, keep Keep, operand kernels.DType, shared int,
	resident func(bytes, used int) int) (n int) {
	used := c.workspace(h, reached, keep, operand, shared)
	for i, bytes := range c.workspace(h, limit, keep, operand, shared) {
		n += resident(bytes, used[i])
	}
	return n
}

// workspace returns the bytes of each buffer of a Workspace.
func (c Config) workspace(h Heads, limit Capacity, keep Keep, operand kernels.DType, shared int) (list []int) {
	ws := &Workspace{c: c, keep: keep, cap: limit, adapters: h.Adapters, parts: shared}
	of := func(size int) func(k int) kernels.Buffer {
		return func(k int) kernels.Buffer { list = append(list, k*size); return kernels.Buffer{} }
	}
	ws.allocActs(of(floatSize), of(operand.Size()), of(kernels.I32.Size()), h)
	ws.allocIndex(func(k int) indexBuffer { list = append(list, k*kernels.I32.Size()); return indexBuffer{} })
	return list
}

// CacheBytes returns the size of a Cache on each of some ranks that share products, without the states of
// linear attention (StateBytes).
func (c Config) CacheBytes(pages, size int, operand kernels.DType, shared int) int {
	return c.cacheOf(shared).cacheElements(pages, size) * operand.Size()
}

// cacheElements returns the elements of the keys and values of all layers in a Cache.
func (c Config) cacheElements(pages, size int) (n int) {
	for l := range c.Layers {
		if c.attends(l) && !c.shares(l) {
			_, stride := c.layerPages(l, pages, size)
			n += 2 * stride
		}
	}
	return n
}

// StateBytes returns the size of a sequence's state in the layers with linear attention, which every
// rank holds whole.
func (c Config) StateBytes(operand kernels.DType) int {
	tail := operand.Size()
	if c.Delta.Conv {
		tail = floatSize
	}
	return c.linearLayers() * (floatSize*c.Delta.State() + tail*c.Delta.Tail())
}

// layerPages returns the elements of layer l's keys in a Cache, and how far apart keys and values start.
func (c Config) layerPages(l, pages, size int) (n, stride int) {
	c = c.at(l)
	const line = 64 // elements: each layer starts on a cache line
	n = pages * size * c.KVHeads * c.Head
	return n, (n + line - 1) / line * line
}

// DecoderBytes returns the size of a Decoder.
func (c Config) DecoderBytes(h Heads, rows, table int, operand kernels.DType) int {
	n := 0
	(&Decoder{c: c}).alloc(h, rows, table, counter(&n, floatSize), counter(&n, operand.Size()),
		counter(&n, kernels.I32.Size()))
	return n
}

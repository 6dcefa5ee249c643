package model

import (
	"sort"

	"exp/kernels"
)

// Cutter is a backend that computes the products of the layers with other ranks. Each rank
// holds its part of the weights that they share (Cuts), and its rows of the embedding and the
// output projection; other parameters are whole on every rank.
type Cutter interface {
	// Part returns the number of this rank among those that share products.
	Part() (rank, size int)
	// CutLen returns the lengths of a rank's packed copies as PackedLen does of whole ones.
	CutLen(out, in int) (packed, packedT int)
	// OutputLen returns the lengths of the output projection's copies; each rank has a copy of all rows.
	OutputLen(out, in int) (packed, packedT int)
	// AddRows adds row m of dout [M,C] to row ids[m] of dtable, which is whole on every rank.
	AddRows(dtable, dout, ids kernels.Buffer, C int)
	// Complete gives each rank all rows of x [M,width]; before, each has its part.
	Complete(x kernels.Buffer, width int)
}

// CutUnit divides the rows and columns of a rank's part of a weight: a CPU packs this many
// columns together.
const CutUnit = 32

// Cuts reports whether size ranks share a weight [out,in] of a layer.
func Cuts(out, in, size int) bool {
	return size > 1 && out%(CutUnit*size) == 0 && in%(CutUnit*size) == 0
}

// partOf returns a rank's part of n rows.
func partOf(n, rank, size int) (lo, hi int) { return int(rank*n) / size, int((rank+1)*n) / size }

// partOn returns the number of the rank that be is among those that share products.
func partOn(be kernels.Backend) (rank, size int) {
	if c, ok := be.(Cutter); ok {
		return c.Part()
	}
	return 0, 1
}

// cacheOf returns c with the heads whose keys and values each of size ranks holds.
func (c Config) cacheOf(size int) Config {
	if c.KVHeads%size == 0 {
		c.KVHeads /= size
	}
	if g := &c.Global; g.KVHeads%size == 0 {
		g.KVHeads /= size
	}
	return c
}

// Span is a range of a whole arena that a rank holds: elements Lo to Hi, from At on in its own
// arena. Every rank that shares the products holds the elements of a Whole one.
type Span struct {
	Lo, Hi, At int
	Whole      bool
}

// cutMap is a weight in a layout, [out,in] from element off on, whose rows ranks share.
type cutMap struct{ off, out, in int }

// cutMaps returns the weights that size ranks share, in the order of a layout.
func (c Config) cutMaps(tensors []Tensor, size int) (list []cutMap) {
	maps := map[string]cutMap{}
	for _, s := range c.allLinears() {
		if first, _ := s.weights(); Cuts(s.out(), s.in, size) {
			maps[first] = cutMap{out: s.out(), in: s.in}
		}
	}
	if size > 1 {
		maps[embedName] = cutMap{out: c.Vocab, in: c.Width}
		maps[outputName] = cutMap{out: c.Vocab, in: c.OutputWidth()}
	}
	for _, t := range tensors {
		if m, ok := maps[t.Name]; ok {
			m.off = t.off
			list = append(list, m)
		}
	}
	return list
}

// spansOf returns what a rank holds of an arena of n elements whose cut weights are given, and
// the length of its own arena. Padding belongs to the whole tensors before it.
func spansOf(cut []cutMap, n, rank, size int) (spans []Span, own int) {
	add := func(lo, hi int, whole bool) {
		if lo < hi {
			spans = append(spans, Span{lo, hi, own, whole})
			own += hi - lo
		}
	}
	end := 0
	for _, m := range cut {
		add(end, m.off, true)
		lo, hi := partOf(m.out, rank, size)
		add(m.off+int(lo*m.in), m.off+int(hi*m.in), false)
		end = m.off + int(m.out*m.in)
	}
	add(end, n, true)
	return spans, own
}

// Spans returns what a rank of those that share the model's products holds of the arena of
// all parameters, in its order.
func (m *Model) Spans(rank int) []Span {
	_, size := partOn(m.be)
	spans, _ := spansOf(m.cut, m.whole, rank, size)
	return spans
}

// Len returns the length of the arena of all parameters. Params and Grads are as long unless
// ranks share the products.
func (m *Model) Len() int { return m.whole }

// Set sets the elements of a tensor, starting with element from, to x, floats in the host's
// memory. It skips elements that this rank does not hold.
func (m *Model) Set(t Tensor, from int, x kernels.Buffer) {
	lo := t.off + from
	for _, s := range m.params.spans {
		if a, b := max(lo, s.Lo), min(lo+x.Len(), s.Hi); a < b {
			m.be.Copy(m.params.buf.Slice(s.At+a-s.Lo, s.At+b-s.Lo), x.Slice(a-lo, b-lo))
		}
	}
	m.be.Sync()
}

// IsCut reports whether ranks hold parts of a tensor.
func (m *Model) IsCut(t Tensor) bool {
	return len(m.cut) > 0 && !m.params.covers(t.off, t.off+t.Len())
}

// arena is a rank's part of the tensors of a layout, and the views that the passes use.
type arena struct {
	buf     kernels.Buffer
	tensors []Tensor
	byName  map[string]Tensor
	spans   []Span
}

func newArena(buf kernels.Buffer, tensors []Tensor, spans []Span) arena {
	a := arena{buf: buf, tensors: tensors, byName: make(map[string]Tensor, len(tensors)), spans: spans}
	for _, t := range tensors {
		a.byName[t.Name] = t
	}
	return a
}

// covers reports whether every rank holds elements lo to hi: they lie in one span that is whole.
func (a arena) covers(lo, hi int) bool {
	i := a.find(lo)
	return i < len(a.spans) && a.spans[i].Whole && a.spans[i].Lo <= lo && hi <= a.spans[i].Hi
}

// find returns the first span that ends after an element.
func (a arena) find(at int) int {
	return sort.Search(len(a.spans), func(i int) bool { return a.spans[i].Hi > at })
}

// part returns what this rank holds of elements lo to hi.
func (a arena) part(lo, hi int) kernels.Buffer {
	from, to := 0, 0
	for i := a.find(lo); i < len(a.spans) && a.spans[i].Lo < hi; i++ {
		s := a.spans[i]
		if to == 0 {
			from = s.At + max(lo, s.Lo) - s.Lo
		}
		to = s.At + min(hi, s.Hi) - s.Lo
	}
	return a.buf.Slice(from, to)
}

// view returns the named tensor.
func (a arena) view(name string) kernels.Buffer {
	t, ok := a.byName[name]
	if !ok {
		panic("model: no tensor " + name)
	}
	return a.part(t.off, t.off+t.Len())
}

// span returns the contiguous tensors from first to last as one buffer.
func (a arena) span(first, last string) kernels.Buffer {
	x, ok := a.byName[first]
	y, also := a.byName[last]
	if !ok || !also || y.off < x.off {
		panic("model: no span " + first + " to " + last)
	}
	return a.part(x.off, y.off+y.Len())
}

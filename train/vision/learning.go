package vision

import (
	"exp/kernels"
	"exp/train/model"
)

// This file has towers whose weights lie in an arena that an optimizer changes.

// learned is a tensor of onHost in the arena.
type learned struct{ w, dw kernels.Buffer }

// weights returns the tensors that are multiplied together.
func (s linearSpec) weights() (list []Tensor) {
	for i, name := range s.tensors() {
		shape := []int{s.rows[i], s.in}
		switch {
		case s.shape != nil:
			shape = append(shape[:1:1], s.shape...)
		case s.across:
			shape = []int{s.in, s.rows[i]}
		}
		list = append(list, Tensor{name, shape})
	}
	return list
}

// biases returns the vectors that are added to their products; nil: none.
func (s linearSpec) biases() (list []Tensor) {
	if !s.bias {
		return nil
	}
	for i, name := range s.names {
		list = append(list, Tensor{name + ".bias", []int{s.rows[i]}})
	}
	return list
}

// weight and shift return a norm's tensors, each a group; shift is nil for an RMSNorm.
func (s normSpec) weight() []Tensor { return []Tensor{{s.name + ".weight", []int{s.width}}} }
func (s normSpec) shift() []Tensor {
	if !s.layer {
		return nil
	}
	return []Tensor{{s.name + ".bias", []int{s.width}}}
}

// Groups returns the tensors of a tower, as Tensors has them, in the order of an arena. The tensors of a group are
// used together: each must begin where the one before it ends. A group must begin at a multiple of kernels.Lanes
// elements.
func (c Config) Groups() (list [][]Tensor) {
	add := func(groups ...[]Tensor) {
		for _, g := range groups {
			if g != nil {
				list = append(list, g)
			}
		}
	}
	for _, m := range c.maps() {
		add(m.weights(), m.biases())
	}
	for _, n := range c.norms() {
		add(n.weight(), n.shift())
	}
	for _, name := range c.factors() {
		add(c.factor(name))
	}
	for _, t := range c.onHost() {
		add([]Tensor{t})
	}
	return list
}

// factor returns factors of channels as a group.
func (c Config) factor(name string) []Tensor { return []Tensor{{name, []int{c.Width}}} }

// Table reports whether a tensor is learned positions or the row of a tile: neither a linear map nor a vector.
func (c Config) Table(name string) bool {
	for _, t := range c.onHost() {
		if t.Name == name {
			return true
		}
	}
	return false
}

// NewLearning returns a tower whose weights lie in an arena. params and grads return a group of Groups, its tensors
// one after another, in the arena of weights and in the arena of their gradients, whole and of be's Float type; with
// nil grads the tower has no Backward. The arenas must outlive the tower. A tower that New loads with the same float32
// weights has the same features. Call Refresh before the first Encode. NewLearning returns an error if the device has
// no room or the configuration is impossible.
func NewLearning(be kernels.Backend, c Config, params, grads func(group []Tensor) kernels.Buffer) (*Tower, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	trainable := grads != nil
	if !trainable {
		grads = func([]Tensor) kernels.Buffer { return kernels.Buffer{} }
	}
	t := &Tower{Config: c, DType: kernels.F32, be: whole(be), learns: true, trainable: trainable}
	t.blocks, t.mergers = make([]block, c.Layers), make([]merger, 1+len(c.Deep))
	view := func(w, dw *kernels.Buffer, group []Tensor) {
		if group != nil {
			*w, *dw = params(group), grads(group)
		}
	}
	var r rooms
	matrix := func(y *linear, s linearSpec) {
		y.set(s)
		view(&y.w.W, &y.dw, s.weights())
		view(&y.bias, &y.dbias, s.biases())
		packed, packedT := t.be.PackedLen(s.sides())
		r.add(&y.w.Packed, t.be.Operand(), packed)
		r.add(&y.w.PackedT, t.be.Operand(), packedT)
		if s.turned {
			y.turn = newTurn(s.out(), s.in, c.unit())
			y.turn.files = y.w.W
			y.turn.plan(&r, &y.w.W, t.be.Float())
		}
	}
	normal := func(y *norm, s normSpec) {
		if y.normSpec = s; s.width > 0 {
			view(&y.w, &y.dw, s.weight())
			view(&y.bias, &y.dbias, s.shift())
		}
	}
	t.parts(normal, matrix, func(y *factors, name string) { view(&y.w, &y.dw, c.factor(name)) })
	t.tables = make([]learned, len(c.onHost()))
	for i, s := range c.onHost() {
		view(&t.tables[i].w, &t.tables[i].dw, []Tensor{s})
	}
	var err error
	if t.owned, err = r.take(t.be, kernels.WeightRoom); err != nil {
		return nil, err
	}
	for _, y := range t.linears() {
		if y.turn != nil {
			y.turn.load(t.be)
		}
	}
	return t, nil
}

// LearningWeightBytes returns the memory that a learning tower takes beside its arenas, with packed copies of type
// operand, whose lengths packed returns; nil counts no copies.
func (c Config) LearningWeightBytes(packed model.PackedLen, operand kernels.DType) int64 {
	var r rooms
	for _, m := range c.maps() {
		var none kernels.Buffer
		if packed != nil {
			p, pt := packed(m.sides())
			r.add(&none, operand, p)
			r.add(&none, operand, pt)
		}
		if m.turned {
			newTurn(m.out(), m.in, c.unit()).plan(&r, &none, kernels.F32)
		}
	}
	n := r.bytes()
	for _, t := range c.onHost() {
		n += 8 * int64(t.Len())
	}
	return n
}

// linears returns all linear maps.
func (t *Tower) linears() (list []*linear) {
	none := func(*norm, normSpec) {}
	t.parts(none, func(y *linear, _ linearSpec) { list = append(list, y) }, func(*factors, string) {})
	return list
}

// Refresh takes the weights from the arena again, after an update. The tower must be of NewLearning or Adapt, and
// nobody may encode meanwhile.
func (t *Tower) Refresh() {
	if t.adapters != nil {
		t.refreshAdapters()
		return
	}
	if !t.learns {
		panic("vision: a tower without an arena")
	}
	for _, y := range t.linears() {
		if y.turn != nil {
			y.turn.weights(t.be, y.w.W)
		}
		if !y.w.Packed.Empty() {
			t.be.Pack(y.w)
		}
	}
	var tables [][]float64
	for _, x := range t.tables {
		table := make([]float64, x.w.Len())
		t.be.Copy(kernels.Host(table), x.w)
		tables = append(tables, table)
	}
	t.be.Sync()
	t.setHost(tables)
}

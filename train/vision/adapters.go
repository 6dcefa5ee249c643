package vision

import (
	"fmt"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// This file has towers with adapters: their weights are a frozen tower's, and adapters on their linear maps learn.

// Adapters are low-rank adapters on linear maps of a frozen tower: y = W·x + bias + Scale·B·A·x, as model.Adapters
// describes them.
type Adapters struct {
	Rank  int
	Scale float64
	Maps  []string // names of the weights that have one, without ".weight"
}

// lowRank are the adapters of a linear map.
type lowRank struct {
	list  []model.Adapter
	scale float64
	turn  *turn // of a turned map: A reads columns in the files' order
}

// Parts returns the views of A [Rank,In] and B [Out,Rank] of a map's adapter in an arena.
type Parts func(name string) (a, b kernels.Buffer)

// Adapt returns a tower of t's weights with adapters in an arena. params and grads return views into the arenas of
// adapters and of their gradients; with nil grads the tower has no Backward. Arenas and t must outlive it. t must be
// of New. Without adapters (A = 0 or B = 0) the features are t's but for the sign of zeros. Call Refresh before the
// first Encode. Adapt returns an error if the device has no room or a name is none of a map of matrices.
func (t *Tower) Adapt(a Adapters, params, grads Parts) (*Tower, error) {
	if t.learns || t.adapters != nil {
		panic("vision: adapters on a tower that learns")
	}
	x := *t
	x.owned, x.adapters, x.trainable = nil, &a, grads != nil
	x.blocks, x.mergers = slices.Clone(t.blocks), slices.Clone(t.mergers)
	var r rooms
	found := 0
	none := func(*norm, normSpec) {}
	x.parts(none, func(y *linear, s linearSpec) {
		found += x.adapt(&r, y, s, params, grads)
	}, func(*factors, string) {})
	if found != len(a.Maps) {
		return nil, fmt.Errorf("vision: of %d adapters, %d are on linear maps of the tower", len(a.Maps), found)
	}
	var err error
	if x.owned, err = r.take(x.be, kernels.WeightRoom); err != nil {
		return nil, err
	}
	for _, y := range x.linears() {
		if y.low.turn != nil {
			y.low.turn.load(x.be)
		}
	}
	return &x, nil
}

// Shared returns a tower with t's weights, whose Close frees nothing. t must outlive it.
func (t *Tower) Shared() *Tower {
	x := *t
	x.owned = nil
	return &x
}

// adapt binds the adapters of a map, requests room for what they need besides, and returns how many there are.
func (t *Tower) adapt(r *rooms, y *linear, s linearSpec, params, grads Parts) int {
	if !s.adapts() {
		return 0
	}
	list, offset := make([]model.Adapter, 0, len(s.names)), 0
	for i, name := range s.names {
		if slices.Contains(t.adapters.Maps, name) {
			a, b := params(name)
			x := model.Adapter{Offset: offset, A: kernels.Matrix{W: a, Out: t.adapters.Rank, In: s.in},
				B: kernels.Matrix{W: b, Out: s.rows[i], In: t.adapters.Rank}}
			if grads != nil {
				x.DA, x.DB = grads(name)
			}
			list = append(list, x)
		}
		offset += s.rows[i]
	}
	if len(list) == 0 {
		return 0
	}
	y.low = lowRank{list: list, scale: t.adapters.Scale}
	for i := range list {
		for _, w := range []*kernels.Matrix{&list[i].A, &list[i].B} {
			packed, packedT := t.be.PackedLen(w.Out, w.In)
			r.add(&w.Packed, t.be.Operand(), packed)
			if t.trainable {
				r.add(&w.PackedT, t.be.Operand(), packedT)
			}
		}
	}
	if s.turned {
		y.low.turn = newTurn(s.out(), s.in, t.Config.unit())
		y.low.turn.planPlaces(r)
	}
	return len(list)
}

// refreshAdapters takes the adapters from the arena again.
func (t *Tower) refreshAdapters() {
	for _, y := range t.linears() {
		for _, a := range y.low.list {
			for _, w := range []kernels.Matrix{a.A, a.B} {
				if !w.Packed.Empty() {
					t.be.Pack(w)
				}
			}
		}
	}
	t.be.Sync()
}

// AdapterBytes returns the memory that an adapted tower takes beside the frozen one and its arenas, with packed copies
// of type operand, whose lengths packed returns; nil counts no copies.
func (c Config) AdapterBytes(a Adapters, trainable bool, packed model.PackedLen, operand kernels.DType) int64 {
	var r rooms
	var none kernels.Buffer
	for _, m := range c.maps() {
		on := false
		for i, name := range m.names {
			if !slices.Contains(a.Maps, name) {
				continue
			}
			on = true
			for _, w := range [][2]int{{a.Rank, m.in}, {m.rows[i], a.Rank}} {
				if packed == nil {
					continue
				}
				p, pt := packed(w[0], w[1])
				r.add(&none, operand, p)
				if trainable {
					r.add(&none, operand, pt)
				}
			}
		}
		if on && m.turned {
			newTurn(m.out(), m.in, c.unit()).planPlaces(&r)
		}
	}
	return r.bytes()
}

// AdaptedBytes is LearningBytes for adapters on a frozen tower, or Bytes unless they learn.
func (c Config) AdaptedBytes(a Adapters, learns bool, float, operand kernels.DType, patches int) int64 {
	rows, columns := c.square(patches)
	t := &Tower{Config: c, adapters: &a}
	if learns {
		return newBackward(t, rows, columns).plan(float, operand, c.atOnce()).bytes()
	}
	return newPass(t, rows, columns).plan(float, operand, c.atOnce()).bytes()
}

// planLowRank adds the working memory of adapters; backward says whether gradients go through them, too.
func (x *pass) planLowRank(r *rooms, f, o kernels.DType, backward bool) {
	a := x.adapters
	if a == nil {
		return
	}
	var z, t, dt, turned int
	for _, m := range x.Config.maps() {
		rows := x.step
		if m.scope == tokenwise {
			rows /= x.Config.unit()
		}
		for i, name := range m.names {
			if !slices.Contains(a.Maps, name) {
				continue
			}
			z, t = max(z, rows*a.Rank), max(t, rows*m.in, rows*m.rows[i])
			dt = max(dt, rows*m.rows[i])
			if m.turned {
				turned = max(turned, rows*m.in)
			}
		}
	}
	if backward {
		r.add(&x.low.DZ, o, z)
		r.add(&x.low.DT, o, dt)
		return
	}
	r.add(&x.low.Z, o, z)
	r.add(&x.low.T, f, t)
	r.add(&x.inFiles, f, turned)
}

// apply sets out to a linear map of in, its adapters included.
func (x *pass) apply(out, in kernels.Buffer, y linear) {
	if y.across {
		x.be.MatMulDX(out, in, y.w)
		return
	}
	x.be.MatMul(out, in, y.w, y.bias)
	if len(y.low.list) == 0 {
		return
	}
	in = x.read(in, y)
	for i := range y.low.list {
		y.low.list[i].Add(x.be, out, in, y.w.Out, y.low.scale, &x.low)
	}
}

// read returns what adapters of a map read: in, with columns in the files' order.
func (x *pass) read(in kernels.Buffer, y linear) kernels.Buffer {
	if y.low.turn == nil {
		return in
	}
	files := x.inFiles.Slice(0, in.Len())
	y.low.turn.toFiles(x.be, files, in)
	return files
}

// adaptersBackward adds to the gradients of a map's adapters and to dx, unless it is empty, given dout, the gradient
// of what apply returned for x.
func (b *backward) adaptersBackward(dx, dout, x kernels.Buffer, y linear) {
	rows := dout.Len() / y.w.Out
	for i := range y.low.list {
		a := &y.low.list[i]
		a.Backward(b.be, dout, b.read(x, y), b.sums(rows), y.w.Out, y.low.scale, &b.low)
		if dx.Empty() {
			continue
		}
		d := a.InputGradient(b.be, rows, &b.low)
		if y.low.turn != nil {
			files := d
			d = b.inFiles.Slice(0, files.Len())
			y.low.turn.toMemory(b.be, d, files)
		}
		b.be.AddColumns(dx, d, y.w.In, y.w.In, 0, 1)
	}
}

// Modules returns the names that transformers 5 gives to the linear maps of a tower of a kind which can have adapters,
// of one block.
func (k Kind) Modules() (names []string) {
	c := Config{Kind: k, Layers: 1, Width: 4, Heads: 1, FFN: 1, Channels: 3, Patch: 1, Frames: 1, Merge: 1, Out: 1,
		Inner: 1, Deep: []int{0}}
	if !c.has().deep {
		c.Deep = nil
	}
	for _, m := range c.maps() {
		if !m.adapts() {
			continue
		}
		for _, name := range m.names {
			if k.oneModule() {
				name = "visual." + name
			}
			names = append(names, "model."+name)
		}
	}
	return names
}

// oneModule reports whether the tower with its mergers is one module, visual.
func (k Kind) oneModule() bool { return slices.Contains([]Kind{Qwen2VL, Qwen25VL, Qwen3VL, GLM4V}, k) }

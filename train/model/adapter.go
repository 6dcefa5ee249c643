package model

import (
	"fmt"
	"slices"
	"strings"

	"exp/kernels"
)

// Adapters are low-rank adapters on linear maps of a frozen backbone (LoRA, Hu et al.,
// arXiv:2106.09685 §4.1): y = W·x + (Alpha/Rank)·B·A·x, A [Rank,in] and B [out,Rank].
type Adapters struct {
	Rank    int
	Alpha   float64
	Targets []string // last parts of the maps' names: q_proj, k_proj, …
	Dropout float64  // of x before A, in training
}

// AdapterTargets returns the linear maps of a configuration that can have an adapter, by
// the last parts of their names.
func (c Config) AdapterTargets() []string {
	var list []string
	for l := range c.Layers {
		s := c.linears(l)
		for _, x := range s.adaptable() {
			for _, name := range x.names {
				if t := lastPart(name); !slices.Contains(list, t) {
					list = append(list, t)
				}
			}
		}
	}
	return list
}

// adaptable returns the linear maps that can have adapters.
func (s layerLinears) adaptable() []linearSpec {
	return append(append([]linearSpec{s.qkv}, s.inner...), s.o, s.gateUp, s.down)
}

// Validate reports every invalid setting for adapters of c.
func (a Adapters) Validate(c Config) error {
	switch {
	case a.Rank < 1:
		return fmt.Errorf("model: adapters have rank %d, must be at least 1", a.Rank)
	case !(a.Alpha > 0):
		return fmt.Errorf("model: adapters have alpha %g, must be positive", a.Alpha)
	case !(a.Dropout >= 0) || a.Dropout >= 1:
		return fmt.Errorf("model: adapters have dropout %g, must be at least 0 and below 1", a.Dropout)
	case len(a.Targets) == 0:
		return fmt.Errorf("model: adapters have no targets")
	}
	can := c.AdapterTargets()
	for _, t := range a.Targets {
		if !slices.Contains(can, t) {
			return fmt.Errorf("model: adapters cannot target %q; possible targets are %s", t,
				strings.Join(can, ", "))
		}
	}
	return nil
}

// BesideExperts reports whether adapters are on gate_proj, up_proj or down_proj of a layer without experts, or on the
// gate_proj of AFMoE's attention, in a model that has layers with experts. LFM2 has other names.
func (a Adapters) BesideExperts(c Config) bool {
	return slices.Contains(c.Sparse, true) && slices.ContainsFunc(adapted(c, &a), func(m adaptedMap) bool {
		return strings.Contains(m.name, ".mlp.") || lastPart(m.name) == "gate_proj"
	})
}

// Scale returns the factor of B·A·x.
func (a Adapters) Scale() float64 { return a.Alpha / float64(a.Rank) }

// onGate reports whether a gate or an up projection has an adapter.
func (a *Adapters) onGate() bool {
	return a != nil && slices.ContainsFunc(a.Targets, func(t string) bool {
		return slices.Contains([]string{"gate_proj", "up_proj", "gate_up_proj", "input_linear", "w1", "w3"}, t)
	})
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// adapterPrefix precedes the names of adapted tensors in PEFT's files.
const adapterPrefix = "base_model.model."

// adapterNames returns the names of A and B of a linear map.
func adapterNames(name string) (a, b string) {
	return adapterPrefix + name + ".lora_A.weight", adapterPrefix + name + ".lora_B.weight"
}

// AdapterLayout returns the tensors of the adapters and the heads h of a model on a Backbone,
// in arena order, and the arena's length in elements.
func AdapterLayout(c Config, h Heads, a *Adapters) (tensors []Tensor, n int) {
	x := &layout{}
	for _, t := range adapted(c, a) {
		an, bn := adapterNames(t.name)
		x.one(an, a.Rank, t.in)
		x.one(bn, t.out, a.Rank)
	}
	x.heads(c, h)
	x.group()
	return x.tensors, x.n
}

// adaptedMap is a tensor of a linear map that has an adapter.
type adaptedMap struct {
	name    string
	out, in int
}

func adapted(c Config, a *Adapters) (list []adaptedMap) {
	if a == nil {
		return nil
	}
	for l := range c.Layers {
		s := c.linears(l)
		for _, x := range s.adaptable() {
			for i, name := range x.names {
				if slices.Contains(a.Targets, lastPart(name)) {
					list = append(list, adaptedMap{name, x.rows[i], x.in})
				}
			}
		}
	}
	return list
}

// adapter is an adapter on a range of the rows of a linear map.
type adapter struct {
	a, b        kernels.Matrix
	da, db      kernels.Buffer
	out, offset int
	number      uint32 // of the adapter in the model: its stream of dropout masks
}

// linear is a linear map with its adapters.
type linear struct {
	w           kernels.Matrix
	bias        kernels.Buffer
	dw, dbias   kernels.Buffer // empty if the map is frozen
	adapters    []adapter
	scale, drop float64 // of the adapters
}

// lowRank is the working memory of adapters: rows of the widest map.
type lowRank struct {
	z, dz kernels.Buffer // [N,Rank] operands
	t     kernels.Buffer // [N,widest] floats
	dt    kernels.Buffer // [N,widest] operands
	x     kernels.Buffer // [N,widest input] floats, with dropout
	keys  kernels.Buffer // [N,2] dropout keys of the rows; empty: no dropout
}

// widest returns the largest input and output of any adapted map.
func (a *Adapters) widest(c Config) (in, out int) {
	for _, t := range adapted(c, a) {
		in, out = max(in, t.in), max(out, t.out)
	}
	return in, out
}

// alloc makes the buffers for rows rows: f allocates floats, o operands.
func (r *lowRank) alloc(c Config, a *Adapters, rows int, train bool, f, o func(n int) kernels.Buffer) {
	if a == nil {
		return
	}
	in, out := a.widest(c)
	r.z, r.t = o(rows*a.Rank), f(rows*max(in, out))
	if !train {
		return
	}
	r.dz, r.dt = o(rows*a.Rank), o(rows*out)
	if a.Dropout > 0 {
		r.x = f(rows * in)
	}
}

// apply sets out [M,Out] to the map of x [M,In], adapters included.
func (y *linear) apply(be kernels.Backend, out, x kernels.Buffer, r *lowRank) {
	be.MatMul(out, x, y.w, y.bias)
	M := out.Len() / y.w.Out
	for i := range y.adapters {
		a := &y.adapters[i]
		z, t := r.z.Slice(0, M*a.a.Out), r.t.Slice(0, M*a.out)
		be.MatMul(z, r.dropped(be, y, a, x), a.a, kernels.Buffer{})
		be.MatMul(t, z, a.b, kernels.Buffer{})
		be.AddColumns(out, t, a.out, y.w.Out, a.offset, y.scale)
	}
}

// dropped returns x [M,In] as the adapter's A sees it.
func (r *lowRank) dropped(be kernels.Backend, y *linear, a *adapter, x kernels.Buffer) kernels.Buffer {
	if y.drop == 0 || r.keys.Empty() {
		return x
	}
	M := x.Len() / y.w.In
	d := r.x.Slice(0, x.Len())
	be.Copy(d, x)
	be.Dropout(d, d, r.keys.Slice(0, 2*M), y.w.In, a.number, y.drop)
	return d
}

// backward takes dout [M,Out] through the adapters and the map: it adds to their gradients
// and sets dx [M,In], unless it is empty. x is the input of apply.
func (y *linear) backward(be kernels.Backend, dx, dout, x, blocks kernels.Buffer, r *lowRank) {
	if !dx.Empty() {
		be.MatMulDX(dx, dout, y.w)
	}
	if !y.dw.Empty() {
		be.MatMulDW(y.dw, y.dbias, dout, x, blocks)
	}
	y.adaptersBackward(be, dx, dout, x, blocks, r)
}

// adaptersBackward adds to the adapters' gradients and to dx.
func (y *linear) adaptersBackward(be kernels.Backend, dx, dout, x, blocks kernels.Buffer, r *lowRank) {
	M := dout.Len() / y.w.Out
	for i := range y.adapters {
		a := &y.adapters[i]
		z, dz, dt := r.z.Slice(0, M*a.a.Out), r.dz.Slice(0, M*a.a.Out), r.dt.Slice(0, M*a.out)
		in := r.dropped(be, y, a, x)
		be.MatMul(z, in, a.a, kernels.Buffer{})
		be.TakeColumns(dt, dout, a.out, y.w.Out, a.offset, y.scale)
		be.MatMulDW(a.db, kernels.Buffer{}, dt, z, blocks)
		be.MatMulDX(dz, dt, a.b)
		be.MatMulDW(a.da, kernels.Buffer{}, dz, in, blocks)
		if dx.Empty() {
			continue
		}
		t := r.t.Slice(0, M*y.w.In)
		be.MatMulDX(t, dz, a.a)
		if y.drop > 0 && !r.keys.Empty() {
			be.Dropout(t, t, r.keys.Slice(0, 2*M), y.w.In, a.number, y.drop)
		}
		be.AddColumns(dx, t, y.w.In, y.w.In, 0, 1)
	}
}

// On returns a model with the weights of m, all of them whole on this rank, that computes on another
// share of m's device. It must not outlive m.
func (m *Model) On(be kernels.Backend) *Model {
	if len(m.cut) > 0 {
		panic("model: ranks hold parts of the weights")
	}
	v := *m
	v.be, v.owned, v.ownsBackbone = be, nil, false
	return &v
}

// FoldAdapters adds from's adapters to the weights of m, which has its own backbone on the
// same backend: W = fma(Alpha/Rank, B·A, W), B·A as computed by MatMulDX. Call Refresh
// afterwards.
func (m *Model) FoldAdapters(from *Model) error {
	if m.base != nil {
		panic("model: adapters fold only into a model's own weights")
	}
	_, widest := from.Heads.Adapters.widest(from.Config)
	in, _ := from.Heads.Adapters.widest(from.Config)
	d, err := m.be.Alloc(m.be.Float(), widest*in)
	if err != nil {
		return &kernels.RoomError{Part: kernels.WeightRoom, Err: err}
	}
	defer m.be.Free(d)
	rank, size := partOn(m.be)
	for l := range m.layers {
		to, src := &m.layers[l], &from.layers[l]
		onto := to.linears()
		for i, y := range src.linears() {
			w := onto[i].w
			first, last := 0, w.Out // rows of w that this rank holds
			if w.W.Len() < int(w.Out*w.In) {
				first, last = partOf(w.Out, rank, size)
			}
			for _, a := range y.adapters {
				delta := d.Slice(0, a.out*w.In)
				m.be.MatMulDX(delta, a.b.W, a.a)
				if lo, hi := max(first, a.offset), min(last, a.offset+a.out); lo < hi {
					m.be.AddColumns(w.W.Slice(int((lo-first)*w.In), int((hi-first)*w.In)),
						delta.Slice(int((lo-a.offset)*w.In), int((hi-a.offset)*w.In)), w.In, w.In, 0, y.scale)
				}
			}
		}
	}
	m.be.Sync()
	return nil
}

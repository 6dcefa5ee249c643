package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/kernels"
)

// Adapters are low-rank adapters on linear maps of a frozen backbone (LoRA, Hu et al.,
// arXiv:2106.09685 §4.1): y = W·x + (Alpha/Rank)·B·A·x, A [Rank,in] and B [out,Rank].
type Adapters struct {
	Rank  int
	Alpha float64
	// Stabilized divides Alpha by the root of the rank, not by the rank (rsLoRA, arXiv:2312.03732).
	Stabilized bool
	Targets    []string // last parts of the language model's maps' names: q_proj, k_proj, …
	Dropout    float64  // of x before A, in training; not on the vision tower
	// Tower lists the maps of the vision tower that have adapters, too.
	Tower []TowerMap
}

// AdapterTargets returns the linear maps of a configuration that can have an adapter, by
// the last parts of their names. The vision tower's are in TowerMaps.
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
	case len(a.Targets) == 0 && len(a.Tower) == 0:
		return fmt.Errorf("model: adapters have no targets")
	}
	can, tower := c.AdapterTargets(), ""
	if list := c.TowerTargets(); len(list) > 0 {
		tower = ", and in the vision tower " + strings.Join(list, ", ")
	}
	for _, t := range a.Targets {
		if !slices.Contains(can, t) {
			return fmt.Errorf("model: adapters cannot target %q; possible targets are %s%s", t,
				strings.Join(can, ", "), tower)
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
func (a Adapters) Scale() float64 {
	if a.Stabilized {
		return a.Alpha / math.Sqrt(float64(a.Rank))
	}
	return a.Alpha / float64(a.Rank)
}

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
	for _, t := range a.Tensors(c) {
		x.one(t.A, a.Rank, t.In)
		x.one(t.B, t.Out, a.Rank)
	}
	x.heads(c, h)
	x.group()
	return x.tensors, x.n
}

// adaptedMap is a tensor of a linear map of the language model that has an adapter.
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

// AdapterWork is what adapters add to a token's passes: floating-point operations of products, and elements of
// activations that are read or written.
type AdapterWork struct {
	Forward, Backward           float64
	ForwardMoved, BackwardMoved float64
}

// Work returns the work of adapters; a nil *Adapters has none. A backward pass multiplies with A again.
func (a *Adapters) Work(c Config) (w AdapterWork) {
	for _, t := range adapted(c, a) {
		in, out, rank := float64(t.in), float64(t.out), float64(a.Rank)
		w.Forward += 2 * rank * (in + out)
		w.Backward += 2 * rank * (3*in + 2*out)
		w.ForwardMoved += in + 4*out
		w.BackwardMoved += 6*in + 4*out
	}
	return w
}

// widest returns the largest input and output of any adapted map of the language model.
func (a *Adapters) widest(c Config) (in, out int) {
	in, out = 1, 1
	for _, t := range adapted(c, a) {
		in, out = max(in, t.in), max(out, t.out)
	}
	return in, out
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
// same backend, and the vision tower if they are on it: W = fma(Alpha/Rank, B·A, W), B·A as
// computed by MatMulDX. Call Refresh afterwards.
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
				delta := d.Slice(0, a.B.Out*w.In)
				m.be.MatMulDX(delta, a.B.W, a.A)
				if lo, hi := max(first, a.Offset), min(last, a.Offset+a.B.Out); lo < hi {
					m.be.AddColumns(w.W.Slice(int((lo-first)*w.In), int((hi-first)*w.In)),
						delta.Slice(int((lo-a.Offset)*w.In), int((hi-a.Offset)*w.In)), w.In, w.In, 0, y.scale)
				}
			}
		}
	}
	m.be.Sync()
	return m.foldTower(from)
}

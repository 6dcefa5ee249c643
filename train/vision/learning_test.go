package vision

import (
	"maps"
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// arena is the weights and gradients of a learning tower.
type arena struct {
	be            kernels.Backend
	at            map[string]int // first element of a tensor
	params, grads kernels.Buffer
	tower         *Tower
}

// learning returns a tower whose weights lie in an arena and are those that read gives.
func learning(t *testing.T, be kernels.Backend, c Config, read Read) *arena {
	t.Helper()
	a := &arena{be: be, at: map[string]int{}}
	n := 0
	for _, g := range c.Groups() {
		n = (n + kernels.Lanes - 1) / kernels.Lanes * kernels.Lanes
		for _, x := range g {
			a.at[x.Name] = n
			n += x.Len()
		}
	}
	for _, b := range []*kernels.Buffer{&a.params, &a.grads} {
		var err error
		if *b, err = be.Alloc(be.Float(), n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { be.Free(*b) })
	}
	for _, x := range c.Tensors() {
		list, err := read(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		be.Copy(a.params.Slice(a.at[x.Name], a.at[x.Name]+x.Len()), list)
		be.Sync()
	}
	view := func(b *kernels.Buffer) func([]Tensor) kernels.Buffer {
		return func(g []Tensor) kernels.Buffer {
			last := g[len(g)-1]
			return b.Slice(a.at[g[0].Name], a.at[last.Name]+last.Len())
		}
	}
	var err error
	if a.tower, err = NewLearning(be, c, view(&a.params), view(&a.grads)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.tower.Close)
	a.tower.Refresh()
	return a
}

// list returns a copy of a buffer on the host.
func (a *arena) list(b kernels.Buffer) []float64 {
	list := make([]float64, b.Len())
	a.be.Copy(kernels.Host(list), b)
	a.be.Sync()
	return list
}

// smooth are tiny's towers and others, with which they use every branch, of weights that are not round numbers.
func smooth() map[string]Config {
	list := map[string]Config{}
	for _, kind := range kinds() {
		c := tiny(kind)
		c.Width, c.FFN, c.Out, c.Patch = 16, 5, 6, 1
		if c.has().eps {
			c.Eps = 0.1 // norms bend sharply near 0
		}
		list[string(kind)] = c
	}
	c := list[string(InternVL)]
	c.RMS, c.QKNorm, c.Bias, c.Last, c.Activation = true, true, false, false, GELUTanh
	list["internvl 6b"] = c
	c = list[string(Idefics3)]
	c.Side, c.Merge, c.Activation = 3, 3, QuickGELU
	list["idefics3 quick"] = c
	c = list[string(Qwen3VL)]
	c.Deep, c.Layers, c.Activation = []int{0, 2}, 3, GELU
	list["qwen3_vl deep"] = c
	return list
}

// rough reads weights that are not BF16 numbers; norms' are near 1.
func rough(c Config) Read {
	byName := map[string]Tensor{}
	for _, x := range c.Tensors() {
		byName[x.Name] = x
	}
	return func(name string) (kernels.Buffer, error) {
		x := byName[name]
		list := make([]float32, x.Len())
		for i := range list {
			list[i] = float32(math.Sin(float64(1+i*len(name))*1.7)) / 2
			if len(x.Shape) == 1 && name[len(name)-1] == 't' {
				list[i]++
			}
		}
		return kernels.Host(list), nil
	}
}

// A learning tower has the features of a frozen one with the same weights, before an update and after it, and takes the
// memory that it says beside its arena.
func TestLearningFeatures(t *testing.T) {
	for class, be := range map[string]kernels.Backend{"cpu/fma": openCPU(t, 2, kernels.F32),
		"cpu/bf16": openCPU(t, 2, kernels.BF16), "reference": ref.New[float32]()} {
		for name, c := range smooth() {
			m := &metered{Backend: be, sizes: map[kernels.Buffer]int64{}}
			p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
			a := learning(t, m, c, waves(c, kernels.F32))
			want := c.LearningWeightBytes(be.PackedLen, be.Operand())
			for _, x := range c.onHost() {
				want -= int64(8 * x.Len())
			}
			if got := m.now - int64(2*4*a.params.Len()); got != want {
				t.Errorf("%s, %s: %d bytes beside the arena, not %d", class, name, got, want)
			}
			before := a.tower.Encode(be, p)
			for _, x := range c.Tensors() {
				list, err := rough(c)(x.Name)
				if err != nil {
					t.Fatal(err)
				}
				be.Copy(a.params.Slice(a.at[x.Name], a.at[x.Name]+x.Len()), list)
			}
			a.tower.Refresh()
			frozen, err := New(be, c, kernels.F32, rough(c))
			if err != nil {
				t.Fatal(err)
			}
			got := a.tower.Encode(be, p)
			if !slices.Equal(got, frozen.Encode(be, p)) || slices.Equal(got, before) {
				t.Errorf("%s, %s: other features than the frozen tower's, or old ones", class, name)
			}
			frozen.Close()
		}
	}
}

// Every tensor is in one group.
func TestGroups(t *testing.T) {
	for name, c := range smooth() {
		want, got := map[string]int{}, map[string]int{}
		for _, x := range c.Tensors() {
			want[x.Name] = x.Len()
		}
		for _, g := range c.Groups() {
			for _, x := range g {
				if _, twice := got[x.Name]; twice {
					t.Errorf("%s: %s is in two groups", name, x.Name)
				}
				got[x.Name] = x.Len()
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: groups have %v, want %v", name, got, want)
		}
	}
}

package vision

import (
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/picture"
)

// adaptedArena is a frozen tower with adapters in an arena.
type adaptedArena struct {
	be            kernels.Backend
	on            Adapters
	shapes        map[string][2]int // [Out,In] of a map
	at            map[string][2]int // first elements of A and B
	params, grads kernels.Buffer
	frozen, tower *Tower
}

// adaptable returns [Out,In] of the maps that can have adapters, by their names, and the names in order.
func adaptable(c Config) (shapes map[string][2]int, names []string) {
	shapes = map[string][2]int{}
	for _, m := range c.maps() {
		for i, name := range m.names {
			if m.adapts() {
				shapes[name], names = [2]int{m.rows[i], m.in}, append(names, name)
			}
		}
	}
	return shapes, names
}

// adapted returns a tower of the weights that read gives, with adapters of rank 3 on maps, whose numbers are sines.
func adapted(t *testing.T, be kernels.Backend, c Config, read Read, maps ...string) *adaptedArena {
	t.Helper()
	shapes, names := adaptable(c)
	if maps == nil {
		maps = names
	}
	a := &adaptedArena{be: be, on: Adapters{Rank: 3, Scale: 0.75, Maps: maps}, shapes: shapes, at: map[string][2]int{}}
	n := 0
	for _, name := range maps {
		s := shapes[name]
		a.at[name] = [2]int{n, n + (3*s[1]+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes}
		n = a.at[name][1] + (3*s[0]+kernels.Lanes-1)/kernels.Lanes*kernels.Lanes
	}
	for _, b := range []*kernels.Buffer{&a.params, &a.grads} {
		var err error
		if *b, err = be.Alloc(be.Float(), n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { be.Free(*b) })
	}
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = float32(math.Sin(float64(i)*1.3+0.2)) / 3
	}
	be.Copy(a.params, kernels.Host(numbers))
	be.Sync()
	parts := func(all kernels.Buffer) Parts {
		return func(name string) (x, y kernels.Buffer) {
			at, s := a.at[name], shapes[name]
			return all.Slice(at[0], at[0]+3*s[1]), all.Slice(at[1], at[1]+3*s[0])
		}
	}
	var err error
	if a.frozen, err = New(be, c, kernels.F32, read); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.frozen.Close)
	if a.tower, err = a.frozen.Adapt(a.on, parts(a.params), parts(a.grads)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.tower.Close)
	a.tower.Refresh()
	return a
}

func (a *adaptedArena) list(b kernels.Buffer) []float64 {
	list := make([]float64, b.Len())
	a.be.Copy(kernels.Host(list), b)
	a.be.Sync()
	return list
}

// backward returns the gradients that Backward adds to zeros.
func (a *adaptedArena) backward(p picture.Patches, d []float32) []float64 {
	a.be.Zero(a.grads)
	a.tower.Backward(a.be, p, d)
	return a.list(a.grads)
}

// The features equal a tower's with the weights W + scale·B·A, and the gradients are dA = scale·Bᵀ·dW and
// dB = scale·dW·Aᵀ, by plain loops, of the gradients dW of that tower's weights.
func TestAdaptedTowers(t *testing.T) {
	be := kernels.Backend(ref.New[float64]())
	for name, c := range smooth() {
		p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
		a, whole := adapted(t, be, c, rough(c)), learning(t, be, c, rough(c))
		x, w := a.list(a.params), kernels.Elems[float64](whole.params)
		for m, s := range a.shapes {
			A, B, W := x[a.at[m][0]:], x[a.at[m][1]:], w[whole.at[m+".weight"]:]
			for o := range s[0] {
				for i := range s[1] {
					for r := range 3 {
						W[o*s[1]+i] += a.on.Scale * B[o*3+r] * A[r*s[1]+i]
					}
				}
			}
		}
		whole.tower.Refresh()
		d := upstream(c, p)
		got, want, plain := make([]float64, len(d)), make([]float64, len(d)), make([]float64, len(d))
		a.tower.EncodeInto(be, p, kernels.Host(got))
		whole.tower.EncodeInto(be, p, kernels.Host(want))
		a.frozen.EncodeInto(be, p, kernels.Host(plain))
		if off, size := distance(got, want), distance(plain, want); !(off <= 1e-10*size) || size == 0 {
			t.Errorf("%s: features are off by %g, and adapters change them by %g", name, off, size)
		}
		da, dw := a.backward(p, d), whole.backward(p, d)
		loops := make([]float64, len(da))
		for m, s := range a.shapes {
			A, B, W := x[a.at[m][0]:], x[a.at[m][1]:], dw[whole.at[m+".weight"]:]
			for o := range s[0] {
				for i := range s[1] {
					for r := range 3 {
						loops[a.at[m][0]+r*s[1]+i] += a.on.Scale * B[o*3+r] * W[o*s[1]+i]
						loops[a.at[m][1]+o*3+r] += a.on.Scale * A[r*s[1]+i] * W[o*s[1]+i]
					}
				}
			}
		}
		for m := range a.shapes {
			for part, n := range [2]int{3 * a.shapes[m][1], 3 * a.shapes[m][0]} {
				at := a.at[m][part]
				off, size := distance(da[at:at+n], loops[at:at+n]), distance(loops[at:at+n], make([]float64, n))
				if !(off <= 1e-10*size) || size == 0 {
					t.Errorf("%s: part %d of %s is off by %g of %g", name, part, m, off, size)
				}
			}
		}
	}
}

// distance returns the Euclidean distance of two lists.
func distance(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		sum += (x[i] - y[i]) * (x[i] - y[i])
	}
	return math.Sqrt(sum)
}

// The slope of the sum of d·features along a direction through all adapters, all A first and then all B, is the
// central difference.
func TestAdapterGradients(t *testing.T) {
	be := kernels.Backend(ref.New[float64]())
	for name, c := range smooth() {
		p := picturedAs(c, 2*c.Merge, 2*c.Merge, 1)
		a, d := adapted(t, be, c, rough(c)), upstream(c, p)
		got, w := a.backward(p, d), kernels.Elems[float64](a.params)
		was, features := slices.Clone(w), make([]float64, len(d))
		for part := range 2 {
			value := func(h float64) (sum float64) {
				for m, s := range a.shapes {
					for i := a.at[m][part]; i < a.at[m][part]+3*s[1-part]; i++ {
						w[i] = was[i] + h*math.Sin(float64(5*i))
					}
				}
				a.tower.Refresh()
				a.tower.EncodeInto(be, p, kernels.Host(features))
				for i, v := range d {
					sum += float64(v) * features[i]
				}
				return sum
			}
			var slope, size float64
			for m, s := range a.shapes {
				for i := a.at[m][part]; i < a.at[m][part]+3*s[1-part]; i++ {
					slope, size = slope+got[i]*math.Sin(float64(5*i)), size+math.Abs(got[i])
				}
			}
			const h = 4e-6
			want := (value(h) - value(-h)) / (2 * h)
			value(0)
			if !(math.Abs(slope-want) <= 1e-7*size) {
				t.Errorf("%s, part %d: slope %.12g, differences %.12g, sum of sizes %g", name, part, slope, want, size)
			}
		}
	}
}

// Features and gradients are the reference's in the class, for any number of threads, and on frozen BF16 weights those
// on their float32 numbers.
func TestAdaptedTowersHaveOneResult(t *testing.T) {
	for class, x := range map[string]struct {
		operand   kernels.DType
		reference kernels.Backend
	}{"cpu/fma": {kernels.F32, ref.New[float32]()}, "cpu/bf16": {kernels.BF16, ref.NewMixed()}} {
		two := openCPU(t, 2, x.operand)
		for name, c := range smooth() {
			p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
			d := upstream(c, p)
			a := adapted(t, two, c, rough(c))
			features, got := a.tower.Encode(two, p), a.backward(p, d)
			for what, be := range map[string]kernels.Backend{"one thread": openCPU(t, 1, x.operand), "reference": x.reference} {
				b := adapted(t, be, c, rough(c))
				if !slices.Equal(b.tower.Encode(be, p), features) || !slices.Equal(b.backward(p, d), got) {
					t.Errorf("%s, %s, %s: other bits", class, name, what)
				}
			}
			be := a.tower.Shared()
			be.Close()
			if !slices.Equal(a.tower.Encode(two, p), features) {
				t.Errorf("%s, %s: closing a tower that shares weights freed them", class, name)
			}
		}
	}
}

// An adapter on one of several tensors that are multiplied together changes its rows alone, and one of another tower's
// map is an error.
func TestAdaptersOnSomeMaps(t *testing.T) {
	be := kernels.Backend(ref.New[float64]())
	c := smooth()[string(InternVL)]
	p := picturedAs(c, 2*c.Merge, 2*c.Merge, 1)
	const key = "vision_tower.encoder.layer.1.attention.k_proj"
	a := adapted(t, be, c, rough(c), key)
	if f, g := a.tower.Encode(be, p), a.frozen.Encode(be, p); slices.Equal(f, g) {
		t.Error("the adapter changes nothing")
	}
	whole := learning(t, be, c, rough(c))
	x, s := a.list(a.params), a.shapes[key]
	w := kernels.Elems[float64](whole.params)[whole.at[key+".weight"]:]
	for o := range s[0] {
		for i := range s[1] {
			for r := range 3 {
				w[o*s[1]+i] += a.on.Scale * x[a.at[key][1]+o*3+r] * x[a.at[key][0]+r*s[1]+i]
			}
		}
	}
	whole.tower.Refresh()
	got, want := a.tower.Encode(be, p), whole.tower.Encode(be, p)
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Fatalf("feature %d is %g, want %g", i, got[i], want[i])
		}
	}
	none := func(string) (x, y kernels.Buffer) { return x, y }
	if _, err := a.frozen.Adapt(Adapters{Rank: 1, Scale: 1, Maps: []string{"blocks.0.attn.qkv"}}, none, nil); err == nil {
		t.Error("adapters on another tower's map")
	}
}

// AdapterBytes and AdaptedBytes equal the bytes allocated, and nothing is left.
func TestAdaptedBytes(t *testing.T) {
	for name, c := range smooth() {
		m := &metered{Backend: openCPU(t, 1, kernels.F32), sizes: map[kernels.Buffer]int64{}}
		frozen, err := New(m, c, kernels.F32, rough(c))
		if err != nil {
			t.Fatal(err)
		}
		before := m.now
		a := adapted(t, m, c, rough(c))
		arenas := int64(4 * 2 * a.params.Len())
		if got, want := m.now-2*before-arenas, c.AdapterBytes(a.on, true, m.PackedLen, m.Operand()); got != want {
			t.Errorf("%s: adapters take %d bytes, not %d", name, got, want)
		}
		frozen.Close()
		p := picturedAs(c, 2*c.Merge, 2*c.Merge, 1)
		for _, learns := range []bool{false, true} {
			held := m.now
			m.most = held
			if learns {
				a.tower.Backward(m, p, upstream(c, p))
			} else {
				a.tower.Encode(m, p)
			}
			if got, want := m.most-held, c.AdaptedBytes(a.on, learns, kernels.F32, kernels.F32, p.Rows*p.Columns); got != want || m.now != held {
				t.Errorf("%s, learns %t: an image takes %d bytes, not %d, and leaves %d", name, learns, got, want, m.now-held)
			}
		}
	}
}

// Modules are names of transformers' modules.
func TestModules(t *testing.T) {
	for kind, want := range map[Kind][]string{
		Qwen25VL: {"model.visual.blocks.0.attn.qkv", "model.visual.blocks.0.attn.proj", "model.visual.blocks.0.mlp.gate_proj",
			"model.visual.blocks.0.mlp.up_proj", "model.visual.blocks.0.mlp.down_proj", "model.visual.merger.mlp.0",
			"model.visual.merger.mlp.2"},
		Idefics3: {"model.vision_model.encoder.layers.0.self_attn.q_proj", "model.vision_model.encoder.layers.0.self_attn.k_proj",
			"model.vision_model.encoder.layers.0.self_attn.v_proj", "model.vision_model.encoder.layers.0.self_attn.out_proj",
			"model.vision_model.encoder.layers.0.mlp.fc1", "model.vision_model.encoder.layers.0.mlp.fc2",
			"model.connector.modality_projection.proj"},
	} {
		if got := kind.Modules(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

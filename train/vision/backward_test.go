package vision

import (
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/picture"
)

// backward returns the gradients that Backward adds to zeros.
func (a *arena) backward(p picture.Patches, d []float32) []float64 {
	a.be.Zero(a.grads)
	a.tower.Backward(a.be, p, d)
	return a.list(a.grads)
}

// upstream returns gradients of the features of an image.
func upstream(c Config, p picture.Patches) []float32 {
	d := make([]float32, (1+len(c.Deep))*p.Rows*p.Columns/c.unit()*c.Out)
	for i := range d {
		d[i] = float32(math.Cos(float64(i*i) + 0.3))
	}
	return d
}

// TestGradients compares the gradient of each tensor, in two directions, with central differences on the float64
// reference, h = 6e-6, of the sum of d·features.
func TestGradients(t *testing.T) {
	be := kernels.Backend(ref.New[float64]())
	for name, c := range smooth() {
		t.Run(name, func(t *testing.T) {
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			a := learning(t, be, c, rough(c))
			p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
			d := upstream(c, p)
			got := a.backward(p, d)
			features := make([]float64, len(d))
			value := func() (sum float64) {
				a.tower.Refresh()
				a.tower.EncodeInto(be, p, kernels.Host(features))
				for i, v := range d {
					sum += float64(v) * features[i]
				}
				return sum
			}
			for _, x := range c.Tensors() {
				w := kernels.Elems[float64](a.params)[a.at[x.Name]:][:x.Len()]
				g, at := got[a.at[x.Name]:][:x.Len()], slices.Clone(w)
				for k := range 2 {
					var slope, size float64
					direction := func(i int) float64 { return math.Sin(float64(i*(5+k)) + 0.4*float64(k)) }
					for i, v := range g {
						slope, size = slope+v*direction(i), size+math.Abs(v*direction(i))
					}
					move := func(h float64) {
						for i := range w {
							w[i] = at[i] + h*direction(i)
						}
					}
					const h = 6e-6
					move(h)
					above := value()
					move(-h)
					want := (above - value()) / (2 * h)
					move(0)
					if !(math.Abs(slope-want) <= 1e-8*max(size, 1)) || size == 0 {
						t.Errorf("%s: slope %.12g, differences %.12g, sum of sizes %g", x.Name, slope, want, size)
					}
				}
			}
		})
	}
}

// Gradients equal the reference's in the class, for any number of threads, and are added to the old ones.
func TestGradientsHaveOneResult(t *testing.T) {
	for class, x := range map[string]struct {
		operand   kernels.DType
		reference kernels.Backend
	}{"cpu/fma": {kernels.F32, ref.New[float32]()}, "cpu/bf16": {kernels.BF16, ref.NewMixed()}} {
		one, two := openCPU(t, 1, x.operand), openCPU(t, 2, x.operand)
		for name, c := range smooth() {
			p := picturedAs(c, 2*c.Merge, 3*c.Merge, 1)
			d := upstream(c, p)
			a := learning(t, two, c, rough(c))
			got := a.backward(p, d)
			for what, be := range map[string]kernels.Backend{"one thread": one, "reference": x.reference} {
				if want := learning(t, be, c, rough(c)).backward(p, d); !slices.Equal(got, want) {
					t.Errorf("%s, %s, %s: other gradients", class, name, what)
				}
			}
			if x.operand != kernels.F32 || c.has().class { // a sum of BF16 factors goes on; rows of tiles are a block
				continue
			}
			a.tower.Backward(two, p, d) // all rows are one block, so the second sum is the first
			for i, v := range a.list(a.grads) {
				if v != 2*got[i] {
					t.Fatalf("%s: gradient %d is %g, not twice %g", name, i, v, got[i])
				}
			}
		}
	}
}

// More patches than a step, and more than a block of a gradient's sum: the gradients still equal the reference's
// to rounding.
func TestGradientsOfSteps(t *testing.T) {
	be := openCPU(t, 2, kernels.F32)
	for _, c := range []Config{tiny(Qwen25VL), tiny(InternVL)} { // the latter has more rows than patches
		c.Width, c.Heads, c.FFN, c.Patch, c.Layers, c.Full = 8, 1, 3, 1, 1, nil
		p := picturedAs(c, 46, 46, 1) // 2116
		d := upstream(c, p)
		got := learning(t, be, c, rough(c)).backward(p, d)
		want := learning(t, ref.New[float64](), c, rough(c)).backward(p, d)
		var off, all float64
		for i, w := range want {
			off, all = off+(got[i]-w)*(got[i]-w), all+w*w
		}
		if !(off <= 1e-10*all) {
			t.Errorf("%s: off by %g of %g", c.Kind, math.Sqrt(off), math.Sqrt(all))
		}
	}
}

// LearningBytes is what a backward pass allocates, and nothing is left.
func TestLearningBytes(t *testing.T) {
	for name, c := range smooth() {
		m := &metered{Backend: ref.New[float32](), sizes: map[kernels.Buffer]int64{}}
		a := learning(t, m, c, rough(c))
		p := picturedAs(c, 2*c.Merge, 2*c.Merge, 1)
		before := m.now
		a.tower.Backward(m, p, upstream(c, p))
		if got, want := m.most-before, c.LearningBytes(kernels.F32, kernels.F32, p.Rows*p.Columns); got != want {
			t.Errorf("%s: an image takes %d bytes, not %d", name, got, want)
		}
		if m.now != before {
			t.Errorf("%s: %d bytes are left", name, m.now-before)
		}
	}
}

package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
)

// toyTower makes features of numbers in a model's arena: feature c of row r of kind k is base[k][c] + r·slope[c].
type toyTower struct {
	*gallery
	m         *Model
	be        kernels.Backend
	refreshed int
	passes    []int32 // first tokens of the images that Backward was called for
}

// withTower returns c with the weights of a toyTower.
func withTower(c Config) Config {
	c.Tower = [][]TowerTensor{{{Name: "visual.base.weight", Shape: []int{1 + c.Images.Deep, c.Width}, Table: true}},
		{{Name: "visual.slope.weight", Shape: []int{1, c.Width}}, {Name: "visual.slope.bias", Shape: []int{1}}}}
	return c
}

func (x *toyTower) Refresh() { x.refreshed++ }

func (x *toyTower) Features(_ kernels.Backend, im Image) []float32 {
	C := x.m.Config.Width
	base, slope := hostOf(x.be, x.m.View("visual.base.weight")), hostOf(x.be, x.m.View("visual.slope.weight"))
	f := make([]float32, (1+x.m.Config.Images.Deep)*im.Tokens()*C)
	for i := range f {
		k, r, c := i/C/im.Tokens(), i/C%im.Tokens(), i%C
		f[i] = float32(base[k*C+c] + float64(r)*slope[c])
	}
	return f
}

func (x *toyTower) Backward(_ kernels.Backend, im Image, d []float32) {
	x.passes = append(x.passes, im.First)
	C := x.m.Config.Width
	base, slope := hostOf(x.be, x.m.Grad("visual.base.weight")), hostOf(x.be, x.m.Grad("visual.slope.weight"))
	for i, v := range d {
		k, r, c := i/C/im.Tokens(), i/C%im.Tokens(), i%C
		base[k*C+c] += float64(v)
		slope[c] += float64(r) * float64(v)
	}
	x.be.Copy(x.m.Grad("visual.base.weight"), kernels.Host(base))
	x.be.Copy(x.m.Grad("visual.slope.weight"), kernels.Host(slope))
	x.be.Sync()
}

func hostOf(be kernels.Backend, b kernels.Buffer) []float64 {
	x := make([]float64, b.Len())
	be.Copy(kernels.Host(x), b)
	be.Sync()
	return x
}

// learningBatch is imageBatch of a model with a toyTower. Text stands between two rows of the last image, unless
// its tokens see each other.
func learningBatch(m *Model, be kernels.Backend) (Batch, *toyTower) {
	plain := &Model{Config: m.Config.WithoutTower()}
	b := imageBatch(plain)
	if m.Config.Images.Block == 0 {
		row := b.Tokens[b.Offsets[3]+3:] // the image's second one, and the text behind it
		row[0], row[1] = row[1], row[0]
	}
	x := &toyTower{gallery: plain.images.(*gallery), m: m, be: be}
	m.SetImages(x)
	return b, x
}

// The gradient of a tower's weights is the central difference of the objective, through shared prompts, an image that
// several sequences show, and features of deeper layers.
func TestTowerGradients(t *testing.T) {
	for _, name := range []string{"qwen2.5-vl", "qwen3-vl", "gemma3 images"} {
		c := withTower(variants[name])
		// Features are float32: steps of 1/256 from multiples of it lose nothing.
		const h = 1.0 / 256
		objectiveOf := func(keep Keep) *objective {
			o := newObjective(t, c, Heads{LM: true}, keep)
			for _, group := range c.Tower {
				for _, x := range group {
					v := hostOf(o.be, o.m.View(x.Name))
					for i := range v {
						v[i] = math.Round(v[i]/h) * h
					}
					o.be.Copy(o.m.View(x.Name), kernels.Host(v))
				}
			}
			return o
		}
		o := objectiveOf(KeepAll)
		got := [2][]float64{o.gradient(), objectiveOf(KeepInputs).gradient()}
		for _, x := range o.m.Tensors() {
			if x.Name != "visual.base.weight" && x.Name != "visual.slope.weight" {
				continue
			}
			for i := range x.Len() {
				at := o.m.View(x.Name).Slice(i, i+1)
				was := hostOf(o.be, at)[0]
				value := func(v float64) float64 {
					o.be.Copy(at, kernels.Host([]float64{v}))
					return o.value()
				}
				difference := func(h float64) float64 { return (value(was+h) - value(was-h)) / (2 * h) }
				want := (4*difference(h) - difference(2*h)) / 3 // Richardson: the error is of order h⁴
				o.be.Copy(at, kernels.Host([]float64{was}))
				for keep, g := range got {
					if d := g[x.off+i]; !(math.Abs(d-want) <= 2e-4*max(1, math.Abs(want))) {
						t.Errorf("%s, way %d: %s[%d]: gradient %g, difference %g", name, keep, x.Name, i, d, want)
					}
				}
			}
		}
	}
}

// Gradients of a tower's weights have the same bits in one micro-batch and in several, and each image has one backward
// pass, in the order in which rows show them; a small room takes them earlier, in that order.
func TestTowerGradientsOfMicroBatches(t *testing.T) {
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	c := withTower(variants["qwen3-vl"])
	run := func(room int, cuts ...int) (grads []float64, passes []int32) {
		m, err := New(be, c, Heads{LM: true}, true)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		initialised(m)
		b, x := learningBatch(m, be)
		m.shownGrads.room = room
		ws, err := NewWorkspace(be, c, m.Heads, Capacity{Tokens: len(b.Tokens), Sequences: 4}, KeepInputs)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		m.ZeroGrads()
		for i, lo := range cuts {
			hi := len(b.Prompt)
			if i+1 < len(cuts) {
				hi = cuts[i+1]
			}
			part := Batch{Tokens: b.Tokens[b.Offsets[lo]:b.Offsets[hi]], Prompt: b.Prompt[lo:hi], Group: b.Group[lo:hi]}
			for _, o := range b.Offsets[lo : hi+1] {
				part.Offsets = append(part.Offsets, o-b.Offsets[lo])
			}
			ws.Load(part)
			m.Forward(ws)
			m.Scores(ws, 1)
			ones := slices.Repeat([]float32{1}, ws.Rows())
			be.Copy(ws.DLogProb(), kernels.Host(ones))
			be.Copy(ws.DEntropy(), kernels.Host(make([]float32, ws.Rows())))
			m.Backward(ws, Upstream{Scores: true})
		}
		if m.FinishGrads(); m.shownGrads.held != 0 {
			t.Errorf("%d bytes of gradients wait when all have been taken", m.shownGrads.held)
		}
		return hostOf(be, m.Grads()), x.passes
	}
	first := int32(c.Vocab)
	whole, passes := run(GradientBytes, 0)
	if want := []int32{first, first + 6, first + 8}; !slices.Equal(passes, want) {
		t.Errorf("backward passes of images %v, want %v", passes, want)
	}
	cut, again := run(GradientBytes, 0, 2, 3)
	if !slices.Equal(whole, cut) || !slices.Equal(passes, again) {
		t.Error("micro-batches change gradients")
	}
	row := 4 * (1 + c.Images.Deep) * c.Width
	small, passes := run(9*row, 0) // room for the first image and the second
	if want := []int32{first, first + 6, first + 8, first + 6}; !slices.Equal(passes, want) {
		t.Errorf("with little room: backward passes of images %v, want %v", passes, want)
	}
	if cut, again := run(9*row, 0, 2, 3); !slices.Equal(small, cut) || !slices.Equal(passes, again) {
		t.Error("with little room: micro-batches change gradients")
	}
	tower := func(g []float64) []float64 { return g[len(g)-64:] }
	if slices.Max(tower(whole)) == 0 && slices.Min(tower(whole)) == 0 {
		t.Error("the tower has no gradient")
	}
}

// A change of weights reaches the tower, frozen models have none of its tensors, and Muon orthogonalises its maps.
func TestTowerTensors(t *testing.T) {
	c := withTower(variants["qwen2.5-vl"])
	be := ref.New[float32]()
	m, err := New(be, c, Heads{LM: true, Value: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, x := learningBatch(m, be)
	n := x.refreshed
	m.gradientOf(Image{First: 1, Rows: 1, Columns: 1})
	m.ZeroGrads()
	if m.FinishGrads(); x.passes != nil {
		t.Errorf("gradients of features that were cleared are taken through the tower: images %v", x.passes)
	}
	if a, b := c.BackboneBytes(true, kernels.F32, nil, kernels.F32, 1),
		c.WithoutTower().BackboneBytes(true, kernels.F32, nil, kernels.F32, 1); a != b {
		t.Errorf("frozen weights take %d bytes, without a tower that learns %d", a, b)
	}
	if m.Refresh(); n == 0 || x.refreshed == n {
		t.Errorf("the tower was refreshed %d times, then %d times", n, x.refreshed)
	}
	var hidden []string
	heads := false
	for _, t := range m.Tensors() {
		if t.Name[:3] == "vis" && t.Hidden() {
			hidden = append(hidden, t.Name)
		}
		heads = heads || t.Auxiliary()
	}
	if last := m.Tensors()[len(m.Tensors())-1]; !heads || !last.Auxiliary() {
		t.Errorf("%s is the last tensor, want one of a head", last.Name)
	}
	if got := fmt.Sprint(hidden); got != "[visual.slope.weight]" {
		t.Errorf("matrices of the tower that are hidden: %s", got)
	}
	b, err := NewBackbone(be, c, true, kernels.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, x := range b.Tensors() {
		if x.Name[:3] == "vis" {
			t.Errorf("frozen weights have the tensor %s", x.Name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("images of another tower are taken")
		}
	}()
	m.SetImages(newGallery(c, [2]int{1, 1}))
}

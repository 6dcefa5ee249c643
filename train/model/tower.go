package model

import (
	"slices"
	"strings"

	"exp/kernels"
)

// This file has what a model needs to train the vision tower behind its images: room for the tower's weights in the
// model's arena, and the gradient of images' features. What a tower computes is of no concern here: package vision
// has it, and a model reaches it as LearningImages.

// TowerTensor is one of the weights of a vision tower that a model trains.
type TowerTensor struct {
	Name  string
	Shape []int
	// Table says that rows are added or looked up, as learned positions are, not multiplied.
	Table bool `json:",omitempty"`
}

// LearningImages are Images whose features come from weights in the model's arena: the tower's (Config.Tower), or
// adapters on a frozen one (Adapters.Tower). Each model with such weights needs LearningImages of its own.
type LearningImages interface {
	Images
	// Refresh is called after every change of the weights: features from before are no longer valid.
	Refresh()
	// Backward adds to the weights' gradients on a backend. d [1+Deep][Rows·Columns][Width] is the gradient of what
	// Features returns. It panics as Features does.
	Backward(be kernels.Backend, im Image, d []float32)
}

// WithoutTower returns c for a model whose tower is frozen, and outside of it.
func (c Config) WithoutTower() Config {
	c.Tower = nil
	return c
}

// tower adds the weights of the vision tower. A group's weights are contiguous.
func (x *layout) tower(c Config) {
	for _, group := range c.Tower {
		x.group()
		for _, t := range group {
			x.add(t.Name, t.Shape...)
			x.tensors[len(x.tensors)-1].table = t.Table
		}
	}
}

// HoldsTower reports whether the weights of the vision tower are the model's, or belong to the copy that it is on
// (NewCopy). Its images are then LearningImages.
func (m *Model) HoldsTower() bool {
	if m.base != nil {
		return m.base.tower.buf.Len() > 0
	}
	return len(m.Config.Tower) > 0
}

// TowerGroup returns the weights of group i of Config.Tower, its tensors one after another, and their gradients, empty
// unless the model trains them. It panics unless the model holds them.
func (m *Model) TowerGroup(i int) (weights, grads kernels.Buffer) {
	group := m.Config.Tower[i]
	first, last := group[0].Name, group[len(group)-1].Name
	if m.base != nil {
		return m.base.tower.span(first, last), grads
	}
	if m.trainable {
		grads = m.grads.span(first, last)
	}
	return m.params.span(first, last), grads
}

// TowerMap is a linear map of a vision tower that can have an adapter.
type TowerMap struct {
	Name    string // among a model's parameters, as in Config.Tower, without ".weight"
	Out, In int
}

// TowerMaps returns the linear maps of the vision tower among a model's parameters: its matrices, but neither filters
// of pixels nor tables.
func (c Config) TowerMaps() (list []TowerMap) {
	for _, group := range c.Tower {
		for _, t := range group {
			name, ok := strings.CutSuffix(t.Name, ".weight")
			if ok && len(t.Shape) == 2 && !t.Table {
				list = append(list, TowerMap{name, t.Shape[0], t.Shape[1]})
			}
		}
	}
	return list
}

// Target returns what train.lora.targets calls the map: the last part of its name.
func (t TowerMap) Target() string { return lastPart(t.Name) }

// TowerTargets returns the targets of the vision tower's maps.
func (c Config) TowerTargets() (list []string) {
	for _, t := range c.TowerMaps() {
		if !slices.Contains(list, t.Target()) {
			list = append(list, t.Target())
		}
	}
	return list
}

// Adapted returns the names of the map's weight and adapter.
func (t TowerMap) Adapted() AdaptedTensor { return adaptedTensor(t.Name, t.Out, t.In) }

// AdaptsTower reports whether the model has adapters on a vision tower whose weights it does not hold. Its images are
// then LearningImages.
func (m *Model) AdaptsTower() bool {
	a := m.Heads.Adapters
	return a != nil && len(a.Tower) > 0
}

// foldTower adds from's adapters on the vision tower to the tower's weights, which m holds.
func (m *Model) foldTower(from *Model) error {
	a := from.Heads.Adapters
	for _, t := range a.Tower {
		f, err := a.NewFold(m.be, t.Adapted(), t.Out)
		if err != nil {
			return err
		}
		m.be.Copy(f.A, from.params.view(t.Adapted().A))
		m.be.Copy(f.B, from.params.view(t.Adapted().B))
		f.Refresh()
		f.Add(m.params.view(t.Adapted().Weight), 0)
		f.Close()
	}
	return nil
}

// learning returns the images if the model holds weights of their features, else nil.
func (m *Model) learning() LearningImages {
	if !m.HoldsTower() && !m.AdaptsTower() {
		return nil
	}
	x, _ := m.images.(LearningImages)
	return x
}

// TowerLen returns how many elements of an arena the vision tower takes.
func (c Config) TowerLen() int {
	x := &layout{}
	x.tower(c)
	x.group()
	return x.n
}

// NewCopy is NewBackbone for a copy of weights that change, with an output projection and, if it learns, the vision
// tower. Set it by Fills, then call Refresh.
func NewCopy(be kernels.Backend, c Config) (*Backbone, error) {
	b, err := NewBackbone(be, c, true, kernels.F32)
	if err != nil || len(c.Tower) == 0 {
		return b, err
	}
	x := &layout{}
	x.tower(c)
	x.group()
	buf, err := be.Alloc(be.Float(), x.n)
	if err != nil {
		b.Close()
		return nil, &kernels.RoomError{Part: kernels.WeightRoom, Err: err}
	}
	b.owned = append(b.owned, buf)
	b.tower = newArena(buf, x.tensors, []Span{{Hi: x.n, Whole: true}})
	return b, nil
}

// towerFills returns the steps that set a copy's vision tower, some elements at a time.
func (b *Backbone) towerFills() (list []Fill) {
	n := b.tower.buf.Len()
	if n == 0 {
		return nil
	}
	tensors, _ := Layout(b.Config, Heads{LM: b.LM})
	from := tensors[len(tensors)-len(b.tower.tensors)].off
	for lo := 0; lo < n; lo += fillElems {
		part := b.tower.buf.Slice(lo, min(lo+fillElems, n))
		list = append(list, Fill{from + lo, from + lo + part.Len(), func(x kernels.Buffer) { b.be.Copy(part, x) }})
	}
	return list
}

// Refresh tells the images of the models on a copy that their tower has changed. Call it after Fills.
func (b *Backbone) Refresh() {
	for _, x := range b.images {
		x.Refresh()
	}
}

// trainsTower reports whether the model has gradients of a vision tower or of adapters on one.
func (m *Model) trainsTower() bool {
	return m.trainable && (m.base == nil && len(m.Config.Tower) > 0 || m.AdaptsTower())
}

// learnsTower reports whether the rows of images have gradients.
func (ws *Workspace) learnsTower() bool {
	if ws.adapters != nil {
		return len(ws.adapters.Tower) > 0
	}
	return len(ws.c.Tower) > 0
}

// imagePart is rows of an image that follow one another in a batch: From up to From+N of its tokens.
type imagePart struct {
	image   Image
	from, n int
}

// GradientBytes bounds the gradients of features that wait for their images' backward passes, in the host's memory. It
// decides which passes an image gets, and so enters results.
const GradientBytes = 256 << 20

// featureGradients are gradients of features, summed over the rows that show an image, in the order of the rows. An
// image's backward pass takes as long as 2 to 3 forward ones, so it is taken once for all rows of a slice: when the
// slice ends, or when no room is left for another image. Rows come in the same order whatever the micro-batches, so
// neither depends on them.
type featureGradients struct {
	room  int // bytes
	held  int
	list  []featureGradient // in the order in which images came
	place map[int32]int     // in list, by the image's first token
	rows  []float32         // of a micro-batch
}

type featureGradient struct {
	image Image
	d     []float32 // [1+Deep][Rows·Columns][Width]
}

// clear drops all gradients.
func (x *featureGradients) clear() {
	x.held, x.list = 0, nil
	clear(x.place)
}

// gradientOf returns the gradient of an image's features, zero at first.
func (m *Model) gradientOf(im Image) []float32 {
	x := &m.shownGrads
	if at, ok := x.place[im.First]; ok {
		return x.list[at].d
	}
	n := (1 + m.Config.Images.Deep) * im.Tokens() * m.Config.Width
	if x.held > 0 && x.held+4*n > x.room {
		m.towerBackward()
	}
	x.held += 4 * n
	if x.place == nil {
		x.place = map[int32]int{}
	}
	x.place[im.First] = len(x.list)
	x.list = append(x.list, featureGradient{im, make([]float32, n)})
	return x.list[len(x.list)-1].d
}

// towerBackward takes all gradients of features through the tower.
func (m *Model) towerBackward() {
	list := m.shownGrads.list
	m.shownGrads.clear()
	if len(list) == 0 {
		return
	}
	for _, g := range list {
		m.learning().Backward(m.be, g.image, g.d)
	}
}

// keepDeepGradient keeps the gradient dx of what layer l adds to the residual stream for the rows of images, if it
// is one of the first layers that get features. The features themselves are overwritten: nothing reads them again.
func (m *Model) keepDeepGradient(ws *Workspace, l int, dx kernels.Buffer) {
	x, C := &ws.images, m.Config.Width
	if !m.trainsTower() || x.shown == 0 || l >= len(x.deep) {
		return
	}
	m.be.GatherRows(x.deep[l].Slice(C, (1+x.shown)*C), dx, x.shownRows.dev.Slice(0, x.shown), C)
}

// addFeatureGradients adds dx, the gradient of embeddings, and the gradients that keepDeepGradient kept to the
// gradients of features, row by row.
func (m *Model) addFeatureGradients(ws *Workspace, dx kernels.Buffer) {
	x, C := &ws.images, m.Config.Width
	if !m.trainsTower() || x.shown == 0 {
		return
	}
	m.be.GatherRows(x.features.Slice(0, x.shown*C), dx, x.shownRows.dev.Slice(0, x.shown), C)
	sources := []kernels.Buffer{x.features.Slice(0, x.shown*C)}
	for _, deep := range x.deep {
		sources = append(sources, deep.Slice(C, (1+x.shown)*C))
	}
	n := x.shown * C
	m.shownGrads.rows = slices.Grow(m.shownGrads.rows[:0], len(sources)*n)[:len(sources)*n]
	for k, s := range sources {
		m.be.Copy(kernels.Host(m.shownGrads.rows[k*n:(k+1)*n]), s)
	}
	m.be.Sync()
	at := 0
	for _, p := range x.parts {
		d := m.gradientOf(p.image)
		for k := range sources {
			to := d[(k*p.image.Tokens()+p.from)*C:][:p.n*C]
			for i, v := range m.shownGrads.rows[k*n+at*C:][:p.n*C] {
				to[i] += v
			}
		}
		at += p.n
	}
}

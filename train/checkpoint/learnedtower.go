package checkpoint

import (
	"maps"
	"strings"

	"exp/kernels"
	"exp/train/model"
	"exp/train/vision"
)

// This file has vision towers that learn: their tensors lie in the arena of a language model, and in files of its
// weights. They are there under the names of transformers 4, which begin with visual where the tower is one module.

// learnedName returns the name of a tower's tensor among a model's parameters.
func learnedName(name string) string { return storedNames(name)[1] }

// TowerLayout returns the tensors of the vision tower of a model of text and images at a path as model.Config.Tower.
func TowerLayout(path string) (groups [][]model.TowerTensor, err error) {
	c, err := readTower(path)
	if err != nil {
		return nil, err
	}
	return towerLayout(c), nil
}

func towerLayout(c vision.Config) (groups [][]model.TowerTensor) {
	for _, g := range c.Groups() {
		var list []model.TowerTensor
		for _, t := range g {
			list = append(list, model.TowerTensor{Name: learnedName(t.Name), Shape: t.Shape, Table: c.Table(t.Name)})
		}
		groups = append(groups, list)
	}
	return groups
}

// TowerOf returns the vision tower whose weights m holds (model.Model.HoldsTower), on a device that reaches them. path
// is a model of text and images of m's architecture.
func TowerOf(be kernels.Backend, path string, m *model.Model) (*vision.Tower, error) {
	c, err := readTower(path)
	if err != nil {
		return nil, err
	}
	place := map[string]int{} // of groups, by their first tensors
	for i, g := range c.Groups() {
		place[g[0].Name] = i
	}
	weights := func(group []vision.Tensor) kernels.Buffer {
		w, _ := m.TowerGroup(place[group[0].Name])
		return w
	}
	if !m.Trainable() {
		return vision.NewLearning(be, c, weights, nil)
	}
	return vision.NewLearning(be, c, weights, func(group []vision.Tensor) kernels.Buffer {
		_, grads := m.TowerGroup(place[group[0].Name])
		return grads
	})
}

// WithTowerMaps returns c with the tensors of the vision tower of a model of text and images at a path, so that
// adapters can be on them; c itself if it reads no images. It describes a model whose tower is in its arena otherwise.
func WithTowerMaps(c model.Config, path string) (model.Config, error) {
	if !c.ReadsImages() || c.Tower != nil {
		return c, nil
	}
	var err error
	c.Tower, err = TowerLayout(path)
	return c, err
}

// TowerAdapters returns adapters on a vision tower under the tower's own names.
func TowerAdapters(a *model.Adapters) vision.Adapters {
	x := vision.Adapters{Rank: a.Rank, Scale: a.Scale()}
	for _, t := range a.Tower {
		name, _ := towerName(t.Name)
		x.Maps = append(x.Maps, name)
	}
	return x
}

// AdaptedTower returns a vision tower with the weights of another, which must outlive it, and the adapters that m has
// on it (model.Model.AdaptsTower).
func AdaptedTower(base *vision.Tower, m *model.Model) (*vision.Tower, error) {
	a, names := m.Heads.Adapters, map[string]model.AdaptedTensor{}
	on := TowerAdapters(a)
	for i, t := range a.Tower {
		names[on.Maps[i]] = t.Adapted()
	}
	parts := func(view func(name string) kernels.Buffer) vision.Parts {
		return func(name string) (a, b kernels.Buffer) { return view(names[name].A), view(names[name].B) }
	}
	if !m.Trainable() {
		return base.Adapt(on, parts(m.View), nil)
	}
	return base.Adapt(on, parts(m.View), parts(m.Grad))
}

// OpenWithTower is OpenFolder for a model of text and images whose vision tower learns: its tensors are there, too.
func OpenWithTower(path string) (*Tensors, error) {
	t, err := openContainer(path)
	if err != nil {
		return nil, err
	}
	return t.WithTower(path)
}

// WithTower gives the tensors of a model of text and images the names that a model's parameters have: a plain
// language model's, and the vision tower's. It takes files of such parameters, and a folder's. path is a model of
// the same class, whose config.json counts. On an error it closes t. Adapters keep the names that they have.
func (t *Tensors) WithTower(path string) (*Tensors, error) {
	for name := range t.where {
		if strings.HasPrefix(name, adapterPrefix) {
			return t, nil
		}
	}
	tower := map[string]place{}
	all := maps.Clone(t.where)
	maps.Copy(all, t.tower)
	plain := false
	for name, p := range all {
		if rest, ok := towerName(name); ok && !strings.HasSuffix(name, inverseFrequencies) {
			p.Name = learnedName(rest)
			tower[p.Name] = p
		}
		plain = plain || name == embedding
	}
	err := t.rename(func(name string) (string, bool) {
		_, ok := towerName(name)
		return name, !ok
	})
	if err == nil && !plain {
		if t, err = t.textOf(path); err != nil {
			return nil, err // closed
		}
	} else if err == nil { // heads stay, too
		if err = t.hybridNames(); err == nil {
			err = t.splitTextExperts(path)
		}
	}
	maps.Copy(t.where, tower)
	return t.orClosed(err)
}

// LoadTower returns the vision tower among tensors of WithTower, frozen, as LoadTower does. path is a model of the
// same class, whose config.json counts.
func (t *Tensors) LoadTower(be kernels.Backend, path string) (*vision.Tower, error) {
	c, err := readTower(path)
	if err != nil {
		return nil, err
	}
	x := *t
	if err := x.rename(towerName); err != nil {
		return nil, err
	}
	return x.loadTower(be, c)
}

// withTower returns o with the vision tower's tensors, for a model that has trained them.
func (o *Origin) withTower() (*Origin, error) {
	if o == nil || o.Path == "" {
		return nil, errNoTower
	}
	t, err := OpenTower(o.Path)
	if err != nil {
		return nil, err
	}
	x := *o
	x.DTypes, x.Names = maps.Clone(o.DTypes), maps.Clone(o.Names)
	for name, p := range t.where {
		x.DTypes[learnedName(name)], x.Names[learnedName(name)] = p.DType, p.stored
	}
	return &x, t.Close()
}

// splitTower divides sources of a model's parameters into the language model's and the vision tower's, these under the
// names of package vision.
func splitTower(list []Source) (text, tower []Source) {
	for _, s := range list {
		if name, ok := towerName(s.Name); ok {
			s.Name = name
			tower = append(tower, s)
		} else {
			text = append(text, s)
		}
	}
	return text, tower
}

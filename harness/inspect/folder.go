package inspect

import (
	"errors"

	"exp/harness/config"
	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
)

// Folder is a model's folder and which part of it to use.
type Folder struct {
	Dir     string
	Part    string // of it, as model.part has it; empty: the whole
	Adapter string // folder of adapters in PEFT's layout for its weights; empty: none
}

// Config returns the architecture.
func (f Folder) Config() (model.Config, error) {
	switch f.Part {
	case config.PartText:
		return checkpoint.ReadTextConfig(f.Dir)
	case config.PartImages:
		return checkpoint.ReadImageConfig(f.Dir)
	}
	return checkpoint.ReadConfig(f.Dir)
}

func (f Folder) open() (*checkpoint.Tensors, error) {
	if f.Part == config.PartText {
		return checkpoint.OpenTextFolder(f.Dir)
	}
	return checkpoint.OpenFolder(f.Dir)
}

// load makes the model on be, with the positions of c. Adapters are computed next to
// the weights.
func (f Folder) load(be kernels.Backend, c model.Config) (*model.Model, error) {
	t, err := f.open()
	if err != nil {
		return nil, err
	}
	m, err := f.from(be, c, t)
	return m, errors.Join(err, t.Close())
}

// from makes a model with frozen weights, stored in the type that the files have where
// that gives the same bits as float32.
func (f Folder) from(be kernels.Backend, c model.Config, t *checkpoint.Tensors) (*model.Model, error) {
	if err := t.Fits(c); err != nil { // before allocating what the configuration claims
		return nil, err
	}
	heads, load := model.Heads{LM: true}, func(*model.Model) error { return nil }
	if f.Adapter != "" {
		with, err := checkpoint.WithTowerMaps(c, f.Dir)
		if err != nil {
			return nil, err
		}
		a, err := checkpoint.ReadAdapters(f.Adapter, with)
		if err != nil {
			return nil, err
		}
		a.Shape.Dropout = 0
		heads.Adapters, load = &a.Shape, func(m *model.Model) error { return a.Load(be, m) }
	}
	base, err := checkpoint.LoadBackbone(be, c, true, t.Frozen(), t)
	if err != nil {
		return nil, err
	}
	m, err := model.NewOn(base, heads, false)
	if err != nil {
		base.Close()
		return nil, err
	}
	m.OwnBackbone()
	return m, load(m)
}

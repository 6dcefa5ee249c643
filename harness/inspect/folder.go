package inspect

import (
	"errors"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
)

// Folder is a model's folder, and what of it is meant.
type Folder struct {
	Dir     string
	Text    bool   // the language model inside a model of text and images
	Adapter string // folder of adapters in PEFT's layout on its weights; empty: none
}

// Config is the architecture.
func (f Folder) Config() (model.Config, error) {
	if f.Text {
		return checkpoint.ReadTextConfig(f.Dir)
	}
	return checkpoint.ReadConfig(f.Dir)
}

func (f Folder) open() (*checkpoint.Tensors, error) {
	if f.Text {
		return checkpoint.OpenTextFolder(f.Dir)
	}
	return checkpoint.OpenFolder(f.Dir)
}

// load makes the model on be, with the positions of c. Adapters lie beside the weights.
func (f Folder) load(be kernels.Backend, c model.Config) (*model.Model, error) {
	t, err := f.open()
	if err != nil {
		return nil, err
	}
	m, err := f.from(be, c, t)
	return m, errors.Join(err, t.Close())
}

// from makes the model of weights that stay as they are, and are kept in the type that
// they have where that gives the bits of float32.
func (f Folder) from(be kernels.Backend, c model.Config, t *checkpoint.Tensors) (*model.Model, error) {
	if err := t.Fits(c); err != nil { // before memory is taken for what the configuration only says
		return nil, err
	}
	heads, load := model.Heads{LM: true}, func(*model.Model) error { return nil }
	if f.Adapter != "" {
		a, err := checkpoint.ReadAdapters(f.Adapter, c)
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

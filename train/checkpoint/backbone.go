package checkpoint

import (
	"cmp"

	"exp/kernels"
	"exp/train/model"
)

// Uniform returns the type that all matrices of t have; ok is false if they differ.
// Vectors do not count: norms may be F32 in a BF16 model.
func (t *Tensors) Uniform() (d DType, ok bool) {
	for _, p := range t.where {
		if len(p.Shape) < 2 {
			continue
		}
		if d != "" && d != p.DType {
			return "", false
		}
		d = p.DType
	}
	return d, d != ""
}

// LoadBackbone returns a base with the plain weights of t, which must be there and fit, as
// LoadWeights says. dtype is the type that matrices have in memory: kernels.BF16 needs
// them all to be BF16; other types are converted to float32, F16 exactly.
func LoadBackbone(be kernels.Backend, c model.Config, lm bool, dtype kernels.DType, t *Tensors) (*model.Backbone, error) {
	if err := t.fits(c, lm); err != nil {
		return nil, cmp.Or(t.foreignNames(), err)
	}
	if err := t.tied(c); err != nil {
		return nil, err
	}
	b, err := model.NewBackbone(be, c, lm, dtype)
	if err != nil {
		return nil, err
	}
	matrices, vectors := t.Rows(dtype), t.Rows(kernels.F32)
	defer matrices.Close()
	defer vectors.Close()
	err = b.Load(func(name string, from, n int) (kernels.Buffer, error) {
		if len(t.where[name].Shape) < 2 {
			return vectors.Read(name, from, n)
		}
		return matrices.Read(name, from, n)
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

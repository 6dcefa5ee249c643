package checkpoint

import (
	"cmp"

	"exp/kernels"
	"exp/kernels/heap"
	"exp/train/model"
)

// Uniform returns the type that all matrices of t have; ok is false if they differ. Vectors
// do not count: a BF16 model may have F32 norms.
func (t *Tensors) Uniform() (d DType, ok bool) {
	for _, p := range t.where {
		if len(p.Shape) != 2 {
			continue
		}
		if d != "" && d != p.DType {
			return "", false
		}
		d = p.DType
	}
	return d, d != ""
}

// Frozen returns the memory type of frozen weights: BF16 if all matrices have it, else
// float32.
func (t *Tensors) Frozen() kernels.DType {
	if d, ok := t.Uniform(); ok && d == BF16 {
		return kernels.BF16
	}
	return kernels.F32
}

// LoadBackbone returns a base with the plain weights of t, which must be present and fit,
// as for LoadWeights. dtype is the memory type of matrices: kernels.BF16 requires all of
// them to be BF16; other types are converted to float32, F16 exactly.
func LoadBackbone(be kernels.Backend, c model.Config, lm bool, dtype kernels.DType,
	t *Tensors) (*model.Backbone, error) {
	if err := t.fits(c, lm); err != nil {
		return nil, cmp.Or(t.foreignNames(), err)
	}
	if err := t.consistent(c); err != nil {
		return nil, err
	}
	// What only the start needed makes room for the weights.
	DropProgramPages()
	heap.Release()
	b, err := model.NewBackbone(be, c, lm, dtype)
	if err != nil {
		return nil, err
	}
	if err := t.fillBackbone(b); err != nil {
		b.Close()
		return nil, err
	}
	heap.Release() // the pieces make room for what comes next
	return b, nil
}

// fillBackbone sets the weights of b.
func (t *Tensors) fillBackbone(b *model.Backbone) error {
	pieces := b.Pieces()
	jobs := make([]job, len(pieces))
	for i, p := range pieces {
		jobs[i] = t.rows(p, b.DType)
	}
	r := readAhead(jobs)
	defer r.stop()
	return b.Load(func(model.Piece) (kernels.Buffer, error) { return r.take() })
}

// rows returns the job of a piece: vectors are F32, matrices have type as.
func (t *Tensors) rows(p model.Piece, as kernels.DType) job {
	width := t.where[p.Name].Len()
	if shape := t.where[p.Name].Shape; len(shape) == 2 {
		width /= max(shape[0], 1)
	} else {
		as = kernels.F32
	}
	return job{place: t.mustFit(p.Name, as), as: as, from: p.From * width, n: p.N * width}
}

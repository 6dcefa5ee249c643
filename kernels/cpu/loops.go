package cpu

import (
	"exp/kernels"
	"exp/kernels/ref"
)

// loops returns the plain loops of this backend's class, for operations without a C
// kernel. It runs the queue first, because the loops read memory at once.
func (b *Backend) loops() kernels.Backend {
	b.flush()
	switch {
	case b.matrix:
		return ref.NewMatrix()
	case b.tiles != nil:
		return ref.NewMixed()
	}
	return ref.New[float32]()
}

package cpu

import (
	"exp/kernels"
	"exp/kernels/ref"
)

// loops returns the plain loops of this backend's class, for operations that have no
// kernel of their own, and runs the queue first: they look at memory at once.
func (b *Backend) loops() kernels.Backend {
	b.flush()
	if b.tiles != nil {
		return ref.NewMixed()
	}
	return ref.New[float32]()
}

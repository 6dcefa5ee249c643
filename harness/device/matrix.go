package device

import (
	"exp/kernels"
	"exp/kernels/ref"
)

// emulated computes class "matrix/16x25" in plain loops on one thread, so that a machine without
// tensor cores can repeat a part of their run.
type emulated struct {
	ref.Mixed
	allocated, peak int64
}

func newEmulated() *emulated { return &emulated{Mixed: ref.NewMatrix()} }

// Alloc implements kernels.Memory.
func (e *emulated) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	x, err := e.Mixed.Alloc(t, n)
	e.allocated += int64(x.Len() * x.DType().Size())
	e.peak = max(e.peak, e.allocated)
	return x, err
}

// Free implements kernels.Memory.
func (e *emulated) Free(x kernels.Buffer) {
	e.allocated -= int64(x.Len() * x.DType().Size())
	e.Mixed.Free(x)
}

// Where implements Device.
func (*emulated) Where() string { return "emulated on 1 thread" }

// Allocated implements Device.
func (e *emulated) Allocated() int64 { return e.allocated }

// TakePeak implements Device.
func (e *emulated) TakePeak() int64 {
	p := e.peak
	e.peak = e.allocated
	return p
}

// Close implements Device.
func (*emulated) Close() {}

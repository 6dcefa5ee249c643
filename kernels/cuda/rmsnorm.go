//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// normShape returns the shape for M rows of x. It panics if the shape does not fit into a row.
func normShape(x kernels.Buffer, s kernels.NormShape) (shape C.struct_norm_shape, vectors int) {
	if s.Heads < 1 || s.Dim < 1 || s.Offset < 0 || s.Offset+s.Heads*s.Dim > s.Stride {
		panic("cuda: the norm's vectors do not fit into a row")
	}
	M := rowsOf(x, s.Stride)
	return C.struct_norm_shape{M: C.long(M), heads: C.long(s.Heads), dim: C.long(s.Dim), stride: C.long(s.Stride),
		offset: C.long(s.Offset), unit_offset: flag(s.UnitOffset)}, M * s.Heads
}

// RMSNorm implements kernels.Norm.
func (b *Backend) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	b.rmsNorm(out, rstd, kernels.Buffer{}, x, kernels.Buffer{}, weight, s, eps)
}

// AddRMSNorm implements kernels.Norm.
func (b *Backend) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	if s.Heads != 1 || s.Offset != 0 || s.Stride != s.Dim {
		panic("cuda: AddRMSNorm: the shape is not a plain one")
	}
	check(sum, out.Len())
	check(delta, out.Len())
	b.rmsNorm(out, rstd, sum, x, delta, weight, s, eps)
}

func (b *Backend) rmsNorm(out, rstd, sum, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	shape, vectors := normShape(out, s)
	check(x, out.Len())
	check(rstd, vectors)
	check(weight, s.Dim)
	b.launchNorm("rmsnorm", vectors, s.Dim, 1, unsafe.Pointer(&C.struct_rmsnorm_args{out: b.either(out),
		x: b.either(x), rstd: floats(rstd), sum: floats(sum), delta: floats(delta), weight: floats(weight), s: shape,
		eps: C.float(eps)}))
}

// RMSNormBackward implements kernels.Norm. The weight's gradient comes first: dx may be dout.
func (b *Backend) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape,
	set bool) {
	shape, vectors := normShape(dx, s)
	check(dout, dx.Len())
	check(x, dx.Len())
	check(rstd, vectors)
	check(weight, s.Dim)
	check(dweight, s.Dim)
	if vectors == 0 {
		return
	}
	b.launchColumns("rmsnorm_dw", s.Dim, unsafe.Pointer(&C.struct_rmsnorm_dw_args{dweight: floats(dweight),
		dout: b.either(dout), x: b.either(x), rstd: floats(rstd), blocks: ints(blocks), B: C.long(blocks.Len() - 1),
		s: shape}))
	b.launchNorm("rmsnorm_backward", vectors, s.Dim, 2, unsafe.Pointer(&C.struct_rmsnorm_backward_args{
		dx: b.either(dx), dout: b.either(dout), x: b.either(x), weight: floats(weight), rstd: floats(rstd), s: shape,
		set: flag(set)}))
}

// A block of a norm has as many vectors as normRoom elements are, up to one for 16 threads. One of wideNorm elements
// or more has a block of its own, if it fits behind normHead elements.
const (
	normThreads = 256
	normRoom    = 12288 - normThreads/kernels.Lanes
	normHead    = 4
	wideNorm    = 512
)

// launchNorm queues a kernel on vectors, of which a block keeps `arrays` in shared memory.
func (b *Backend) launchNorm(name string, vectors, dim, arrays int, args unsafe.Pointer) {
	if elements := arrays * pitch(dim); dim >= wideNorm && elements <= normRoom {
		b.launchShared(name+"_wide", vectors, normThreads, 4*(normHead+elements), args)
		return
	}
	few := min(max(normRoom/arrays/dim, 1), normThreads/kernels.Lanes)
	b.launchBlocks(name, (vectors+few-1)/few, normThreads, args)
}

// launchColumns queues a kernel of sums.h on n columns.
func (b *Backend) launchColumns(name string, n int, args unsafe.Pointer) {
	b.launchBlocks(name, (n+warpThreads-1)/warpThreads, sumThreads, args)
}

const sumThreads = 512

package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// RMSNorm normalises the vectors of the shape.
func (b *Backend) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	m := x.Len() / s.Stride
	check(out, m*s.Stride)
	check(x, m*s.Stride)
	check(rstd, m*s.Heads)
	check(weight, s.Dim)
	g := b.norm(out, rstd, weight, s, eps)
	g.x, g.x_bf16 = x.Addr(), isBF16(x)
	if g.x_bf16 > g.out_bf16 && m > 0 {
		panic("cpu: RMSNorm: x is BF16, but out is float32")
	}
	b.queued(rowCall{kernel: b.k.rmsnorm, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: 1,
		grain: rowGrain(4 * s.Heads * s.Dim), joins: true},
		use{out, byRow | writes}, use{rstd, byRow | writes}, use{x, byRow}, use{weight, reads})
}

// AddRMSNorm sets sum = x + delta and normalises it.
func (b *Backend) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	C_ := s.Dim
	if s.Heads != 1 || s.Offset != 0 || s.Stride != C_ {
		panic("cpu: AddRMSNorm: the shape is not a plain one")
	}
	m := x.Len() / C_
	check(x, m*C_)
	check(sum, m*C_)
	check(out, m*C_)
	check(delta, m*C_)
	check(rstd, m)
	check(weight, C_)
	g := b.norm(out, rstd, weight, s, eps)
	g.sum, g.x, g.delta = floats(sum), unsafe.Pointer(floats(x)), floats(delta)
	b.queued(rowCall{kernel: b.k.add_rmsnorm, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: 1,
		grain: rowGrain(4 * C_), joins: true},
		use{sum, byRow | writes}, use{out, byRow | writes}, use{rstd, byRow | writes}, use{x, byRow},
		use{delta, byRow}, use{weight, reads})
}

func (b *Backend) norm(out, rstd, weight kernels.Buffer, s kernels.NormShape, eps float64) *C.struct_norm_args {
	g := &b.a.norm
	g.out, g.out_bf16, g.rstd, g.weight = out.Addr(), isBF16(out), floats(rstd), floats(weight)
	g.heads, g.dim, g.stride, g.offset = C.long(s.Heads), C.long(s.Dim), C.long(s.Stride), C.long(s.Offset)
	g.eps, g.unit = C.float(eps), flag(s.UnitOffset)
	return g
}

// RMSNormBackward computes the gradients of RMSNorm.
func (b *Backend) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape,
	set bool) {
	m := x.Len() / s.Stride
	check(dx, m*s.Stride)
	check(x, m*s.Stride)
	check(dout, m*s.Stride)
	check(rstd, m*s.Heads)
	check(weight, s.Dim)
	check(dweight, s.Dim)
	g := &b.a.norm_back
	g.dx, g.dweight, g.dout, g.x, g.bf16 = dx.Addr(), floats(dweight), dout.Addr(), x.Addr(), isBF16(dx, dout, x)
	g.weight, g.rstd, g.block = floats(weight), floats(rstd), ints(blocks)
	g.blocks = C.long(blocks.Len() - 1)
	g.heads, g.dim, g.stride, g.offset = C.long(s.Heads), C.long(s.Dim), C.long(s.Stride), C.long(s.Offset)
	g.set, g.unit = flag(set), flag(s.UnitOffset)
	n := blocks.Len() - 1
	parts, _ := b.roomFor(ceilDiv(n*s.Dim, b.pool.n)) // the room of all threads together
	g.parts = parts
	b.run(b.k.rmsnorm_backward, unsafe.Pointer(g), n, max(1, rowGrain(s.Heads*s.Dim)*n/max(1, m)))
	b.run(b.k.rmsnorm_dweight, unsafe.Pointer(g), ceilDiv(s.Dim, kernels.Lanes), max(1, 16384/max(1, n)/kernels.Lanes))
}

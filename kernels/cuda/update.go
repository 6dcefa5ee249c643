//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"unsafe"

	"exp/kernels"
	"exp/kernels/ref"
)

// AdamW implements kernels.Update.
func (b *Backend) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	check(m, p.Len())
	check(v, p.Len())
	check(g, p.Len())
	c := ref.NewAdamWCoefficients[float32](a)
	b.launchWide("adamw", 1, p.Len(), unsafe.Pointer(&C.struct_adamw_args{p: floats(p), m: floats(m), v: floats(v),
		g: floats(g), n: C.long(p.Len()), grad_scale: C.float(c.GradScale), beta1: C.float(c.Beta1),
		one_minus1: C.float(c.OneMinus1), beta2: C.float(c.Beta2), one_minus2: C.float(c.OneMinus2),
		c2: C.float(c.C2), eps: C.float(c.Eps), step_size: C.float(c.StepSize), keep_weight: C.float(c.KeepWeight)}))
}

// SumSquares implements kernels.Update.
func (b *Backend) SumSquares(out, x kernels.Buffer) {
	check(out, 1)
	if out.DType() != kernels.F64 || out.IsHost() {
		panic("cuda: want a float64 buffer on the device")
	}
	blocks := (x.Len() + kernels.SumBlock - 1) / kernels.SumBlock
	room := b.scratch(2 * blocks)
	if b.err != nil {
		return
	}
	sums := (*C.double)(room.Addr())
	const threads = 256
	b.launchBlocks("sum_squares", (blocks*kernels.Lanes+threads-1)/threads, threads,
		unsafe.Pointer(&C.struct_sum_squares_args{sums: sums, x: floats(x), n: C.long(x.Len())}))
	b.launchBlocks("sum_blocks", 1, threads, unsafe.Pointer(&C.struct_sum_blocks_args{out: (*C.double)(out.Addr()),
		sums: sums, blocks: C.long(blocks)}))
}

package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// LayerNorm normalises rows.
func (b *Backend) LayerNorm(out, stats, x, weight, bias kernels.Buffer, C_ int, eps float64) {
	m := out.Len() / C_
	check(out, m*C_)
	check(x, m*C_)
	check(stats, 2*m)
	check(weight, C_)
	check(bias, C_)
	g := &b.a.layernorm
	g.out, g.stats, g.x, g.weight, g.bias = floats(out), floats(stats), floats(x), floats(weight), floats(bias)
	g.c, g.eps = C.long(C_), C.float(eps)
	b.run(b.k.layernorm, unsafe.Pointer(g), m, rowGrain(4*C_))
}

// LayerNormBackward computes the gradients of LayerNorm.
func (b *Backend) LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks kernels.Buffer, C_ int) {
	m := dx.Len() / C_
	check(dx, m*C_)
	check(dout, m*C_)
	check(x, m*C_)
	check(stats, 2*m)
	check(weight, C_)
	check(dweight, C_)
	check(dbias, C_)
	g := &b.a.layernorm_back
	g.dx, g.dweight, g.dbias, g.dout = floats(dx), floats(dweight), floats(dbias), floats(dout)
	g.x, g.weight, g.stats, g.block = floats(x), floats(weight), floats(stats), ints(blocks)
	g.c, g.blocks = C.long(C_), C.long(blocks.Len()-1)
	b.run(b.k.layernorm_dweight, unsafe.Pointer(g), ceilDiv(C_, kernels.Lanes), max(1, 4096/kernels.Lanes/max(1, m)))
	b.run(b.k.layernorm_backward, unsafe.Pointer(g), m, rowGrain(4*C_))
}

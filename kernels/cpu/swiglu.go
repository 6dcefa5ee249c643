package cpu

// #include "args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// SwiGLU sets out = silu(gate)·up.
func (b *Backend) SwiGLU(out, gateUp kernels.Buffer, F int) {
	check(gateUp, 2*out.Len())
	g := &b.a.swiglu
	g.out, g.gate_up, g.f = floats(out), floats(gateUp), C.long(F)
	b.pool.run(b.k.swiglu, unsafe.Pointer(g), out.Len()/F, rowGrain(4*F))
}

// SwiGLUBackward sets the gradients of gate and up.
func (b *Backend) SwiGLUBackward(dgateUp, dout, gateUp kernels.Buffer, F int) {
	check(gateUp, 2*dout.Len())
	check(dgateUp, 2*dout.Len())
	g := &b.a.swiglu
	g.out, g.dout, g.gate_up, g.f = floats(dgateUp), floats(dout), floats(gateUp), C.long(F)
	b.pool.run(b.k.swiglu_backward, unsafe.Pointer(g), dout.Len()/F, rowGrain(4*F))
}

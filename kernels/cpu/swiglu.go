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
	g.out, g.gate_up, g.f, g.bf16 = out.Addr(), gateUp.Addr(), C.long(F), isBF16(out, gateUp)
	b.pool.run(b.k.swiglu, unsafe.Pointer(g), out.Len()/F, rowGrain(4*F))
}

// SwiGLUBackward sets the gradients of gate and up.
func (b *Backend) SwiGLUBackward(dgateUp, dout, gateUp kernels.Buffer, F int) {
	check(gateUp, 2*dout.Len())
	check(dgateUp, 2*dout.Len())
	g := &b.a.swiglu
	g.out, g.dout, g.gate_up = dgateUp.Addr(), dout.Addr(), gateUp.Addr()
	g.f, g.bf16 = C.long(F), isBF16(dgateUp, dout, gateUp)
	b.pool.run(b.k.swiglu_backward, unsafe.Pointer(g), dout.Len()/F, rowGrain(4*F))
}

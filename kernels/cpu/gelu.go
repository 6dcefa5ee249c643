package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// geluGrain is the number of elements in a chunk: some microseconds.
const geluGrain = 512

// GELU sets out = gelu(x).
func (b *Backend) GELU(out, x kernels.Buffer) {
	check(x, out.Len())
	g := &b.a.gelu
	g.out, g.x, g.n = floats(out), floats(x), C.long(out.Len())
	b.run(b.k.gelu, unsafe.Pointer(g), ceilDiv(out.Len(), kernels.Lanes), geluGrain/kernels.Lanes)
}

// GELUBackward sets dx = dout·gelu'(x).
func (b *Backend) GELUBackward(dx, dout, x kernels.Buffer) {
	check(dout, dx.Len())
	check(x, dx.Len())
	g := &b.a.gelu
	g.out, g.dout, g.x, g.n = floats(dx), floats(dout), floats(x), C.long(dx.Len())
	b.run(b.k.gelu_backward, unsafe.Pointer(g), ceilDiv(dx.Len(), kernels.Lanes), geluGrain/kernels.Lanes)
}

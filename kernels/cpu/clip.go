package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Clip cuts values at a limit.
func (b *Backend) Clip(out, x kernels.Buffer, limit float64) {
	check(x, out.Len())
	g := &b.a.clip
	*g = C.struct_clip_args{n: C.long(out.Len()), limit: C.float(limit), bf16: isBF16(out, x)}
	g.out, g.x = out.Addr(), x.Addr()
	b.run(b.k.clip, unsafe.Pointer(g), ceilDiv(out.Len(), C.CLIP_UNIT), rowGrain(C.CLIP_UNIT))
}

// ClipBackward computes its gradient.
func (b *Backend) ClipBackward(dx, dout, x kernels.Buffer, limit float64) {
	check(x, dx.Len())
	check(dout, dx.Len())
	g := &b.a.clip
	*g = C.struct_clip_args{n: C.long(dx.Len()), limit: C.float(limit), bf16: isBF16(dx, dout, x)}
	g.out, g.x, g.dout = dx.Addr(), x.Addr(), dout.Addr()
	b.run(b.k.clip_backward, unsafe.Pointer(g), ceilDiv(dx.Len(), C.CLIP_UNIT), rowGrain(C.CLIP_UNIT))
}

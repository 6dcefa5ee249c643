package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Rope rotates queries and keys by their positions.
func (b *Backend) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	check(qkv, pos.Len()*s.Stride())
	if s.Rotated()%2 != 0 || s.Rotated() > s.D {
		panic("cpu: the rotated channels are odd or more than the head has")
	}
	g := &b.a.rope
	g.qkv, g.bf16, g.cos, g.sin, g.pos = qkv.Addr(), isBF16(qkv), floats(cos), floats(sin), ints(pos)
	g.heads, g.d, g.half, g.stride = C.long(s.H+s.K), C.long(s.D), C.long(s.Rotated()/2), C.long(s.Stride())
	g.inverse, g.interleaved = flag(inverse), flag(s.Interleaved)
	b.queued(rowCall{kernel: b.k.rope, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: pos.Len(), perRow: 1,
		grain: rowGrain(s.Stride()), joins: true},
		use{qkv, byRow | writes}, use{pos, byRow}, use{cos, reads}, use{sin, reads})
}

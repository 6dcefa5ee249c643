package cpu

// #include "args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Rope rotates queries and keys by their positions.
func (b *Backend) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	check(qkv, pos.Len()*s.Stride())
	g := &b.a.rope
	g.qkv, g.bf16, g.cos, g.sin, g.pos = qkv.Addr(), isBF16(qkv), floats(cos), floats(sin), ints(pos)
	g.heads, g.d, g.stride = C.long(s.H+s.K), C.long(s.D), C.long(s.Stride())
	g.inverse = 0
	if inverse {
		g.inverse = 1
	}
	b.pool.run(b.k.rope, unsafe.Pointer(g), pos.Len(), rowGrain(s.Stride()))
}

// AppendKV stores keys and values in their slots.
func (b *Backend) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	check(qkv, slots.Len()*s.Stride())
	isBF16(qkv, p.Keys, p.Values)
	g := &b.a.append
	g.qkv, g.keys, g.values, g.slots = qkv.Addr(), p.Keys.Addr(), p.Values.Addr(), ints(slots)
	g.h, g.kv, g.d, g.stride = C.long(s.H), C.long(s.K), C.long(s.D), C.long(s.Stride())
	g.page, g.size = C.long(p.Size), C.long(qkv.DType().Size())
	b.pool.run(b.k.append_kv, unsafe.Pointer(g), slots.Len(), rowGrain(4*s.K*s.D))
}

// CopyPages copies whole pages.
func (b *Backend) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	n := s.K * s.D * p.Size * p.Keys.DType().Size()
	idx := kernels.Elems[int32](pairs)
	for _, buf := range []kernels.Buffer{p.Keys, p.Values} {
		x := bytesOf(buf)
		for i := 0; i+1 < len(idx); i += 2 {
			copy(x[int(idx[i+1])*n:][:n], x[int(idx[i])*n:][:n])
		}
	}
}

package cpu

// #include "args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// Embed copies the weight's rows of the ids.
func (b *Backend) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	check(out, ids.Len()*w.In)
	if scale != 1 || w.W.DType() != kernels.F32 {
		b.loops().Embed(out, w, ids, scale)
		return
	}
	b.gather(out, w.W, ids, w.In)
}

// GatherRows copies the given rows of x.
func (b *Backend) GatherRows(out, x, rows kernels.Buffer, C_ int) {
	check(out, rows.Len()*C_)
	b.gather(out, x, rows, C_)
}

func (b *Backend) gather(out, from, rows kernels.Buffer, c int) {
	g := &b.a.embed
	g.out, g.weight, g.ids = out.Addr(), from.Addr(), ints(rows)
	isBF16(out, from)
	g.m, g.c, g.size = C.long(rows.Len()), C.long(c), C.long(out.DType().Size())
	b.queued(rowCall{kernel: b.k.embed, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: rows.Len(), perRow: 1, grain: rowGrain(c), joins: true},
		use{out, byRow | writes}, use{from, reads}, use{rows, byRow})
}

// EmbedBackward adds the rows of dout to their tokens' rows of dweight.
func (b *Backend) EmbedBackward(dweight, dout, ids kernels.Buffer, C_ int, scale float64) {
	check(dout, ids.Len()*C_)
	if scale != 1 {
		b.loops().EmbedBackward(dweight, dout, ids, C_, scale)
		return
	}
	g := &b.a.embed
	g.out, g.weight, g.ids = unsafe.Pointer(floats(dout)), unsafe.Pointer(floats(dweight)), ints(ids)
	g.m, g.c = C.long(ids.Len()), C.long(C_)
	units := ceilDiv(C_, kernels.Lanes)
	b.run(b.k.embed_backward, unsafe.Pointer(g), units, ceilDiv(units, b.pool.n))
}

// ScatterRows zeroes dx and adds the rows of dout at their places.
func (b *Backend) ScatterRows(dx, dout, rows kernels.Buffer, C_ int) {
	b.Zero(dx)
	b.EmbedBackward(dx, dout, rows, C_, 1)
}

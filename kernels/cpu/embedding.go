package cpu

// #include "level/args.h"
import "C"

import (
	"runtime"
	"unsafe"

	"exp/kernels"
)

// Embed copies the weight rows of the ids, scaled.
func (b *Backend) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	check(out, ids.Len()*w.In)
	if w.W.Empty() || w.W.DType() == kernels.BF16 {
		b.embedFrozen(out, w, ids, scale)
		return
	}
	if w.W.DType() != kernels.F32 {
		b.loops().Embed(out, w, ids, scale)
		return
	}
	if b.matrix { // which rounds the weights
		if w.Packed.Empty() {
			b.loops().Embed(out, w, ids, scale)
			return
		}
		b.embedFrozen(out, kernels.Matrix{Packed: w.Packed, Out: w.Out, In: w.In}, ids, scale)
		return
	}
	if scale != 1 {
		floats(out)
		b.a.embed.scale = C.float(scale)
		b.gather(b.k.embed_scaled, out, w.W, ids, w.In)
		return
	}
	b.gather(b.k.embed, out, w.W, ids, w.In)
}

// embedFrozen is Embed of a matrix whose weights are BF16 or only packed.
func (b *Backend) embedFrozen(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	g := &b.a.embed_frozen
	kernel, from := b.k.embed_frozen, w.W
	g.packed = 0
	if from.Empty() {
		packed, _ := b.PackedLen(w.Out, w.In)
		check(w.Packed, packed)
		from, g.packed = w.Packed, 1
		if b.tiles != nil {
			kernel = b.tiles.embed_packed
		}
	} else {
		check(from, w.Out*w.In)
	}
	b.flush() // queued calls may write the ids
	for _, id := range kernels.Elems[int32](ids) {
		if id < 0 || int(id) >= w.Out {
			panic("cpu: Embed: no such token")
		}
	}
	g.out, g.weight, g.ids = floats(out), address(from), ints(ids)
	g.c, g.bf16, g.scale = C.long(w.In), isBF16(from), C.float(scale)
	b.run(kernel, unsafe.Pointer(g), ids.Len(), max(1, rowGrain(w.In)/8))
	runtime.KeepAlive(from)
}

// GatherRows copies the given rows of x.
func (b *Backend) GatherRows(out, x, rows kernels.Buffer, C_ int) {
	check(out, rows.Len()*C_)
	b.gather(b.k.embed, out, x, rows, C_)
}

func (b *Backend) gather(kernel C.kernel, out, from, rows kernels.Buffer, c int) {
	g := &b.a.embed
	g.out, g.weight, g.ids = out.Addr(), from.Addr(), ints(rows)
	isBF16(out, from)
	g.m, g.c, g.size = C.long(rows.Len()), C.long(c), C.long(out.DType().Size())
	b.queued(rowCall{kernel: kernel, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: rows.Len(), perRow: 1,
		grain: rowGrain(c), joins: true},
		use{out, byRow | writes}, use{from, reads}, use{rows, byRow})
}

// EmbedBackward adds the rows of dout to their tokens' rows of dweight.
func (b *Backend) EmbedBackward(dweight, dout, ids kernels.Buffer, C_ int, scale float64) {
	check(dout, ids.Len()*C_)
	g, kernel := &b.a.embed, b.k.embed_backward
	if scale != 1 {
		kernel = b.k.embed_scaled_backward
	}
	g.scale = C.float(scale)
	g.out, g.weight, g.ids = unsafe.Pointer(floats(dout)), unsafe.Pointer(floats(dweight)), ints(ids)
	g.m, g.c = C.long(ids.Len()), C.long(C_)
	units := ceilDiv(C_, kernels.Lanes)
	b.run(kernel, unsafe.Pointer(g), units, ceilDiv(units, b.pool.n))
}

// ScatterRows zeroes dx and adds the rows of dout to their rows.
func (b *Backend) ScatterRows(dx, dout, rows kernels.Buffer, C_ int) {
	b.Zero(dx)
	b.EmbedBackward(dx, dout, rows, C_, 1)
}

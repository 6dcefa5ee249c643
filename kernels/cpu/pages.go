package cpu

// #include "level/args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// AppendKV stores keys and values in their slots.
func (b *Backend) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	check(qkv, slots.Len()*s.Stride())
	isBF16(qkv, p.Keys, p.Values)
	g := &b.a.append
	g.qkv, g.keys, g.values, g.slots = qkv.Addr(), p.Keys.Addr(), p.Values.Addr(), ints(slots)
	g.h, g.kv, g.d, g.stride = C.long(s.H), C.long(s.K), C.long(s.D), C.long(s.Stride())
	g.page, g.size = C.long(p.Size), C.long(qkv.DType().Size())
	b.queued(rowCall{kernel: b.k.append_kv, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: slots.Len(),
		perRow: 1, grain: rowGrain(4 * s.K * s.D), joins: true},
		use{p.Keys, paged | writes}, use{p.Values, paged | writes}, use{qkv, byRow}, use{slots, byRow})
	b.queue.keeps(p, slots)
}

// CopyPages copies whole pages, pair by pair; the threads divide each page.
func (b *Backend) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	isBF16(p.Keys, p.Values)
	check(p.Values, p.Keys.Len())
	elems := s.K * s.D * p.Size
	for _, i := range kernels.Elems[int32](pairs) {
		if int(i) >= p.Keys.Len()/elems || i < 0 {
			panic("cpu: no such page")
		}
	}
	page := elems * p.Keys.DType().Size()
	g := &b.a.copy
	g.keys, g.values, g.pairs = (*C.char)(p.Keys.Addr()), (*C.char)(p.Values.Addr()), ints(pairs)
	g.count, g.page = C.long(pairs.Len()/2), C.long(page)
	parts := ceilDiv(b.pool.n, 2)
	part := ceilDiv(ceilDiv(page, parts), 64) * 64
	g.part, g.parts = C.long(part), C.long(ceilDiv(page, part))
	b.run(b.k.copy_pages, unsafe.Pointer(g), 2*int(g.parts), 1)
}

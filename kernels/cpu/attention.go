package cpu

// #include "args.h"
import "C"

import (
	"slices"
	"unsafe"

	"exp/kernels"
)

// queryBlock is attention.h's QUERY_BLOCK.
const queryBlock = 96

func (b *Backend) attention(qkv kernels.Buffer, s kernels.AttentionShape) *C.struct_attention_args {
	g := &b.a.attention
	g.qkv = floats(qkv)
	g.h, g.kv, g.d, g.stride = C.long(s.H), C.long(s.K), C.long(s.D), C.long(s.Stride())
	g.scale = C.float(s.Scale)
	return g
}

// longest returns the number of rows of the longest sequence.
func longest(offsets kernels.Buffer) int {
	o := kernels.Elems[int32](offsets)
	n := 0
	for i := 1; i < len(o); i++ {
		n = max(n, int(o[i]-o[i-1]))
	}
	return n
}

// longestFirst returns the numbers of the sequences by descending length, so that no
// thread begins the longest one when the others are done. Its buffer lives until
// the next call.
func (b *Backend) longestFirst(offsets kernels.Buffer) *C.int32_t {
	o := kernels.Elems[int32](offsets)
	buf := b.indices(len(o) - 1)
	order := kernels.Elems[int32](buf)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(i, j int32) int {
		return int(o[j+1]-o[j]) - int(o[i+1]-o[i])
	})
	return ints(buf)
}

// panels returns n in whole panels.
func (b *Backend) panels(n int) int { return ceilDiv(n, int(b.k.nr)) * int(b.k.nr) }

// Attention computes causal attention within each packed sequence.
func (b *Backend) Attention(out, stats, qkv, offsets kernels.Buffer, s kernels.AttentionShape) {
	m := qkv.Len() / s.Stride()
	check(out, m*s.H*s.D)
	check(stats, m*s.H*2)
	if b.tiles != nil {
		b.tileAttention(out, stats, qkv, offsets, s)
		return
	}
	g := b.attention(qkv, s)
	g.out, g.stats, g.offsets = floats(out), floats(stats), ints(offsets)
	T, mr, dp := b.panels(longest(offsets)), int(b.k.mr), b.panels(s.D)
	g.scratch, g.scratch_len = b.roomFor(T*(s.D+dp) + mr*(dp+T))
	g.order = b.longestFirst(offsets)
	b.pool.run(b.k.attention, unsafe.Pointer(g), (offsets.Len()-1)*s.K, 1)
}

// AttentionBackward computes the gradients of queries, keys and values.
func (b *Backend) AttentionBackward(dqkv, dout, out, stats, qkv, offsets kernels.Buffer, s kernels.AttentionShape) {
	m := qkv.Len() / s.Stride()
	check(dqkv, m*s.Stride())
	check(dout, m*s.H*s.D)
	check(out, m*s.H*s.D)
	check(stats, m*s.H*2)
	if b.tiles != nil {
		b.tileAttentionBackward(dqkv, dout, out, stats, qkv, offsets, s)
		return
	}
	g := b.attention(qkv, s)
	g.dqkv, g.dout, g.aout, g.stats, g.offsets = floats(dqkv), floats(dout), floats(out), floats(stats), ints(offsets)
	T, dp := b.panels(longest(offsets)), b.panels(s.D)
	g.scratch, g.scratch_len = b.roomFor(T*(2*s.D+dp) + 2*queryBlock*(dp+T))
	g.order = b.longestFirst(offsets)
	b.pool.run(b.k.attention_backward, unsafe.Pointer(g), (offsets.Len()-1)*s.K, 1)
}

// PagedAttention computes attention of single rows against the cache.
func (b *Backend) PagedAttention(out, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, tableWidth int, s kernels.AttentionShape) {
	m := pos.Len()
	check(qkv, m*s.Stride())
	check(out, m*s.H*s.D)
	check(seq, m)
	if p.Size%kernels.Lanes != 0 {
		panic("cpu: page size must be a multiple of 16")
	}
	if b.tiles != nil {
		b.tilePagedAttention(out, qkv, p, table, seq, pos, tableWidth, s)
		return
	}
	g := b.attention(qkv, s)
	g.out, g.keys, g.values, g.page = floats(out), floats(p.Keys), floats(p.Values), C.long(p.Size)
	g.table, g.seq, g.pos, g.width = ints(table), ints(seq), ints(pos), C.long(tableWidth)
	g.scratch, g.scratch_len = b.roomFor(2 * b.panels(tableWidth*p.Size))
	b.pool.run(b.k.paged_attention, unsafe.Pointer(g), m*s.K, max(1, 8192/(s.D*p.Size)))
}

package cpu

// #include "args.h"
import "C"

import (
	"unsafe"

	"exp/kernels"
)

// queryBlock is attention.h's QUERY_BLOCK.
const queryBlock = 32

func (b *Backend) attention(qkv kernels.Buffer, s kernels.AttentionShape) *C.struct_attention_args {
	g := &b.a.attention
	g.qkv = floats(qkv)
	g.h, g.kv, g.d, g.stride = C.long(s.H), C.long(s.K), C.long(s.D), C.long(s.Stride())
	g.scale = C.float(s.Scale)
	return g
}

func (b *Backend) useScratch(g *C.struct_attention_args, perThread int) {
	b.grow(perThread)
	g.scratch, g.scratch_len = floats(b.scratch), C.long(b.scratchLen)
}

// longest returns the number of rows of the longest sequence, in whole lanes.
func longest(offsets kernels.Buffer) int {
	o := kernels.Elems[int32](offsets)
	n := 0
	for i := 1; i < len(o); i++ {
		n = max(n, int(o[i]-o[i-1]))
	}
	return ceilDiv(n, kernels.Lanes) * kernels.Lanes
}

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
	b.useScratch(g, longest(offsets)*(s.D+int(b.k.mr)))
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
	b.useScratch(g, longest(offsets)*2*(s.D+queryBlock))
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
	b.useScratch(g, (s.H/s.K)*tableWidth*p.Size)
	b.pool.run(b.k.paged_attention, unsafe.Pointer(g), m*s.K, max(1, 8192/(s.D*p.Size)))
}

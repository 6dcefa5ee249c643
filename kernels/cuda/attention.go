//go:build cuda

package cuda

/*
#include "args.h"
*/
import "C"

import (
	"strings"
	"unsafe"

	"exp/kernels"
)

// attentionShape returns the shape for kernels.
func attentionShape(s kernels.AttentionShape) C.struct_attention_shape {
	if s.H < 1 || s.K < 1 || s.D < 1 || s.H%s.K != 0 {
		panic("cuda: query heads are not a multiple of key/value heads")
	}
	return rowShape(s)
}

// rowShape is attentionShape for rows that may have no keys and values.
func rowShape(s kernels.AttentionShape) C.struct_attention_shape {
	shape := C.struct_attention_shape{H: C.long(s.H), K: C.long(s.K), D: C.long(s.D), window: C.long(s.Window),
		scale: C.float(s.Scale), ahead: ints(s.Ahead)}
	shape.cap, shape.inverse_cap = capOf(s.Cap)
	return shape
}

// capOf returns a cap and its inverse, each rounded once; 0 without one.
func capOf(limit float64) (value, inverse C.float) {
	if limit > 0 {
		return C.float(limit), C.float(1 / limit)
	}
	return 0, 0
}

// packingOf returns how M rows fall into sequences and groups.
func packingOf(M int, offsets, groups kernels.Buffer) C.struct_packing {
	if offsets.Empty() {
		panic("cuda: sequences do not cover the rows")
	}
	return C.struct_packing{offsets: ints(offsets), groups: ints(groups), M: C.long(M), S: C.long(offsets.Len() - 1),
		G: C.long(max(groups.Len()-1, 0))}
}

// Attention on plain cores (attend.h): the rows of a block, its threads, and the rows of a block in pages.
const (
	attendRows    = 32
	attendThreads = 128
	attendHeads   = 8
)

// aheadModule has the kernels for rows that see others behind them, by class: all of their sequence or of a block.
func (c class) aheadModule() string {
	switch {
	case c.matrix:
		return "matrixaheadattention.ptx"
	case c.tile != 0:
		return "tileaheadattention.ptx"
	}
	return "aheadattention.ptx"
}

// attends returns the name of a kernel of attention for rows that see what s says, from its name for those that see
// themselves and the rows before them: [prefix_]attention[_part]. Modules are loaded when a model wants them.
func (b *Backend) attends(name string, s kernels.AttentionShape) string {
	if !s.Full && s.Ahead.Empty() {
		return name
	}
	b.loadOnce([]string{b.class.aheadModule()})
	return strings.Replace(name, "attention", "ahead_attention", 1)
}

// checkSeen panics if M rows in sequences of so many groups' prefixes cannot see what s says. Blocks that are torn, or
// go beyond their sequence, are not noticed: the device has them.
func checkSeen(M, groups int, s kernels.AttentionShape) {
	s.CheckFull(groups)
	if !s.Ahead.Empty() {
		check(s.Ahead, M)
	}
}

// launchAttend queues a kernel on blocks of rows, with the sums of the class.
func (b *Backend) launchAttend(name string, blocks int, args unsafe.Pointer) {
	if b.class.tile != 0 {
		name = "tile_" + name
	}
	b.launchBlocks(name, blocks, attendThreads, args)
}

// attendBlocks is the number of blocks for M rows.
func attendBlocks(M int) int { return (M + attendRows - 1) / attendRows }

// Rope implements kernels.Sequence.
func (b *Backend) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	half := s.Rotated() / 2
	if s.Rotated()%2 != 0 || s.Rotated() > s.D {
		panic("cuda: Rope: the rotated channels are odd or more than the head has")
	}
	shape, M := attentionShape(s), pos.Len()
	check(qkv, M*s.Stride())
	check(sin, cos.Len())
	b.launchWide("rope", M*(s.H+s.K), half, unsafe.Pointer(&C.struct_rope_args{qkv: b.operand(qkv), cos: floats(cos),
		sin: floats(sin), pos: ints(pos), M: C.long(M), half: C.long(half), s: shape, inverse: flag(inverse),
		interleaved: flag(s.Interleaved)}))
}

// Attention implements kernels.Sequence.
func (b *Backend) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	shape, M := attentionShape(s), rowsOf(qkv, s.Stride())
	check(out, M*s.H*s.D)
	check(stats, M*s.H*2)
	checkSeen(M, groups.Len(), s)
	args := C.struct_attention_args{out: b.operand(out), qkv: b.operand(qkv), stats: floats(stats),
		p: packingOf(M, offsets, groups), s: shape}
	switch {
	case b.class.matrix && inPanels(s):
		args.qkv = b.headFactor(&b.left, qkv, M, s.Stride())
		b.launchPanels(b.pickAttention(M, offsets.Len()-1, s).forward, M, s.H, unsafe.Pointer(&args))
		return
	case b.class.matrix:
		b.launchWarps(b.attends("matrix_attention", s), spans(M)*s.H, unsafe.Pointer(&args))
		return
	}
	b.launchAttend(b.attends("attention", s), attendBlocks(M)*s.H, unsafe.Pointer(&args))
}

// AttentionBackward implements kernels.Sequence.
func (b *Backend) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer,
	s kernels.AttentionShape) {
	shape, M := attentionShape(s), rowsOf(qkv, s.Stride())
	check(dqkv, qkv.Len())
	check(dout, M*s.H*s.D)
	check(out, M*s.H*s.D)
	check(stats, M*s.H*2)
	checkSeen(M, groups.Len(), s)
	delta := b.scratch(M * s.H)
	if b.err != nil {
		return
	}
	if b.class.matrix {
		b.attentionBackwardOnWarps(dqkv, dout, out, stats, delta, qkv, packingOf(M, offsets, groups), shape, M, s)
		return
	}
	args := C.struct_attention_backward_args{dqkv: b.operand(dqkv), dout: b.operand(dout), out: b.operand(out),
		qkv: b.operand(qkv), stats: floats(stats), delta: floats(delta), p: packingOf(M, offsets, groups), s: shape}
	b.launchAttend(b.attends("attention_dq", s), attendBlocks(M)*s.H, unsafe.Pointer(&args))
	b.launchAttend(b.attends("attention_dkv", s), attendBlocks(M)*s.K, unsafe.Pointer(&args))
}

// pagesOf returns a layer's pages, and the number of elements in the keys of one.
func (b *Backend) pagesOf(p kernels.Pages, s kernels.AttentionShape) (pages C.struct_pages, elements int) {
	if p.Size < 1 || p.Size%kernels.Lanes != 0 {
		panic("cuda: page size is not a multiple of the lanes")
	}
	elements = s.K * s.D * p.Size
	rowsOf(p.Keys, elements)
	check(p.Values, p.Keys.Len())
	return C.struct_pages{keys: b.operand(p.Keys), values: b.operand(p.Values), size: C.long(p.Size)}, elements
}

// AppendKV implements kernels.Sequence.
func (b *Backend) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	shape, M := attentionShape(s), slots.Len()
	pages, _ := b.pagesOf(p, s)
	check(qkv, M*s.Stride())
	b.launchWide("append_kv", M*s.K, s.D, unsafe.Pointer(&C.struct_append_kv_args{pages: pages, qkv: b.operand(qkv),
		slots: ints(slots), M: C.long(M), s: shape}))
}

// PagedAttention implements kernels.Sequence.
func (b *Backend) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	shape, M := attentionShape(s), seq.Len()
	pages, _ := b.pagesOf(p, s)
	check(pos, M)
	check(qkv, M*s.Stride())
	check(out, M*s.H*s.D)
	rowsOf(table, tableWidth)
	if !s.Ahead.Empty() {
		check(s.Ahead, M)
	}
	if !stats.Empty() {
		check(stats, M*s.H*2)
	}
	args := C.struct_paged_attention_args{out: b.operand(out), qkv: b.operand(qkv), stats: floats(stats), pages: pages,
		table: ints(table), seq: ints(seq), pos: ints(pos), M: C.long(M), table_width: C.long(tableWidth), s: shape}
	warps := M * s.K * ((s.H/s.K + spanRows - 1) / spanRows)
	switch {
	case b.class.matrix && fitsPanels(s) && isFactor(p.Keys, chunk) && isFactor(p.Values, chunk):
		b.launchPanels(panelPagedAttention, warps, 1, unsafe.Pointer(&args))
		return
	case b.class.matrix:
		b.launchWarps("matrix_paged_attention", warps, unsafe.Pointer(&args))
		return
	}
	b.launchAttend("paged_attention", M*s.K*((s.H/s.K+attendHeads-1)/attendHeads), unsafe.Pointer(&args))
}

// CopyPages implements kernels.Sequence.
func (b *Backend) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	attentionShape(s)
	pages, elements := b.pagesOf(p, s)
	n := rowsOf(pairs, 2)
	if n == 0 {
		return
	}
	b.launchWide("copy_pages", 2, elements, unsafe.Pointer(&C.struct_copy_pages_args{pages: pages, pairs: ints(pairs),
		n: C.long(n), elements: C.long(elements)}))
}

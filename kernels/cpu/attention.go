package cpu

// #include "level/args.h"
import "C"

import (
	"math"
	"slices"
	"unsafe"

	"exp/kernels"
)

// queryBlock must equal QUERY_BLOCK in attention.h.
const queryBlock = 96

func (b *Backend) attention(qkv kernels.Buffer, s kernels.AttentionShape) *C.struct_attention_args {
	g := &b.a.attention
	g.qkv = floats(qkv)
	g.h, g.kv, g.d, g.stride = C.long(s.H), C.long(s.K), C.long(s.D), C.long(s.Stride())
	g.window, g.full, g.ahead, g.scale = C.long(window(s)), full(s), ints(s.Ahead), C.float(s.Scale)
	g.cap, g.inv_cap = caps(s)
	return g
}

// window returns the most positions that a query sees.
func window(s kernels.AttentionShape) int {
	if s.Window > 0 {
		return min(s.Window, math.MaxInt32)
	}
	return math.MaxInt32
}

// full is 1 if queries see the rows behind them.
func full(s kernels.AttentionShape) C.int {
	if s.Full {
		return 1
	}
	return 0
}

// checkSeen panics if rows of packed sequences cannot see what s says.
func checkSeen(offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	s.CheckFull(groups.Len())
	kernels.CheckAhead(aheadOf(s), kernels.Elems[int32](offsets))
}

// caps returns the cap and its reciprocal, zeros without one.
func caps(s kernels.AttentionShape) (cap, inverse C.float) {
	if s.Cap > 0 {
		return C.float(s.Cap), C.float(1 / s.Cap)
	}
	return 0, 0
}

// grouping lists the groups of sequences that share a prefix, the most work first, so
// that no thread starts a long one when the others are done.
type grouping struct {
	offsets, groups, order *C.int32_t
	count                  int
	longest                int // rows of the longest sequence, prefix included
}

// grouping's buffers live until the next call. groups may be empty. window is the most rows that a
// row sees.
func (b *Backend) grouping(offsets, groups kernels.Buffer, window int) grouping {
	o := kernels.Elems[int32](offsets)
	g := grouping{offsets: ints(offsets), count: len(o) - 1}
	var ends []int32
	if !groups.Empty() {
		ends = kernels.Elems[int32](groups)
		g.groups, g.count = ints(groups), len(ends)-1
		if int(ends[g.count]) != len(o)-1 {
			panic("cpu: groups do not cover the sequences")
		}
	}
	buf := b.indices(2 * g.count)
	list := kernels.Elems[int32](buf)
	order, work := list[:g.count], list[g.count:]
	for i := range order {
		first, end := i, i+1
		if ends != nil {
			first, end = int(ends[i]), int(ends[i+1])
		}
		order[i] = int32(i)
		n, longest := o[end]-o[first], int32(0)
		if end > first {
			prefix := o[first+1] - o[first]
			longest = prefix
			for s := first + 1; s < end; s++ {
				longest = max(longest, prefix+o[s+1]-o[s])
			}
		}
		g.longest = max(g.longest, int(longest))
		// Rows times the keys that each sees.
		work[i] = int32(min(int64(n)*(min(int64(longest), int64(window))+64)>>6, math.MaxInt32))
	}
	slices.SortStableFunc(order, func(i, j int32) int { return int(work[j]) - int(work[i]) })
	g.order = ints(buf)
	return g
}

// panels rounds n up to whole panels.
func (b *Backend) panels(n int) int { return ceilDiv(n, int(b.k.nr)) * int(b.k.nr) }

// Attention computes attention within each packed sequence.
func (b *Backend) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	m := qkv.Len() / s.Stride()
	check(out, m*s.H*s.D)
	check(stats, m*s.H*2)
	checkSeen(offsets, groups, s)
	if b.tiles != nil {
		b.tileAttention(out, stats, qkv, b.grouping(offsets, groups, window(s)), s)
		return
	}
	g := b.attention(qkv, s)
	by := b.grouping(offsets, groups, window(s))
	g.out, g.stats = floats(out), floats(stats)
	g.offsets, g.groups, g.order = by.offsets, by.groups, by.order
	T, mr, dp := b.panels(by.longest), int(b.k.mr), b.panels(s.D)
	g.scratch, g.scratch_len = b.roomFor(T*(s.D+dp) + mr*(dp+T) + int(b.k.nr)*s.D)
	b.run(b.k.attention, unsafe.Pointer(g), by.count*s.K, 1)
}

// AttentionBackward computes the gradients of queries, keys and values.
func (b *Backend) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer,
	s kernels.AttentionShape) {
	m := qkv.Len() / s.Stride()
	check(dqkv, m*s.Stride())
	check(dout, m*s.H*s.D)
	check(out, m*s.H*s.D)
	check(stats, m*s.H*2)
	checkSeen(offsets, groups, s)
	if b.tiles != nil {
		b.tileAttentionBackward(dqkv, dout, out, stats, qkv, b.grouping(offsets, groups, window(s)), s)
		return
	}
	g := b.attention(qkv, s)
	by := b.grouping(offsets, groups, window(s))
	g.dqkv, g.dout, g.aout, g.stats = floats(dqkv), floats(dout), floats(out), floats(stats)
	g.offsets, g.groups, g.order = by.offsets, by.groups, by.order
	T, dp := b.panels(by.longest), b.panels(s.D)
	room := T*(2*s.D+dp) + 2*queryBlock*(dp+T)
	if by.groups != nil {
		room += (2*T + int(b.k.nr)) * s.D
	}
	g.scratch, g.scratch_len = b.roomFor(room)
	b.run(b.k.attention_backward, unsafe.Pointer(g), by.count*s.K, 1)
}

// pagedWork estimates the multiply-adds of a product that take as long as PagedAttention, which
// does two per component of a query head and position but mostly waits for memory.
func pagedWork(pos kernels.Buffer, s kernels.AttentionShape) int {
	seen := pos.Len()
	for _, p := range kernels.Elems[int32](pos) {
		seen += min(int(p), window(s))
	}
	return 6 * 2 * s.H * s.D * seen
}

// PagedAttention computes attention of single rows against the cache.
func (b *Backend) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	m := pos.Len()
	check(qkv, m*s.Stride())
	check(out, m*s.H*s.D)
	check(seq, m)
	if !stats.Empty() {
		check(stats, m*s.H*2)
	}
	if !s.Ahead.Empty() {
		check(s.Ahead, m)
	}
	if p.Size%kernels.Lanes != 0 {
		panic("cpu: page size must be a multiple of 16")
	}
	if b.tiles != nil {
		b.tilePagedAttention(out, stats, qkv, p, table, seq, pos, tableWidth, s)
		return
	}
	g := b.attention(qkv, s)
	g.out, g.keys, g.values, g.page = floats(out), floats(p.Keys), floats(p.Values), C.long(p.Size)
	g.table, g.seq, g.pos, g.width = ints(table), ints(seq), ints(pos), C.long(tableWidth)
	g.scratch, g.scratch_len = b.roomFor(2 * b.panels(tableWidth*p.Size))
	g.slots, g.stats = nil, floats(stats)
	wait, seeing := b.queue.wait(p, table, seq, pos, tableWidth, s)
	b.queued(rowCall{kernel: b.k.paged_attention, args: unsafe.Pointer(g), size: unsafe.Sizeof(*g), m: m, perRow: s.K,
		grain: max(1, 8192/(s.D*p.Size)), other: pagedWork(pos, s),
		wait: wait, seeing: seeing},
		use{out, byRow | writes}, use{stats, byRow | writes}, use{qkv, byRow}, use{p.Keys, paged},
		use{p.Values, paged}, use{table, reads}, use{seq, byRow}, use{pos, byRow}, use{s.Ahead, byRow})
	b.foldAppend(p, qkv)
}

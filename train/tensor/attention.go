package tensor

import "exp/kernels"

// heads returns the shape of this rank's heads; ok is false if the ranks cannot share them.
func (b *Backend) heads(s kernels.AttentionShape) (own kernels.AttentionShape, ok bool) {
	size := b.group.Size()
	if s.K%size != 0 {
		return s, false
	}
	s.H, s.K = s.H/size, s.K/size
	return s, true
}

// ownHeads returns this rank's heads of the rows of qkv.
func (b *Backend) ownHeads(qkv kernels.Buffer, s, own kernels.AttentionShape) kernels.Buffer {
	M, rank := qkv.Len()/s.Stride(), b.group.Rank()
	each, all := own.H+2*own.K, s.H+2*s.K
	heads := b.list("heads of rows", [4]int{M, s.H, s.K, s.D}, int(M*each), func(to []int32) {
		for m := range M {
			at := to[int(m*each):]
			for h := range each {
				switch k := h - own.H; {
				case k < 0:
					at[h] = int32(int(m*all) + int(rank*own.H) + h)
				case k < own.K:
					at[h] = int32(int(m*all) + s.H + int(rank*own.K) + k)
				default:
					at[h] = int32(int(m*all) + s.H + s.K + int(rank*own.K) + k - own.K)
				}
			}
		}
	})
	x := b.room("heads", qkv.DType(), int(M*own.Stride()))
	b.GatherRows(x, qkv, heads, s.D)
	return x
}

// AppendKV implements kernels.Sequence: each rank stores its heads.
func (b *Backend) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	own, ok := b.heads(s)
	if !ok {
		b.Backend.AppendKV(p, qkv, slots, s)
		return
	}
	b.Backend.AppendKV(p, b.ownHeads(qkv, s, own), slots, own)
	b.Sync()
}

// PagedAttention implements kernels.Sequence: each rank attends with its heads.
func (b *Backend) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	own, ok := b.heads(s)
	if !ok {
		b.Backend.PagedAttention(out, stats, qkv, p, table, seq, pos, tableWidth, s)
		return
	}
	all, ownStats := stats, stats
	if !stats.Empty() {
		all, ownStats = b.ownStats(stats)
	}
	b.Backend.PagedAttention(b.own(out), ownStats, b.ownHeads(qkv, s, own), p, table, seq, pos, tableWidth, own)
	b.gather(out, int(s.H*s.D))
	if !stats.Empty() {
		b.gatherParts(stats, all, int(s.H*2))
	}
}

// CopyPages implements kernels.Sequence.
func (b *Backend) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	own, _ := b.heads(s)
	b.Backend.CopyPages(p, pairs, own)
}

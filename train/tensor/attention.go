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
	M, rank, size := qkv.Len()/s.Stride(), b.group.Rank(), qkv.DType().Size()
	x := b.room("heads", qkv.DType(), int(M*own.Stride()))
	b.Sync()
	from, to := bytesOf(qkv), bytesOf(x)
	copyHeads := func(row, at, first, heads int) {
		n := int(heads * s.D * size)
		src := int(row*s.Stride()*size) + int(first*s.D*size)
		copy(to[int(row*own.Stride()*size)+int(at*s.D*size):][:n], from[src:])
	}
	for m := range M {
		copyHeads(m, 0, int(rank*own.H), own.H)
		copyHeads(m, own.H, s.H+int(rank*own.K), own.K)
		copyHeads(m, own.H+own.K, s.H+s.K+int(rank*own.K), own.K)
	}
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
func (b *Backend) PagedAttention(out, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	own, ok := b.heads(s)
	if !ok {
		b.Backend.PagedAttention(out, qkv, p, table, seq, pos, tableWidth, s)
		return
	}
	part := b.room("attention", out.DType(), out.Len()/b.group.Size())
	b.Backend.PagedAttention(part, b.ownHeads(qkv, s, own), p, table, seq, pos, tableWidth, own)
	b.gather(out, part, int(s.H*s.D))
}

// CopyPages implements kernels.Sequence.
func (b *Backend) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	own, _ := b.heads(s)
	b.Backend.CopyPages(p, pairs, own)
}

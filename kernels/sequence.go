package kernels

// AttentionShape is the layout of a row of queries, keys and values:
// [H·D queries | K·D keys | K·D values]. Query head h reads key/value head
// h/(H/K). Scale multiplies the scores; it is usually 1/sqrt(D). All numbers are
// rounded to float.
type AttentionShape struct {
	H, K, D int
	Scale   float64
	// Window is the number of positions a query sees, itself included; 0: all up to
	// itself. Positions count from the start of the sequence, prefix included.
	Window int
	// Full: in Attention and AttentionBackward, every row sees all rows of its sequence, those behind it too, as in
	// the encoder of Vaswani et al., arXiv:1706.03762 §3.2.3. Window must be 0, and sequences have no prefix. Other
	// operations ignore it.
	Full bool
	// Ahead, I32 [M] or empty: in Attention, AttentionBackward and PagedAttention, row m also sees the Ahead[m] rows
	// behind it in its sequence. These are a block with it: all rows of a block see up to its last one, so behind a
	// row with a > 0 comes one with a-1. A window moves the first row that each sees, not the last one. The tokens of
	// an image are a block in PaliGemma (arXiv:2407.07726 §3.2) and Gemma 3 (arXiv:2503.19786 §2.1). Full must be
	// false. Other operations ignore it.
	Ahead Buffer
	// Cap > 0 replaces each scaled score z by Cap·Tanh(z/Cap) (Gemma 2, arXiv:2408.00118 §2),
	// with Tanh of kernels/ref.
	Cap float64
	// Rotary is the number of leading channels of a head that Rope rotates, even; 0: all.
	Rotary int
	// Interleaved says that Rope pairs channels 2i and 2i+1 (GLM, ERNIE), not i and i+P.
	Interleaved bool
}

// CheckFull panics if all rows see those behind them but have a window, sequences of so many groups' prefixes, or
// blocks.
func (s AttentionShape) CheckFull(groups int) {
	if s.Full && !s.Ahead.Empty() {
		panic("kernels: full attention has blocks of rows")
	}
	if s.Full && s.Window != 0 {
		panic("kernels: full attention has a window")
	}
	if s.Full && groups != 0 {
		panic("kernels: full attention has groups, whose sequences begin with a prefix")
	}
}

// CheckAhead panics unless ahead [M], if it is not empty, has blocks that end within their sequences: each row with
// a > 0 precedes one of its sequence with a-1. Sequence j is rows offsets[j] to offsets[j+1].
func CheckAhead(ahead, offsets []int32) {
	if len(ahead) == 0 {
		return
	}
	if len(ahead) != int(offsets[len(offsets)-1]) {
		panic("kernels: blocks of other rows")
	}
	for j := 1; j < len(offsets); j++ {
		for i := offsets[j-1]; i < offsets[j]; i++ {
			if a := ahead[i]; a < 0 || a > 0 && (i+1 == offsets[j] || ahead[i+1] != a-1) {
				panic("kernels: a block of rows is torn, or goes beyond its sequence")
			}
		}
	}
}

// Rotated returns the number of channels of a head that Rope rotates.
func (s AttentionShape) Rotated() int {
	if s.Rotary > 0 {
		return s.Rotary
	}
	return s.D
}

// Stride returns the number of elements in a row.
func (s AttentionShape) Stride() int { return (s.H + 2*s.K) * s.D }

// Pages is a paged cache of keys and values for one layer. A page holds Size
// consecutive positions of one sequence: keys as [K,D,Size] (so that Size
// positions of one component are contiguous), values as [K,Size,D]. Both are
// operands.
type Pages struct {
	Keys, Values Buffer // [pages,K,D,Size], [pages,K,Size,D]
	Size         int    // positions in a page; a multiple of Lanes
}

// Sequence is the operations that know where sequences begin. Operands are qkv,
// dqkv, out and dout of Rope and attention, the pages, and the hidden states: out and
// x of GatherRows and x of SegmentMean. In numerics class "cpu/bf16" the chains are
// tile sums over components, key positions and query rows, the last two counted from
// the start of the sequence, prefix included.
type Sequence interface {
	// Rope rotates, in place, the H+K query and key heads of every row of qkv
	// [M,Stride] by its position: for i < P, P half of Rotated, with c = cos[pos,i],
	// s = sin[pos,i],
	//	x[i]   = fma(x[i], c, -(x[i+P]·s))
	//	x[i+P] = fma(x[i+P], c, x[i]·s)      of the old x
	// If Interleaved, x[2i] and x[2i+1] stand for x[i] and x[i+P].
	// cos and sin are [positions,P]; pos [M]. With inverse, s is negated: the
	// backward pass.
	Rope(qkv, cos, sin, pos Buffer, s AttentionShape, inverse bool)

	// Attention sets out [M,H·D] for packed sequences: rows offsets[j] to offsets[j+1],
	// offsets [S+1], are sequence j's own, possibly none. groups [G+1] says which share a
	// beginning: the first of sequences groups[g] to groups[g+1] is the prefix of the
	// others, which see all its rows before their own. With empty groups no sequence has
	// a prefix. For query row i and head h, over the rows t ≤ i of its sequence, prefix
	// included, counted from the sequence's start, and with a window only those with
	// i-t < Window, or if Full over all rows t of its sequence. With Ahead, t is at most i + Ahead[i] instead of i.
	//	z[t]   = (chain over d of q[d]·k[t,d]) · Scale, capped if Cap > 0
	//	m      = max z
	//	e[t]   = Exp(z[t] - m)
	//	l      = lane sum of e[t], lanes counted from t = 0
	//	out[d] = (chain over t of e[t]·v[t,d]) · (1/l)
	// stats [M,H,2] holds m and 1/l for the backward pass. The maximum starts from -Inf and
	// skips NaN, which reaches the result through e; a zero maximum is +0. In class
	// "matrix/16x25" m rises with the keys (MatrixKeys).
	//
	// If Full, out and stats are those of PagedAttention for rows at the sequence's last position. Attention panics
	// if s is Full and has a window, or if groups are not empty.
	Attention(out, stats, qkv, offsets, groups Buffer, s AttentionShape)
	// AttentionBackward sets dqkv [M,Stride]. With z, m, l as in Attention and
	//	delta = lane sum of dout[d]·out[d]
	//	p[t]  = Exp(z[t] - m)·(1/l)
	//	dp[t] = chain over d of dout[d]·v[t,d]
	//	dz[t] = (p[t]·(dp[t] - delta)) · Scale
	//	dz[t] = ((p[t]·(dp[t] - delta))·(1 - y·y)) · Scale   with a cap; y = Tanh(z/Cap), z uncapped
	// the gradients are
	//	dq[d]   = chain over t ascending of dz[t]·k[t,d]
	//	dk[t,d] = chain of dz[t]·q[d], dv[t,d] = chain of p[t]·dout[d], each over the
	//	          sequences that see t, within a sequence the query heads that share
	//	          t's head, within a head the query rows that see t, all ascending.
	// If Full, these are all rows of the sequence. It panics as Attention does.
	//
	// In class "cpu/bf16" a sum of dk or dv has the steps from the first on in which a query sees a key of t's step.
	AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups Buffer, s AttentionShape)

	// Sink makes each query head h of att [M,H·D], from Attention with its stats [M,H,2], attend to one more
	// key, with score sinks[h] and a value of zeros (gpt-oss, arXiv:2508.10925; Xiao et al.,
	// arXiv:2309.17453 §3.3). With x = Exp(sinks[h] - m)·(1/l) for the row and head,
	//	out[m,h·D+d] = att[m,h·D+d] · (1/(1 + x))
	// sinks [H] are Floats; out and att [M,H·D] are operands, and out may be att.
	Sink(out, att, stats, sinks Buffer, s AttentionShape)
	// SinkBackward sets datt, from which AttentionBackward, with Sink's out in the place of Attention's,
	// computes the gradients of queries, keys and values. With g = 1/(1 + x) and
	// t = lane sum over d of dout[d]·out[d],
	//	datt[m,h·D+d] = dout[m,h·D+d]·g
	// It adds to dsinks [H] the blocked plain sum over rows of -(t·(1-g)). datt may be dout.
	SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks Buffer, s AttentionShape)

	// AppendKV stores the keys and values of every row of qkv [M,Stride] in a
	// layer's pages. slots [M] holds page·Size + position within the page.
	AppendKV(p Pages, qkv, slots Buffer, s AttentionShape)
	// PagedAttention sets out [M,H·D] as Attention does, for rows whose keys and
	// values are in pages: row m belongs to sequence seq[m] and sees its positions 0 to
	// pos[m], or its window; position t is in page table[seq[m], t/Size], table
	// [sequences,tableWidth]. With Ahead, the row sees up to position pos[m] + Ahead[m].
	// Table entries outside the visible positions may be anything.
	// stats [M,H,2] gets what Attention sets; it may be empty.
	PagedAttention(out, stats, qkv Buffer, p Pages, table, seq, pos Buffer, tableWidth int, s AttentionShape)
	// CopyPages copies page pairs[2i] to page pairs[2i+1], keys and values, in order.
	CopyPages(p Pages, pairs Buffer, s AttentionShape)

	// GatherRows sets out[r] = x[rows[r]], C elements each; both may be Float instead.
	GatherRows(out, x, rows Buffer, C int)
	// ScatterRows sets dx [M,C] to zero, then adds dout[r] to dx[rows[r]], r ascending.
	ScatterRows(dx, dout, rows Buffer, C int)
	// SegmentMean sets out[j] [C] to the mean of rows segments[2j] to
	// segments[2j+1] of x: plain sum in row order, divided by the row count; 0 for
	// an empty segment. x may be Float instead.
	SegmentMean(out, x, segments Buffer, C int)
	// SegmentMeanBackward adds dout[j]/n to each of the n rows of segment j of dx,
	// segments ascending; they may overlap.
	SegmentMeanBackward(dx, dout, segments Buffer, C int)
}

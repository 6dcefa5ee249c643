package tensor

import "exp/kernels"

// LogProb implements kernels.Output.
func (b *Backend) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	rows := out.LSE.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.LogProb(out.Rows(lo, hi), h.Slice(lo*w.In, hi*w.In), b.whole(w), targets.Rows(lo, hi, rows), x)
	}
	b.completeScores(out, b.ends(rows))
}

// TopTokens implements kernels.Output.
func (b *Backend) TopTokens(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	x kernels.Softmax) {
	rows := out.LSE.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.TopTokens(ids.Rows(lo, hi, rows), out.Rows(lo, hi), h.Slice(lo*w.In, hi*w.In), b.whole(w), x)
	}
	b.complete(ids, ids.PerRow(rows), b.ends(rows))
	b.completeScores(out, b.ends(rows))
}

// Logits implements kernels.Output: every rank computes them all.
func (b *Backend) Logits(out, h kernels.Buffer, w kernels.Matrix, limit float64) {
	b.Backend.Logits(out, h, b.whole(w), limit)
}

// Sample implements kernels.Output.
func (b *Backend) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	u kernels.Buffer, p kernels.Sampling) {
	rows := ids.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.Sample(ids.Slice(lo, hi), out.Rows(lo, hi), h.Slice(lo*w.In, hi*w.In), b.whole(w), u.Slice(lo, hi),
			p)
	}
	b.complete(ids, 1, b.ends(rows))
	b.completeScores(out, b.ends(rows))
}

func (b *Backend) completeScores(s kernels.Scores, ends []int) {
	b.complete(s.LogProb, s.LogProb.PerRow(s.LSE.Len()), ends)
	b.complete(s.Entropy, 1, ends)
	b.complete(s.LSE, 1, ends)
}

// LogProbBackward implements kernels.Output: dh by rows, and this rank's rows of dw, the rows of its
// tokens, from these tokens' logits.
func (b *Backend) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	if !partial(w) {
		b.Backend.LogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, blocks, x)
		return
	}
	rows := dEntropy.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.LogProbBackward(dh.Slice(lo*w.In, hi*w.In), kernels.Buffer{}, dLogProb.Rows(lo, hi, rows),
			dEntropy.Slice(lo, hi), sc.Rows(lo, hi), h.Slice(lo*w.In, hi*w.In), b.whole(w),
			targets.Rows(lo, hi, rows), blocks, x)
	}
	b.complete(dh, w.In, b.ends(rows))
	if rows == 0 {
		return
	}
	own := kernels.Matrix{W: w.W, Out: b.rows(w).Out, In: w.In}
	packed, packedT := b.PackedLen(own.Out, own.In)
	if packed > 0 {
		own.Packed = b.room("packed tokens", w.Packed.DType(), packed)
		if packedT > 0 {
			own.PackedT = b.room("packed tokens, transposed", w.PackedT.DType(), packedT)
		}
		b.Backend.Pack(own)
	}
	first, _ := b.part(w.Out)
	shifted := b.download(targets)
	for i, id := range shifted {
		if shifted[i] = id - int32(first); shifted[i] < 0 || int(shifted[i]) >= own.Out {
			shifted[i] = -1 // no token of this rank
		}
	}
	b.Backend.LogProbBackward(b.room("dh", dh.DType(), dh.Len()), dw, dLogProb, dEntropy, sc, h, own,
		b.upload("targets", shifted), blocks, x)
	b.Sync()
}

// Embed implements kernels.Linear: each rank embeds its tokens.
func (b *Backend) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	if !partial(w) {
		b.Backend.Embed(out, w, ids, scale)
		return
	}
	b.vocab = w.Out
	tokens, all := b.download(ids), b.ends(w.Out)
	by := make([][]int32, len(all)) // rows of out, by the rank that embeds them
	for i, id := range tokens {
		r := b.owner(int(id), w.Out)
		by[r] = append(by[r], int32(i))
	}
	room, places := b.room("embeddings", out.DType(), out.Len()), make([]int32, len(tokens))
	ends, n := make([]int, len(all)), 0
	for r, list := range by {
		for _, i := range list {
			places[i] = int32(n)
			n++
		}
		ends[r] = n
	}
	rank := b.group.Rank()
	if own := by[rank]; len(own) > 0 {
		end := ends[rank]
		to := room.Slice(int((end-len(own))*w.In), int(end*w.In))
		b.Backend.Embed(to, b.rows(w), b.shifted(tokens, own, w.Out), scale)
	}
	b.complete(room, w.In, ends)
	b.GatherRows(out, room, b.upload("places", places), w.In)
	b.Sync()
}

// EmbedBackward implements kernels.Linear: each rank adds to the rows of its tokens.
func (b *Backend) EmbedBackward(dweight, dout, ids kernels.Buffer, C int, scale float64) {
	if b.vocab == 0 || dweight.Len() == int(b.vocab*C) {
		b.Backend.EmbedBackward(dweight, dout, ids, C, scale)
		return
	}
	var own []int32
	tokens := b.download(ids)
	for i, id := range tokens {
		if b.owner(int(id), b.vocab) == b.group.Rank() {
			own = append(own, int32(i))
		}
	}
	if len(own) == 0 {
		return
	}
	part := b.room("own gradients", dout.DType(), int(len(own)*C))
	b.GatherRows(part, dout, b.upload("own rows", own), C)
	b.Backend.EmbedBackward(dweight, part, b.shifted(tokens, own, b.vocab), C, scale)
	b.Sync()
}

// AddRows implements model.Cutter: all ranks have the same rows.
func (b *Backend) AddRows(dtable, dout, ids kernels.Buffer, C int) {
	b.Backend.EmbedBackward(dtable, dout, ids, C, 1)
}

// owner returns the rank that holds row i of n.
func (b *Backend) owner(i, n int) int {
	size := b.group.Size()
	r := int(i*size) / n
	for r+1 < size && int((r+1)*n)/size <= i {
		r++
	}
	return r
}

// shifted returns the tokens at some places, counted from the first of n that this rank holds.
func (b *Backend) shifted(tokens, places []int32, n int) kernels.Buffer {
	first, _ := b.part(n)
	own := make([]int32, len(places))
	for k, i := range places {
		own[k] = tokens[i] - int32(first)
	}
	return b.upload("own ids", own)
}

package tensor

import "exp/kernels"

// LogProb implements kernels.Output.
func (b *Backend) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	rows := targets.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.LogProb(slice(out, lo, hi), h.Slice(lo*w.In, hi*w.In), w, targets.Slice(lo, hi), x)
	}
	b.completeScores(out, b.ends(rows))
}

// Sample implements kernels.Output.
func (b *Backend) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	u kernels.Buffer, p kernels.Sampling) {
	rows := ids.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.Sample(ids.Slice(lo, hi), slice(out, lo, hi), h.Slice(lo*w.In, hi*w.In), w, u.Slice(lo, hi), p)
	}
	b.complete(ids, 1, b.ends(rows))
	b.completeScores(out, b.ends(rows))
}

// slice returns rows lo to hi of scores.
func slice(s kernels.Scores, lo, hi int) kernels.Scores {
	return kernels.Scores{LogProb: s.LogProb.Slice(lo, hi), Entropy: s.Entropy.Slice(lo, hi), LSE: s.LSE.Slice(lo, hi)}
}

func (b *Backend) completeScores(s kernels.Scores, ends []int) {
	for _, x := range []kernels.Buffer{s.LogProb, s.Entropy, s.LSE} {
		b.complete(x, 1, ends)
	}
}

// LogProbBackward implements kernels.Output: dh by rows, and this rank's rows of dw, those of its
// tokens, from these tokens' logits.
func (b *Backend) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	if !partial(w) {
		b.Backend.LogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, blocks, x)
		return
	}
	rows := targets.Len()
	lo, hi := b.part(rows)
	if lo < hi {
		b.Backend.LogProbBackward(dh.Slice(lo*w.In, hi*w.In), kernels.Buffer{}, dLogProb.Slice(lo, hi),
			dEntropy.Slice(lo, hi), slice(sc, lo, hi), h.Slice(lo*w.In, hi*w.In), w, targets.Slice(lo, hi), blocks, x)
	}
	b.complete(dh, w.In, b.ends(rows))
	if rows == 0 {
		return
	}
	own := b.rows(w)
	packed, packedT := b.PackedLen(own.Out, own.In)
	if packed > 0 {
		own.Packed = b.room("packed tokens", w.Packed.DType(), packed)
		if packedT > 0 {
			own.PackedT = b.room("packed tokens, transposed", w.PackedT.DType(), packedT)
		}
		b.Backend.Pack(own)
	}
	first, _ := b.part(w.Out)
	b.Sync()
	shifted := b.room("targets", kernels.I32, rows)
	to := kernels.Elems[int32](shifted)
	for i, id := range kernels.Elems[int32](targets) {
		to[i] = -1 // no token of this rank
		if at := int(id) - first; at >= 0 && at < own.Out {
			to[i] = int32(at)
		}
	}
	b.Backend.LogProbBackward(b.room("dh", dh.DType(), dh.Len()), dw, dLogProb, dEntropy, sc, h, own, shifted, blocks,
		x)
	b.Sync()
}

// Embed implements kernels.Linear: each rank embeds its tokens.
func (b *Backend) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	if !partial(w) {
		b.Backend.Embed(out, w, ids, scale)
		return
	}
	b.vocab = w.Out
	b.Sync()
	all := b.ends(w.Out)
	at := make([][]int32, len(all)) // rows of out, by the rank that embeds them
	for i, id := range kernels.Elems[int32](ids) {
		r := b.owner(int(id), w.Out)
		at[r] = append(at[r], int32(i))
	}
	room := b.room("embeddings", out.DType(), out.Len())
	ends, n := make([]int, len(all)), 0
	for r := range at {
		n += len(at[r])
		ends[r] = n
	}
	rank := b.group.Rank()
	if own := at[rank]; len(own) > 0 {
		first, _ := b.part(w.Out)
		shifted := b.shifted(ids, own, first)
		end := ends[rank]
		b.Backend.Embed(room.Slice(int((end-len(own))*w.In), int(end*w.In)), b.rows(w), shifted, scale)
	}
	b.complete(room.Slice(0, int(n*w.In)), w.In, ends)
	from := 0
	for _, list := range at {
		for _, i := range list {
			b.Copy(out.Slice(int(int(i)*w.In), int((int(i)+1)*w.In)), room.Slice(int(from*w.In), int((from+1)*w.In)))
			from++
		}
	}
	b.Sync()
}

// EmbedBackward implements kernels.Linear: each rank adds to the rows of its tokens.
func (b *Backend) EmbedBackward(dweight, dout, ids kernels.Buffer, C int, scale float64) {
	if b.vocab == 0 || dweight.Len() == int(b.vocab*C) {
		b.Backend.EmbedBackward(dweight, dout, ids, C, scale)
		return
	}
	b.Sync()
	var own []int32
	for i, id := range kernels.Elems[int32](ids) {
		if b.owner(int(id), b.vocab) == b.group.Rank() {
			own = append(own, int32(i))
		}
	}
	if len(own) == 0 {
		return
	}
	first, _ := b.part(b.vocab)
	rows, part := b.room("own rows", kernels.I32, len(own)), b.room("own gradients", dout.DType(), int(len(own)*C))
	copy(kernels.Elems[int32](rows), own)
	b.GatherRows(part, dout, rows, C)
	b.Backend.EmbedBackward(dweight, part, b.shifted(ids, own, first), C, scale)
	b.Sync()
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

// shifted returns the ids at some places, counted from the first token of this rank.
func (b *Backend) shifted(ids kernels.Buffer, places []int32, first int) kernels.Buffer {
	x, from := b.room("own ids", kernels.I32, len(places)), kernels.Elems[int32](ids)
	to := kernels.Elems[int32](x)
	for k, i := range places {
		to[k] = from[i] - int32(first)
	}
	return x
}

package ref

import "exp/kernels"

// This file has the operations of kernels.Backend, whose interfaces document them.

// PackedLen implements kernels.Linear: this backend needs no copies.
func (*Backend[T]) PackedLen(out, in int) (packed, packedT int) { return 0, 0 }

// Pack implements kernels.Linear and does nothing.
func (*Backend[T]) Pack(w kernels.Matrix) {}

// PackRows implements kernels.Linear: it sets rows of w.W.
func (b *Backend[T]) PackRows(w kernels.Matrix, from int, rows kernels.Buffer) {
	n := rowCount(rows, w.In)
	if w.W.DType() == kernels.F64 && rows.DType() == kernels.BF16 {
		wide := make([]float32, rows.Len())
		widen(wide, kernels.Bits(rows))
		rows = kernels.Host(wide)
	}
	b.Copy(w.W.Slice(from*w.In, (from+n)*w.In), rows)
}

func (*Backend[T]) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	M := rowCount(out, w.Out)
	MatMul(floats[T](out), floats[T](x), weights[T](w), floats[T](bias), M, w.Out, w.In)
}

func (*Backend[T]) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	M := rowCount(dx, w.In)
	MatMulDX(floats[T](dx), floats[T](dout), weights[T](w), M, w.Out, w.In)
}

func (*Backend[T]) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	checkGates(w)
	M := rowCount(act, w.Out/2)
	y := floats[T](gateUp)
	if gateUp.Empty() {
		y = make([]T, M*w.Out)
	}
	MatMul(y, floats[T](x), weights[T](w), nil, M, w.Out, w.In)
	SwiGLU(floats[T](act), y, w.Out/2)
}

func (*Backend[T]) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	M := rowCount(dout, w.Out)
	d := make([]T, M*w.In)
	MatMulDX(d, floats[T](dout), weights[T](w), M, w.Out, w.In)
	SwiGLUBackward(floats[T](dgateUp), d, floats[T](gateUp), w.In)
}

// MatMulDW implements kernels.Linear. The number of rows is the last block
// boundary.
func (*Backend[T]) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	bl := ints(blocks)
	if len(bl) == 0 {
		panic("ref: MatMulDW: no block boundaries")
	}
	M := int(bl[len(bl)-1])
	if M == 0 {
		return
	}
	N, K := dout.Len()/M, x.Len()/M
	MatMulDW(floats[T](dw), floats[T](dbias), floats[T](dout), floats[T](x), bl, M, N, K)
}

func (*Backend[T]) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	Embed(floats[T](out), weights[T](w), ints(ids), w.In, scale)
}

func (*Backend[T]) EmbedBackward(dweight, dout, ids kernels.Buffer, C int, scale float64) {
	EmbedBackward(floats[T](dweight), floats[T](dout), ints(ids), C, scale)
}

func (*Backend[T]) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	RMSNorm(floats[T](out), floats[T](rstd), floats[T](x), floats[T](weight), s, eps)
}

func (*Backend[T]) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	AddRMSNorm(floats[T](sum), floats[T](out), floats[T](rstd), floats[T](x), floats[T](delta), floats[T](weight),
		s, eps)
}

func (*Backend[T]) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape,
	set bool) {
	RMSNormBackward(floats[T](dx), floats[T](dweight), floats[T](dout), floats[T](x), floats[T](weight),
		floats[T](rstd), ints(blocks), s, set)
}

func (*Backend[T]) LayerNorm(out, stats, x, weight, bias kernels.Buffer, C int, eps float64) {
	LayerNorm(floats[T](out), floats[T](stats), floats[T](x), floats[T](weight), floats[T](bias), C, eps)
}

func (*Backend[T]) LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks kernels.Buffer, C int) {
	LayerNormBackward(floats[T](dx), floats[T](dweight), floats[T](dbias), floats[T](dout), floats[T](x),
		floats[T](weight), floats[T](stats), ints(blocks), C)
}

func (*Backend[T]) GELU(out, x kernels.Buffer) { GELU(floats[T](out), floats[T](x)) }

func (*Backend[T]) GELUBackward(dx, dout, x kernels.Buffer) {
	GELUBackward(floats[T](dx), floats[T](dout), floats[T](x))
}

func (*Backend[T]) Dropout(out, x, keys kernels.Buffer, C int, layer uint32, p float64) {
	Dropout(floats[T](out), floats[T](x), ints(keys), C, layer, p)
}

func (*Backend[T]) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	Rope(floats[T](qkv), floats[T](cos), floats[T](sin), ints(pos), s, inverse)
}

func (*Backend[T]) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	Attention(floats[T](out), floats[T](stats), floats[T](qkv), ints(offsets), ints(groups), s)
}

func (*Backend[T]) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer,
	s kernels.AttentionShape) {
	AttentionBackward(floats[T](dqkv), floats[T](dout), floats[T](out), floats[T](stats), floats[T](qkv),
		ints(offsets), ints(groups), s)
}

func (*Backend[T]) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	AppendKV(pages[T](p), floats[T](qkv), ints(slots), s)
}

func (*Backend[T]) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	PagedAttention(floats[T](out), floats[T](stats), floats[T](qkv), pages[T](p), ints(table), ints(seq), ints(pos),
		tableWidth, s)
}

func (*Backend[T]) Sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) {
	Sink(floats[T](out), floats[T](att), floats[T](stats), floats[T](sinks), s)
}

func (*Backend[T]) SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks kernels.Buffer,
	s kernels.AttentionShape) {
	SinkBackward(floats[T](datt), floats[T](dsinks), floats[T](dout), floats[T](out), floats[T](stats),
		floats[T](sinks), ints(blocks), s)
}

func (*Backend[T]) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	CopyPages(pages[T](p), ints(pairs), s)
}

func (*Backend[T]) GatherRows(out, x, rows kernels.Buffer, C int) {
	GatherRows(floats[T](out), floats[T](x), ints(rows), C)
}

func (*Backend[T]) ScatterRows(dx, dout, rows kernels.Buffer, C int) {
	ScatterRows(floats[T](dx), floats[T](dout), ints(rows), C)
}

func (*Backend[T]) SegmentMean(out, x, segments kernels.Buffer, C int) {
	SegmentMean(floats[T](out), floats[T](x), ints(segments), C)
}

func (*Backend[T]) SegmentMeanBackward(dx, dout, segments kernels.Buffer, C int) {
	SegmentMeanBackward(floats[T](dx), floats[T](dout), ints(segments), C)
}

func (*Backend[T]) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	checkMatrix(w)
	LogProb(floats[T](out.LogProb), floats[T](out.Entropy), floats[T](out.LSE), floats[T](h), weights[T](w),
		ints(targets), w.In, x)
}

func (*Backend[T]) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	checkMatrix(w)
	LogProbBackward(floats[T](dh), floats[T](dw), floats[T](dLogProb), floats[T](dEntropy), floats[T](sc.Entropy),
		floats[T](sc.LSE), floats[T](h), weights[T](w), ints(targets), ints(blocks), w.In, x)
}

func (*Backend[T]) Logits(out, h kernels.Buffer, w kernels.Matrix, cap float64) {
	checkMatrix(w)
	Logits(floats[T](out), floats[T](h), weights[T](w), w.In, cap)
}

func (*Backend[T]) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer,
	p kernels.Sampling) {
	checkMatrix(w)
	Sample(ints(ids), floats[T](out.LogProb), floats[T](out.Entropy), floats[T](out.LSE), floats[T](h), weights[T](w),
		floats[T](u), w.In, p)
}

func (*Backend[T]) TopTokens(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	x kernels.Softmax) {
	checkMatrix(w)
	TopTokens(ints(ids), floats[T](out.LogProb), floats[T](out.Entropy), floats[T](out.LSE), floats[T](h),
		weights[T](w), w.In, x)
}

func (*Backend[T]) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	AdamW(floats[T](p), floats[T](m), floats[T](v), floats[T](g), a)
}

func (*Backend[T]) SumSquares(out, x kernels.Buffer) {
	if out.Len() != 1 {
		panic("ref: SumSquares: length mismatch")
	}
	floats[float64](out)[0] = SumSquares(floats[T](x))
}

func (*Backend[T]) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	Gate(floats[T](act), floats[T](gateUp), F, kind)
}

func (*Backend[T]) GateBackward(dgateUp, gateUp, dact kernels.Buffer, F int, kind kernels.GateKind) {
	GateBackward(floats[T](dgateUp), floats[T](dact), floats[T](gateUp), F, kind)
}

func (*Backend[T]) XIELU(act, x kernels.Buffer, F int, a kernels.Xielu) {
	XIELU(floats[T](act), floats[T](x), F, a)
}

func (*Backend[T]) XIELUBackward(dx, dalpha, x, dact, blocks kernels.Buffer, F int, a kernels.Xielu) {
	XIELUBackward(floats[T](dx), floats[T](dalpha), floats[T](x), floats[T](dact), ints(blocks), F, a)
}

func (*Backend[T]) Clip(out, x kernels.Buffer, limit float64) {
	Clip(floats[T](out), floats[T](x), limit)
}

func (*Backend[T]) ClipBackward(dx, dout, x kernels.Buffer, limit float64) {
	ClipBackward(floats[T](dx), floats[T](dout), floats[T](x), limit)
}

func (*Backend[T]) TakeColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	TakeColumns(floats[T](dst), floats[T](src), n, stride, offset, scale)
}

func (*Backend[T]) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	AddColumns(floats[T](dst), floats[T](src), n, stride, offset, scale)
}

func (*Backend[T]) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	Route(ints(choice), floats[T](weight), floats[T](probs), floats[T](logits), floats[T](bias), r)
}

func (*Backend[T]) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	RouteBackward(floats[T](dlogits), floats[T](dweight), ints(choice), floats[T](weight), floats[T](probs), r)
}

func (*Backend[T]) Combine(out, x, slot, weight kernels.Buffer, C, J int) {
	Combine(floats[T](out), floats[T](x), ints(slot), floats[T](weight), C, J)
}

func (*Backend[T]) CombineBackward(dx, dweight, dout, x, slot, weight kernels.Buffer, C, J int) {
	CombineBackward(floats[T](dx), floats[T](dweight), floats[T](dout), floats[T](x), ints(slot), floats[T](weight),
		C, J)
}

// weights returns w.W as a slice, a copy if it is BF16.
func weights[T Float](w kernels.Matrix) []T {
	if w.W.Empty() || w.W.DType() != kernels.BF16 {
		return floats[T](w.W)
	}
	narrow := make([]float32, w.W.Len())
	widen(narrow, kernels.Bits(w.W))
	y := make([]T, len(narrow))
	convert(y, narrow)
	return y
}

func pages[T Float](p kernels.Pages) Pages[T] {
	return Pages[T]{Keys: floats[T](p.Keys), Values: floats[T](p.Values), Size: p.Size}
}

// rowCount returns the number of rows of x, width elements each.
func rowCount(x kernels.Buffer, width int) int {
	if width < 1 || x.Len()%width != 0 {
		panic("ref: not a whole number of rows")
	}
	return x.Len() / width
}

func checkMatrix(w kernels.Matrix) {
	if w.Out < 1 || w.In < 1 || w.W.Len() != w.Out*w.In {
		panic("ref: matrix: length mismatch")
	}
}

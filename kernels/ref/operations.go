package ref

import "exp/kernels"

// PackedLen implements kernels.Linear: no copies are needed.
func (*Backend[T]) PackedLen(out, in int) (packed, packedT int) { return 0, 0 }

// Pack implements kernels.Linear and does nothing.
func (*Backend[T]) Pack(w kernels.Matrix) {}

// MatMul implements kernels.Linear.
func (*Backend[T]) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	M := rowCount(out, w.Out)
	MatMul(floats[T](out), floats[T](x), floats[T](w.W), floats[T](bias), M, w.Out, w.In)
}

// MatMulDX implements kernels.Linear.
func (*Backend[T]) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	M := rowCount(dx, w.In)
	MatMulDX(floats[T](dx), floats[T](dout), floats[T](w.W), M, w.Out, w.In)
}

// MatMulSwiGLU implements kernels.Linear.
func (*Backend[T]) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	checkGates(w)
	M := rowCount(act, w.Out/2)
	y := floats[T](gateUp)
	if gateUp.Empty() {
		y = make([]T, M*w.Out)
	}
	MatMul(y, floats[T](x), floats[T](w.W), nil, M, w.Out, w.In)
	SwiGLU(floats[T](act), y, w.Out/2)
}

// MatMulDXSwiGLU implements kernels.Linear.
func (*Backend[T]) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	M := rowCount(dout, w.Out)
	d := make([]T, M*w.In)
	MatMulDX(d, floats[T](dout), floats[T](w.W), M, w.Out, w.In)
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

// Embed implements kernels.Linear.
func (*Backend[T]) Embed(out, weight, ids kernels.Buffer, C int) {
	Embed(floats[T](out), floats[T](weight), ints(ids), C)
}

// EmbedBackward implements kernels.Linear.
func (*Backend[T]) EmbedBackward(dweight, dout, ids kernels.Buffer, C int) {
	EmbedBackward(floats[T](dweight), floats[T](dout), ints(ids), C)
}

// RMSNorm implements kernels.Norm.
func (*Backend[T]) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	RMSNorm(floats[T](out), floats[T](rstd), floats[T](x), floats[T](weight), s, eps)
}

// AddRMSNorm implements kernels.Norm.
func (*Backend[T]) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, C int, eps float64) {
	AddRMSNorm(floats[T](sum), floats[T](out), floats[T](rstd), floats[T](x), floats[T](delta), floats[T](weight), C, eps)
}

// RMSNormBackward implements kernels.Norm.
func (*Backend[T]) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape, set bool) {
	RMSNormBackward(floats[T](dx), floats[T](dweight), floats[T](dout), floats[T](x), floats[T](weight), floats[T](rstd), ints(blocks), s, set)
}

// LayerNorm implements kernels.Norm.
func (*Backend[T]) LayerNorm(out, stats, x, weight, bias kernels.Buffer, C int, eps float64) {
	LayerNorm(floats[T](out), floats[T](stats), floats[T](x), floats[T](weight), floats[T](bias), C, eps)
}

// LayerNormBackward implements kernels.Norm.
func (*Backend[T]) LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks kernels.Buffer, C int) {
	LayerNormBackward(floats[T](dx), floats[T](dweight), floats[T](dbias), floats[T](dout), floats[T](x), floats[T](weight), floats[T](stats), ints(blocks), C)
}

// GELU implements kernels.Norm.
func (*Backend[T]) GELU(out, x kernels.Buffer) { GELU(floats[T](out), floats[T](x)) }

// GELUBackward implements kernels.Norm.
func (*Backend[T]) GELUBackward(dx, dout, x kernels.Buffer) {
	GELUBackward(floats[T](dx), floats[T](dout), floats[T](x))
}

// Dropout implements kernels.Norm.
func (*Backend[T]) Dropout(out, x, keys kernels.Buffer, C int, layer uint32, p float64) {
	Dropout(floats[T](out), floats[T](x), ints(keys), C, layer, p)
}

// Rope implements kernels.Sequence.
func (*Backend[T]) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	Rope(floats[T](qkv), floats[T](cos), floats[T](sin), ints(pos), s, inverse)
}

// Attention implements kernels.Sequence.
func (*Backend[T]) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	Attention(floats[T](out), floats[T](stats), floats[T](qkv), ints(offsets), ints(groups), s)
}

// AttentionBackward implements kernels.Sequence.
func (*Backend[T]) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	AttentionBackward(floats[T](dqkv), floats[T](dout), floats[T](out), floats[T](stats), floats[T](qkv), ints(offsets), ints(groups), s)
}

// AppendKV implements kernels.Sequence.
func (*Backend[T]) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	AppendKV(pages[T](p), floats[T](qkv), ints(slots), s)
}

// PagedAttention implements kernels.Sequence.
func (*Backend[T]) PagedAttention(out, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, tableWidth int, s kernels.AttentionShape) {
	PagedAttention(floats[T](out), floats[T](qkv), pages[T](p), ints(table), ints(seq), ints(pos), tableWidth, s)
}

// CopyPages implements kernels.Sequence.
func (*Backend[T]) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	CopyPages(pages[T](p), ints(pairs), s)
}

// GatherRows implements kernels.Sequence.
func (*Backend[T]) GatherRows(out, x, rows kernels.Buffer, C int) {
	GatherRows(floats[T](out), floats[T](x), ints(rows), C)
}

// ScatterRows implements kernels.Sequence.
func (*Backend[T]) ScatterRows(dx, dout, rows kernels.Buffer, C int) {
	ScatterRows(floats[T](dx), floats[T](dout), ints(rows), C)
}

// SegmentMean implements kernels.Sequence.
func (*Backend[T]) SegmentMean(out, x, segments kernels.Buffer, C int) {
	SegmentMean(floats[T](out), floats[T](x), ints(segments), C)
}

// SegmentMeanBackward implements kernels.Sequence.
func (*Backend[T]) SegmentMeanBackward(dx, dout, segments kernels.Buffer, C int) {
	SegmentMeanBackward(floats[T](dx), floats[T](dout), ints(segments), C)
}

// LogProb implements kernels.Output.
func (*Backend[T]) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, temperature float64) {
	checkMatrix(w)
	LogProb(floats[T](out.LogProb), floats[T](out.Entropy), floats[T](out.LSE), floats[T](h), floats[T](w.W), ints(targets), w.In, temperature)
}

// LogProbBackward implements kernels.Output.
func (*Backend[T]) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets, blocks kernels.Buffer, temperature float64) {
	checkMatrix(w)
	LogProbBackward(floats[T](dh), floats[T](dw), floats[T](dLogProb), floats[T](dEntropy), floats[T](sc.Entropy), floats[T](sc.LSE),
		floats[T](h), floats[T](w.W), ints(targets), ints(blocks), w.In, temperature)
}

// Sample implements kernels.Output.
func (*Backend[T]) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
	checkMatrix(w)
	Sample(ints(ids), floats[T](out.LogProb), floats[T](out.Entropy), floats[T](out.LSE), floats[T](h), floats[T](w.W), floats[T](u), w.In, p)
}

// AdamW implements kernels.Update.
func (*Backend[T]) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	AdamW(floats[T](p), floats[T](m), floats[T](v), floats[T](g), a)
}

// SumSquares implements kernels.Update.
func (*Backend[T]) SumSquares(out, x kernels.Buffer) {
	if out.Len() != 1 {
		panic("ref: SumSquares: length mismatch")
	}
	floats[float64](out)[0] = SumSquares(floats[T](x))
}

func pages[T Float](p kernels.Pages) Pages[T] {
	return Pages[T]{Keys: floats[T](p.Keys), Values: floats[T](p.Values), Size: p.Size}
}

// rowCount returns the rows of x at width elements each.
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

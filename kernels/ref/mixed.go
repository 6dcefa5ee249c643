package ref

import (
	"math"
	"slices"

	"exp/kernels"
)

// Mixed is the reference for the numerics classes whose operands are BF16; parameters,
// gradients and the residual stream are float32. A Mixed is used by one goroutine at a time. The
// interfaces of kernels.Backend document its methods.
//
// It computes on float32 copies of operands and rounds when it stores them, so
// operations other than matmuls are Backend[float32]'s.
type Mixed struct {
	*Backend[float32]
	f factors
}

var _ kernels.Backend = Mixed{}

// NewMixed returns a backend of class "cpu/bf16": products are tile sums.
func NewMixed() Mixed {
	f := factors{"ref/bf16", "cpu/bf16", kernels.TileTerms, TileSum, tileProducts, wholeRow, false}
	return Mixed{New[float32](), f}
}

// NewMatrix returns a backend of class "matrix/16x25": products are matrix sums.
func NewMatrix() Mixed {
	f := factors{"ref/matrix", "matrix/16x25", kernels.MatrixTerms, MatrixSum, matrixProducts, byKeys, true}
	return Mixed{New[float32](), f}
}

// Name returns "ref/bf16" or "ref/matrix".
func (b Mixed) Name() string { return b.f.name }

// Class returns the class whose bits b defines.
func (b Mixed) Class() string { return b.f.class }

// Operand returns kernels.BF16.
func (b Mixed) Operand() kernels.DType { return kernels.BF16 }

// wide returns x as float32, a copy if x is BF16.
func wide(x kernels.Buffer) []float32 {
	if x.Empty() || x.DType() != kernels.BF16 {
		return floats[float32](x)
	}
	y := make([]float32, x.Len())
	widen(y, kernels.Bits(x))
	return y
}

// store rounds y, which wide(x) returned, into x.
func store(x kernels.Buffer, y []float32) {
	if x.DType() == kernels.BF16 {
		narrow(kernels.Bits(x), y)
	}
}

// wideKV returns the pages as float32.
func wideKV(p kernels.Pages) Pages[float32] {
	return Pages[float32]{Keys: wide(p.Keys), Values: wide(p.Values), Size: p.Size}
}

// storeKV rounds y, which wideKV(p) returned, into p.
func storeKV(p kernels.Pages, y Pages[float32]) {
	store(p.Keys, y.Keys)
	store(p.Values, y.Values)
}

// PackRows implements kernels.Linear. It sets rows of w.W, rounded to BF16 as Packed would be.
func (b Mixed) PackRows(w kernels.Matrix, from int, rows kernels.Buffer) {
	b.Backend.PackRows(w, from, rows)
	if w.W.DType() != kernels.BF16 {
		return
	}
	for i, v := range kernels.Bits(w.W) {
		kernels.Bits(w.W)[i] = roundBits(math.Float32frombits(uint32(v) << 16))
	}
}

func (b Mixed) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	if !b.f.embed {
		b.Backend.Embed(out, w, ids, scale)
		return
	}
	y, W := floats[float32](out), weights[float32](w)
	for m, id := range ints(ids) {
		row := slices.Clone(embedding(W, id, w.In))
		roundAll(row)
		Embed(y[m*w.In:(m+1)*w.In], row, []int32{0}, w.In, scale)
	}
}

func (b Mixed) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	checkMatrix(w)
	M := rowCount(out, w.Out)
	y := wide(out)
	b.f.matMul(y, wide(x), weights[float32](w), floats[float32](bias), M, w.Out, w.In)
	store(out, y)
}

func (b Mixed) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	checkMatrix(w)
	M := rowCount(dx, w.In)
	y := wide(dx)
	b.f.matMulDX(y, wide(dout), weights[float32](w), M, w.Out, w.In)
	store(dx, y)
}

func (b Mixed) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	checkMatrix(w)
	checkGates(w)
	M := rowCount(act, w.Out/2)
	y := make([]float32, M*w.Out)
	b.f.matMul(y, wide(x), weights[float32](w), nil, M, w.Out, w.In)
	roundAll(y)
	if !gateUp.Empty() {
		store(gateUp, y)
	}
	a := wide(act)
	SwiGLU(a, y, w.Out/2)
	store(act, a)
}

func (b Mixed) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	checkMatrix(w)
	M := rowCount(dout, w.Out)
	d := make([]float32, M*w.In)
	b.f.matMulDX(d, wide(dout), weights[float32](w), M, w.Out, w.In)
	roundAll(d)
	y := wide(dgateUp)
	SwiGLUBackward(y, d, wide(gateUp), w.In)
	store(dgateUp, y)
}

func (b Mixed) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	bl := ints(blocks)
	M := int(bl[len(bl)-1])
	if M == 0 {
		return
	}
	b.f.matMulDW(floats[float32](dw), floats[float32](dbias), wide(dout), wide(x), bl, M, dout.Len()/M, x.Len()/M)
}

func (b Mixed) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	y := wide(out)
	RMSNorm(y, floats[float32](rstd), wide(x), floats[float32](weight), s, eps)
	store(out, y)
}

func (b Mixed) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	y := wide(out)
	AddRMSNorm(floats[float32](sum), y, floats[float32](rstd), floats[float32](x), floats[float32](delta),
		floats[float32](weight), s, eps)
	store(out, y)
}

func (b Mixed) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape,
	set bool) {
	y := wide(dx)
	RMSNormBackward(y, floats[float32](dweight), wide(dout), wide(x), floats[float32](weight), floats[float32](rstd),
		ints(blocks), s, set)
	store(dx, y)
}

func (b Mixed) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	y := wide(qkv)
	Rope(y, floats[float32](cos), floats[float32](sin), ints(pos), s, inverse)
	store(qkv, y)
}

func (b Mixed) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	y := wide(out)
	b.f.attention(y, floats[float32](stats), wide(qkv), ints(offsets), ints(groups), s)
	store(out, y)
}

func (b Mixed) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer,
	s kernels.AttentionShape) {
	y := wide(dqkv)
	b.f.attentionBackward(y, wide(dout), wide(out), floats[float32](stats), wide(qkv), ints(offsets), ints(groups), s)
	store(dqkv, y)
}

func (b Mixed) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	kv := wideKV(p)
	AppendKV(kv, wide(qkv), ints(slots), s)
	storeKV(p, kv)
}

func (b Mixed) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer,
	tableWidth int, s kernels.AttentionShape) {
	y := wide(out)
	b.f.pagedAttention(y, floats[float32](stats), wide(qkv), wideKV(p), ints(table), ints(seq), ints(pos),
		tableWidth, s)
	store(out, y)
}

func (b Mixed) Sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) {
	y := wide(out)
	Sink(y, wide(att), floats[float32](stats), floats[float32](sinks), s)
	store(out, y)
}

func (b Mixed) SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks kernels.Buffer, s kernels.AttentionShape) {
	y := wide(datt)
	SinkBackward(y, floats[float32](dsinks), wide(dout), wide(out), floats[float32](stats), floats[float32](sinks),
		ints(blocks), s)
	store(datt, y)
}

func (b Mixed) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	kv := wideKV(p)
	CopyPages(kv, ints(pairs), s)
	storeKV(p, kv)
}

func (b Mixed) GatherRows(out, x, rows kernels.Buffer, C int) {
	y := wide(out)
	GatherRows(y, wide(x), ints(rows), C)
	store(out, y)
}

func (b Mixed) SegmentMean(out, x, segments kernels.Buffer, C int) {
	SegmentMean(floats[float32](out), wide(x), ints(segments), C)
}

func (b Mixed) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer,
	x kernels.Softmax) {
	checkMatrix(w)
	logProbs(b.f.dots, floats[float32](out.LogProb), floats[float32](out.Entropy), floats[float32](out.LSE), wide(h),
		weights[float32](w), ints(targets), w.In, x)
}

func (b Mixed) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer,
	w kernels.Matrix, targets, blocks kernels.Buffer, t kernels.Softmax) {
	checkMatrix(w)
	x, W := wide(h), weights[float32](w)
	dz := logitGradients(b.f.dots, floats[float32](dLogProb), floats[float32](dEntropy), floats[float32](sc.Entropy),
		floats[float32](sc.LSE), x, W, ints(targets), w.In, t)
	R := dEntropy.Len()
	b.f.matMulDX(floats[float32](dh), dz, W, R, w.Out, w.In)
	if !dw.Empty() {
		b.f.matMulDW(floats[float32](dw), nil, dz, x, ints(blocks), R, w.Out, w.In)
	}
}

func (b Mixed) Logits(out, h kernels.Buffer, w kernels.Matrix, cap float64) {
	checkMatrix(w)
	allLogits(b.f.dots, floats[float32](out), wide(h), weights[float32](w), w.In, cap)
}

func (b Mixed) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer,
	p kernels.Sampling) {
	checkMatrix(w)
	samples(b.f.dots, ints(ids), floats[float32](out.LogProb), floats[float32](out.Entropy), floats[float32](out.LSE),
		wide(h), weights[float32](w), floats[float32](u), w.In, p)
}

func (b Mixed) TopTokens(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix,
	x kernels.Softmax) {
	checkMatrix(w)
	topTokens(b.f.dots, ints(ids), floats[float32](out.LogProb), floats[float32](out.Entropy),
		floats[float32](out.LSE), wide(h), weights[float32](w), w.In, x)
}

func (b Mixed) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	y := wide(act)
	Gate(y, wide(gateUp), F, kind)
	store(act, y)
}

func (b Mixed) GateBackward(dgateUp, gateUp, dact kernels.Buffer, F int, kind kernels.GateKind) {
	y := wide(dgateUp)
	GateBackward(y, wide(dact), wide(gateUp), F, kind)
	store(dgateUp, y)
}

func (b Mixed) XIELU(act, x kernels.Buffer, F int, a kernels.Xielu) {
	y := wide(act)
	XIELU(y, wide(x), F, a)
	store(act, y)
}

func (b Mixed) XIELUBackward(dx, dalpha, x, dact, blocks kernels.Buffer, F int, a kernels.Xielu) {
	y := wide(dx)
	XIELUBackward(y, floats[float32](dalpha), wide(x), wide(dact), ints(blocks), F, a)
	store(dx, y)
}

func (b Mixed) Clip(out, x kernels.Buffer, limit float64) {
	y := wide(out)
	Clip(y, wide(x), limit)
	store(out, y)
}

func (b Mixed) ClipBackward(dx, dout, x kernels.Buffer, limit float64) {
	y := wide(dx)
	ClipBackward(y, wide(dout), wide(x), limit)
	store(dx, y)
}

func (b Mixed) TakeColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	y := wide(dst)
	TakeColumns(y, wide(src), n, stride, offset, scale)
	store(dst, y)
}

func (b Mixed) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	y := wide(dst)
	AddColumns(y, wide(src), n, stride, offset, scale)
	store(dst, y)
}

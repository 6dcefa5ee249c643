package kerneltest

import (
	"unsafe"

	"exp/kernels"
)

// watched is a backend that calls after when an operation is done, with the buffers it
// wrote and the ones it only read. If an operation may work in place, the read buffers
// leave out the argument that it may overwrite.
type watched struct {
	kernels.Backend
	after func(op string, out, in []kernels.Buffer)
}

func bufs(b ...kernels.Buffer) []kernels.Buffer { return b }

func (t *watched) Copy(dst, src kernels.Buffer) {
	t.Backend.Copy(dst, src)
	if !dst.IsHost() && !src.IsHost() {
		t.after("Copy", bufs(dst), bufs(src))
	}
}

func (t *watched) Zero(b kernels.Buffer) {
	t.Backend.Zero(b)
	t.after("Zero", bufs(b), nil)
}

func (t *watched) Add(dst, src kernels.Buffer) {
	t.Backend.Add(dst, src)
	t.after("Add", bufs(dst), bufs(src))
}

func (t *watched) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	t.Backend.MatMul(out, x, w, bias)
	t.after("MatMul", bufs(out), bufs(x, w.W))
}

func (t *watched) MatMulDX(dx, dout kernels.Buffer, w kernels.Matrix) {
	t.Backend.MatMulDX(dx, dout, w)
	t.after("MatMulDX", bufs(dx), bufs(dout, w.W))
}

func (t *watched) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	t.Backend.MatMulDW(dw, dbias, dout, x, blocks)
	t.after("MatMulDW", bufs(dw, dbias), bufs(dout, x, blocks))
}

func (t *watched) Embed(out kernels.Buffer, w kernels.Matrix, ids kernels.Buffer, scale float64) {
	t.Backend.Embed(out, w, ids, scale)
	t.after("Embed", bufs(out), bufs(w.W, ids))
}

func (t *watched) EmbedBackward(dweight, dout, ids kernels.Buffer, C int, scale float64) {
	t.Backend.EmbedBackward(dweight, dout, ids, C, scale)
	t.after("EmbedBackward", bufs(dweight), bufs(dout, ids))
}

func (t *watched) RMSNorm(out, rstd, x, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	t.Backend.RMSNorm(out, rstd, x, weight, s, eps)
	t.after("RMSNorm", bufs(out, rstd), bufs(weight))
}

func (t *watched) AddRMSNorm(sum, out, rstd, x, delta, weight kernels.Buffer, s kernels.NormShape, eps float64) {
	t.Backend.AddRMSNorm(sum, out, rstd, x, delta, weight, s, eps)
	t.after("AddRMSNorm", bufs(sum, out, rstd), bufs(weight))
}

func (t *watched) RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks kernels.Buffer, s kernels.NormShape, set bool) {
	t.Backend.RMSNormBackward(dx, dweight, dout, x, weight, rstd, blocks, s, set)
	t.after("RMSNormBackward", bufs(dx, dweight), bufs(x, weight, rstd, blocks))
}

func (t *watched) LayerNorm(out, stats, x, weight, bias kernels.Buffer, C int, eps float64) {
	t.Backend.LayerNorm(out, stats, x, weight, bias, C, eps)
	t.after("LayerNorm", bufs(out, stats), bufs(x, weight, bias))
}

func (t *watched) LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks kernels.Buffer, C int) {
	t.Backend.LayerNormBackward(dx, dweight, dbias, dout, x, weight, stats, blocks, C)
	t.after("LayerNormBackward", bufs(dx, dweight, dbias), bufs(dout, x, weight, stats, blocks))
}

func (t *watched) GELU(out, x kernels.Buffer) {
	t.Backend.GELU(out, x)
	t.after("GELU", bufs(out), bufs(x))
}

func (t *watched) GELUBackward(dx, dout, x kernels.Buffer) {
	t.Backend.GELUBackward(dx, dout, x)
	t.after("GELUBackward", bufs(dx), bufs(x))
}

func (t *watched) MatMulSwiGLU(act, gateUp, x kernels.Buffer, w kernels.Matrix) {
	t.Backend.MatMulSwiGLU(act, gateUp, x, w)
	t.after("MatMulSwiGLU", bufs(act, gateUp), bufs(x, w.W))
}

func (t *watched) MatMulDXSwiGLU(dgateUp, gateUp, dout kernels.Buffer, w kernels.Matrix) {
	t.Backend.MatMulDXSwiGLU(dgateUp, gateUp, dout, w)
	t.after("MatMulDXSwiGLU", bufs(dgateUp), bufs(dout, w.W))
}

func (t *watched) Dropout(out, x, keys kernels.Buffer, C int, layer uint32, p float64) {
	t.Backend.Dropout(out, x, keys, C, layer, p)
	t.after("Dropout", bufs(out), bufs(keys))
}

func (t *watched) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	t.Backend.Rope(qkv, cos, sin, pos, s, inverse)
	t.after("Rope", bufs(qkv), bufs(cos, sin, pos))
}

func (t *watched) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.Attention(out, stats, qkv, offsets, groups, s)
	t.after("Attention", bufs(out, stats), bufs(qkv, offsets, groups))
}

func (t *watched) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, s)
	t.after("AttentionBackward", bufs(dqkv), bufs(dout, out, stats, qkv, offsets, groups))
}

func (t *watched) AppendKV(p kernels.Pages, qkv, slots kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.AppendKV(p, qkv, slots, s)
	t.after("AppendKV", bufs(p.Keys, p.Values), bufs(qkv, slots))
}

func (t *watched) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, tableWidth int, s kernels.AttentionShape) {
	t.Backend.PagedAttention(out, stats, qkv, p, table, seq, pos, tableWidth, s)
	t.after("PagedAttention", bufs(out, stats), bufs(qkv, p.Keys, p.Values, table, seq, pos))
}

func (t *watched) JoinLatent(qkv, q, kv, rope kernels.Buffer, s kernels.LatentShape) {
	t.Backend.JoinLatent(qkv, q, kv, rope, s)
	t.after("JoinLatent", bufs(qkv), bufs(q, kv, rope))
}

func (t *watched) SplitLatent(dq, dkv, drope, dqkv kernels.Buffer, s kernels.LatentShape) {
	t.Backend.SplitLatent(dq, dkv, drope, dqkv, s)
	t.after("SplitLatent", bufs(dq, dkv, drope), bufs(dqkv))
}

func (t *watched) TakeValues(out, att kernels.Buffer, s kernels.LatentShape) {
	t.Backend.TakeValues(out, att, s)
	t.after("TakeValues", bufs(out), bufs(att))
}

func (t *watched) PutValues(att, out kernels.Buffer, s kernels.LatentShape) {
	t.Backend.PutValues(att, out, s)
	t.after("PutValues", bufs(att), bufs(out))
}

func (t *watched) XIELU(act, x kernels.Buffer, F int, a kernels.Xielu) {
	t.Backend.XIELU(act, x, F, a)
	t.after("XIELU", bufs(act), bufs(x))
}

func (t *watched) XIELUBackward(dx, dalpha, x, dact, blocks kernels.Buffer, F int, a kernels.Xielu) {
	t.Backend.XIELUBackward(dx, dalpha, x, dact, blocks, F, a)
	t.after("XIELUBackward", bufs(dx, dalpha), bufs(x, dact, blocks))
}

func (t *watched) Clip(out, x kernels.Buffer, limit float64) {
	t.Backend.Clip(out, x, limit)
	t.after("Clip", bufs(out), bufs(x))
}

func (t *watched) ClipBackward(dx, dout, x kernels.Buffer, limit float64) {
	t.Backend.ClipBackward(dx, dout, x, limit)
	t.after("ClipBackward", bufs(dx), bufs(dout, x))
}

func (t *watched) Sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.Sink(out, att, stats, sinks, s)
	t.after("Sink", bufs(out), bufs(att, stats, sinks))
}

func (t *watched) SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks, s)
	t.after("SinkBackward", bufs(datt, dsinks), bufs(dout, out, stats, sinks, blocks))
}

func (t *watched) CopyPages(p kernels.Pages, pairs kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.CopyPages(p, pairs, s)
	t.after("CopyPages", bufs(p.Keys, p.Values), bufs(pairs))
}

func (t *watched) GatherRows(out, x, rows kernels.Buffer, C int) {
	t.Backend.GatherRows(out, x, rows, C)
	t.after("GatherRows", bufs(out), bufs(x, rows))
}

func (t *watched) ScatterRows(dx, dout, rows kernels.Buffer, C int) {
	t.Backend.ScatterRows(dx, dout, rows, C)
	t.after("ScatterRows", bufs(dx), bufs(dout, rows))
}

func (t *watched) SegmentMean(out, x, segments kernels.Buffer, C int) {
	t.Backend.SegmentMean(out, x, segments, C)
	t.after("SegmentMean", bufs(out), bufs(x, segments))
}

func (t *watched) SegmentMeanBackward(dx, dout, segments kernels.Buffer, C int) {
	t.Backend.SegmentMeanBackward(dx, dout, segments, C)
	t.after("SegmentMeanBackward", bufs(dx), bufs(dout, segments))
}

func (t *watched) LogProb(out kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer, x kernels.Softmax) {
	t.Backend.LogProb(out, h, w, targets, x)
	t.after("LogProb", bufs(out.LogProb, out.Entropy, out.LSE), bufs(h, w.W, targets))
}

func (t *watched) LogProbBackward(dh, dw, dLogProb, dEntropy kernels.Buffer, sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets, blocks kernels.Buffer, x kernels.Softmax) {
	t.Backend.LogProbBackward(dh, dw, dLogProb, dEntropy, sc, h, w, targets, blocks, x)
	t.after("LogProbBackward", bufs(dh, dw), bufs(dLogProb, dEntropy, sc.LogProb, sc.Entropy, sc.LSE, h, w.W, targets, blocks))
}

func (t *watched) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
	t.Backend.Sample(ids, out, h, w, u, p)
	t.after("Sample", bufs(ids, out.LogProb, out.Entropy, out.LSE), bufs(h, w.W, u))
}

func (t *watched) TopTokens(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax) {
	t.Backend.TopTokens(ids, out, h, w, x)
	t.after("TopTokens", bufs(ids, out.LogProb, out.Entropy, out.LSE), bufs(h, w.W))
}

func (t *watched) AdamW(p, m, v, g kernels.Buffer, a kernels.AdamW) {
	t.Backend.AdamW(p, m, v, g, a)
	t.after("AdamW", bufs(p, m, v), bufs(g))
}

func (t *watched) SumSquares(out, x kernels.Buffer) {
	t.Backend.SumSquares(out, x)
	t.after("SumSquares", bufs(out), bufs(x))
}

func (t *watched) Logits(out, h kernels.Buffer, w kernels.Matrix, cap float64) {
	t.Backend.Logits(out, h, w, cap)
	t.after("Logits", bufs(out), bufs(h, w.W))
}

// gateOf names the activations without another factor that came after the first apart.
func gateOf(op string, kind kernels.GateKind) string {
	if kind > kernels.ReLU2 {
		return op + " alone"
	}
	return op
}

func (t *watched) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	t.Backend.Gate(act, gateUp, F, kind)
	t.after(gateOf("Gate", kind), bufs(act), bufs(gateUp))
}

func (t *watched) GateBackward(dgateUp, gateUp, dact kernels.Buffer, F int, kind kernels.GateKind) {
	t.Backend.GateBackward(dgateUp, gateUp, dact, F, kind)
	t.after(gateOf("GateBackward", kind), bufs(dgateUp), bufs(dact))
}

func (t *watched) TakeColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	t.Backend.TakeColumns(dst, src, n, stride, offset, scale)
	t.after("TakeColumns", bufs(dst), bufs(src))
}

func (t *watched) AddColumns(dst, src kernels.Buffer, n, stride, offset int, scale float64) {
	t.Backend.AddColumns(dst, src, n, stride, offset, scale)
	t.after("AddColumns", bufs(dst), bufs(src))
}

func (t *watched) Route(choice, weight, probs, logits, bias kernels.Buffer, r kernels.Routing) {
	t.Backend.Route(choice, weight, probs, logits, bias, r)
	t.after("Route", bufs(choice, weight, probs), bufs(logits, bias))
}

func (t *watched) RouteBackward(dlogits, dweight, choice, weight, probs kernels.Buffer, r kernels.Routing) {
	t.Backend.RouteBackward(dlogits, dweight, choice, weight, probs, r)
	t.after("RouteBackward", bufs(dlogits), bufs(dweight, choice, weight, probs))
}

func (t *watched) Combine(out, x, slot, weight kernels.Buffer, C, J int) {
	t.Backend.Combine(out, x, slot, weight, C, J)
	t.after("Combine", bufs(out), bufs(x, slot, weight))
}

func (t *watched) CombineBackward(dx, dweight, dout, x, slot, weight kernels.Buffer, C, J int) {
	t.Backend.CombineBackward(dx, dweight, dout, x, slot, weight, C, J)
	t.after("CombineBackward", bufs(dx, dweight), bufs(dout, x, slot, weight))
}

func (t *watched) ShortConv(u, x, weight, bias, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	t.Backend.ShortConv(u, x, weight, bias, tails, r, s)
	t.after("ShortConv", bufs(u, tails), bufs(x, weight, bias, r.Offsets, r.Groups, r.Slots))
}

func (t *watched) ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	t.Backend.ShortConvBackward(dx, dweight, dbias, du, x, weight, bias, blocks, r, s)
	t.after("ShortConvBackward", bufs(dx, dweight, dbias), bufs(du, x, weight, bias, blocks, r.Offsets, r.Groups))
}

func (t *watched) GatedConv(u, x, weight, tails kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	t.Backend.GatedConv(u, x, weight, tails, r, s)
	t.after("GatedConv", bufs(u, tails), bufs(x, weight, r.Offsets, r.Groups, r.Slots))
}

func (t *watched) GatedConvBackward(dx, dweight, du, x, weight, blocks kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	t.Backend.GatedConvBackward(dx, dweight, du, x, weight, blocks, r, s)
	t.after("GatedConvBackward", bufs(dx, dweight), bufs(du, x, weight, blocks, r.Offsets, r.Groups))
}

func (t *watched) DeltaGates(gates, x, logs, bias, skip kernels.Buffer, s kernels.DeltaShape) {
	t.Backend.DeltaGates(gates, x, logs, bias, skip, s)
	t.after("DeltaGates", bufs(gates), bufs(x, logs, bias, skip))
}

func (t *watched) DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	t.Backend.DeltaGatesBackward(dx, dlogs, dbias, dskip, dgates, gates, x, logs, bias, blocks, s)
	t.after("DeltaGatesBackward", bufs(dx, dlogs, dbias, dskip), bufs(dgates, gates, x, logs, bias, blocks))
}

func (t *watched) DeltaRule(out, u, gates, states kernels.Buffer, r kernels.Runs, s kernels.DeltaShape) {
	t.Backend.DeltaRule(out, u, gates, states, r, s)
	t.after("DeltaRule", bufs(out, states), bufs(u, gates, r.Offsets, r.Groups, r.Slots))
}

func (t *watched) DeltaRuleBackward(du, dgates, dout, u, gates kernels.Buffer, r kernels.Runs,
	s kernels.DeltaShape) {
	t.Backend.DeltaRuleBackward(du, dgates, dout, u, gates, r, s)
	t.after("DeltaRuleBackward", bufs(du, dgates), bufs(dout, u, gates, r.Offsets, r.Groups))
}

func (t *watched) GatedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	t.Backend.GatedNorm(out, rstd, x, p, weight, s, eps)
	t.after("GatedNorm", bufs(out, rstd), bufs(x, p, weight))
}

func (t *watched) GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	t.Backend.GatedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks, s)
	t.after("GatedNormBackward", bufs(dx, dp, dweight), bufs(x, p, weight, rstd, blocks))
}

func (t *watched) GroupedNorm(out, rstd, x, p, weight kernels.Buffer, s kernels.DeltaShape, eps float64) {
	t.Backend.GroupedNorm(out, rstd, x, p, weight, s, eps)
	t.after("GroupedNorm", bufs(out, rstd), bufs(x, p, weight))
}

func (t *watched) GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks kernels.Buffer,
	s kernels.DeltaShape) {
	t.Backend.GroupedNormBackward(dx, dp, dweight, dout, x, p, weight, rstd, blocks, s)
	t.after("GroupedNormBackward", bufs(dx, dp, dweight), bufs(x, p, weight, rstd, blocks))
}

func (t *watched) CopyStates(x, pairs kernels.Buffer, n int) {
	t.Backend.CopyStates(x, pairs, n)
	t.after("CopyStates", bufs(x), bufs(pairs))
}

func (t *watched) SplitGates(qkv, x kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.SplitGates(qkv, x, s)
	t.after("SplitGates", bufs(qkv), bufs(x))
}

func (t *watched) JoinGates(dx, dqkv kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.JoinGates(dx, dqkv, s)
	t.after("JoinGates", bufs(dx), bufs(dqkv))
}

func (t *watched) OutputGate(out, att, x kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.OutputGate(out, att, x, s)
	t.after("OutputGate", bufs(out), bufs(x))
}

func (t *watched) OutputGateBackward(datt, dx, dout, att, x kernels.Buffer, s kernels.AttentionShape) {
	t.Backend.OutputGateBackward(datt, dx, dout, att, x, s)
	t.after("OutputGateBackward", bufs(datt, dx), bufs(att, x))
}

// flip changes the last bit of element i of b, which may lie outside of it.
func flip(b kernels.Buffer, i int) {
	if b.Empty() {
		return
	}
	*(*byte)(unsafe.Add(b.Addr(), i*b.DType().Size())) ^= 1
}

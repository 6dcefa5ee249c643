package cpu

import (
	"testing"

	"exp/kernels"
	"exp/kernels/kerneltest"
)

func BenchmarkCopy(b *testing.B)                { bench(b) }
func BenchmarkZero(b *testing.B)                { bench(b) }
func BenchmarkAdd(b *testing.B)                 { bench(b) }
func BenchmarkMatMul(b *testing.B)              { bench(b) }
func BenchmarkMatMulDX(b *testing.B)            { bench(b) }
func BenchmarkMatMulDW(b *testing.B)            { bench(b) }
func BenchmarkEmbed(b *testing.B)               { bench(b) }
func BenchmarkEmbedBackward(b *testing.B)       { bench(b) }
func BenchmarkRMSNorm(b *testing.B)             { bench(b) }
func BenchmarkAddRMSNorm(b *testing.B)          { bench(b) }
func BenchmarkRMSNormBackward(b *testing.B)     { bench(b) }
func BenchmarkLayerNorm(b *testing.B)           { bench(b) }
func BenchmarkLayerNormBackward(b *testing.B)   { bench(b) }
func BenchmarkGELU(b *testing.B)                { bench(b) }
func BenchmarkGELUBackward(b *testing.B)        { bench(b) }
func BenchmarkMatMulSwiGLU(b *testing.B)        { bench(b) }
func BenchmarkMatMulDXSwiGLU(b *testing.B)      { bench(b) }
func BenchmarkDropout(b *testing.B)             { bench(b) }
func BenchmarkRope(b *testing.B)                { bench(b) }
func BenchmarkAttention(b *testing.B)           { bench(b) }
func BenchmarkAttentionBackward(b *testing.B)   { bench(b) }
func BenchmarkAppendKV(b *testing.B)            { bench(b) }
func BenchmarkPagedAttention(b *testing.B)      { bench(b) }
func BenchmarkCopyPages(b *testing.B)           { bench(b) }
func BenchmarkXIELU(b *testing.B)               { bench(b) }
func BenchmarkXIELUBackward(b *testing.B)       { bench(b) }
func BenchmarkClip(b *testing.B)                { bench(b) }
func BenchmarkClipBackward(b *testing.B)        { bench(b) }
func BenchmarkSink(b *testing.B)                { bench(b) }
func BenchmarkSinkBackward(b *testing.B)        { bench(b) }
func BenchmarkGatherRows(b *testing.B)          { bench(b) }
func BenchmarkScatterRows(b *testing.B)         { bench(b) }
func BenchmarkSegmentMean(b *testing.B)         { bench(b) }
func BenchmarkSegmentMeanBackward(b *testing.B) { bench(b) }
func BenchmarkLogProb(b *testing.B)             { bench(b) }
func BenchmarkLogProbBackward(b *testing.B)     { bench(b) }
func BenchmarkSample(b *testing.B)              { bench(b) }
func BenchmarkShortConv(b *testing.B)           { bench(b) }
func BenchmarkShortConvBackward(b *testing.B)   { bench(b) }
func BenchmarkGatedConv(b *testing.B)           { bench(b) }
func BenchmarkGatedConvBackward(b *testing.B)   { bench(b) }
func BenchmarkDeltaGates(b *testing.B)          { bench(b) }
func BenchmarkDeltaGatesBackward(b *testing.B)  { bench(b) }
func BenchmarkDeltaRule(b *testing.B)           { bench(b) }
func BenchmarkDeltaRuleBackward(b *testing.B)   { bench(b) }
func BenchmarkGatedNorm(b *testing.B)           { bench(b) }
func BenchmarkGatedNormBackward(b *testing.B)   { bench(b) }
func BenchmarkCopyStates(b *testing.B)          { bench(b) }
func BenchmarkSplitGates(b *testing.B)          { bench(b) }
func BenchmarkJoinGates(b *testing.B)           { bench(b) }
func BenchmarkOutputGate(b *testing.B)          { bench(b) }
func BenchmarkOutputGateBackward(b *testing.B)  { bench(b) }
func BenchmarkAdamW(b *testing.B)               { bench(b) }
func BenchmarkSumSquares(b *testing.B)          { bench(b) }
func BenchmarkLogits(b *testing.B)              { bench(b) }
func BenchmarkGate(b *testing.B)                { bench(b) }
func BenchmarkGateBackward(b *testing.B)        { bench(b) }
func BenchmarkTakeColumns(b *testing.B)         { bench(b) }
func BenchmarkAddColumns(b *testing.B)          { bench(b) }
func BenchmarkRoute(b *testing.B)               { bench(b) }
func BenchmarkRouteBackward(b *testing.B)       { bench(b) }
func BenchmarkCombine(b *testing.B)             { bench(b) }
func BenchmarkCombineBackward(b *testing.B)     { bench(b) }

// bench measures the best level on all processors, in both numerics classes.
func bench(b *testing.B) {
	for _, operand := range []kernels.DType{kernels.F32, kernels.BF16} {
		be := openAs(b, Options{Operand: operand})
		kerneltest.Bench(b, func() kernels.Backend { return be })
	}
}

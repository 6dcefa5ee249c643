package ref_test

import (
	"testing"

	"exp/kernels"
	"exp/kernels/kerneltest"
	"exp/kernels/ref"
)

func open() kernels.Backend { return ref.New[float32]() }

func BenchmarkCopy(b *testing.B)                { kerneltest.Bench(b, open) }
func BenchmarkZero(b *testing.B)                { kerneltest.Bench(b, open) }
func BenchmarkAdd(b *testing.B)                 { kerneltest.Bench(b, open) }
func BenchmarkMatMul(b *testing.B)              { kerneltest.Bench(b, open) }
func BenchmarkMatMulDX(b *testing.B)            { kerneltest.Bench(b, open) }
func BenchmarkMatMulDW(b *testing.B)            { kerneltest.Bench(b, open) }
func BenchmarkEmbed(b *testing.B)               { kerneltest.Bench(b, open) }
func BenchmarkEmbedBackward(b *testing.B)       { kerneltest.Bench(b, open) }
func BenchmarkRMSNorm(b *testing.B)             { kerneltest.Bench(b, open) }
func BenchmarkAddRMSNorm(b *testing.B)          { kerneltest.Bench(b, open) }
func BenchmarkRMSNormBackward(b *testing.B)     { kerneltest.Bench(b, open) }
func BenchmarkLayerNorm(b *testing.B)           { kerneltest.Bench(b, open) }
func BenchmarkLayerNormBackward(b *testing.B)   { kerneltest.Bench(b, open) }
func BenchmarkGELU(b *testing.B)                { kerneltest.Bench(b, open) }
func BenchmarkGELUBackward(b *testing.B)        { kerneltest.Bench(b, open) }
func BenchmarkMatMulSwiGLU(b *testing.B)        { kerneltest.Bench(b, open) }
func BenchmarkMatMulDXSwiGLU(b *testing.B)      { kerneltest.Bench(b, open) }
func BenchmarkDropout(b *testing.B)             { kerneltest.Bench(b, open) }
func BenchmarkRope(b *testing.B)                { kerneltest.Bench(b, open) }
func BenchmarkAttention(b *testing.B)           { kerneltest.Bench(b, open) }
func BenchmarkAttentionBackward(b *testing.B)   { kerneltest.Bench(b, open) }
func BenchmarkAppendKV(b *testing.B)            { kerneltest.Bench(b, open) }
func BenchmarkPagedAttention(b *testing.B)      { kerneltest.Bench(b, open) }
func BenchmarkCopyPages(b *testing.B)           { kerneltest.Bench(b, open) }
func BenchmarkGatherRows(b *testing.B)          { kerneltest.Bench(b, open) }
func BenchmarkScatterRows(b *testing.B)         { kerneltest.Bench(b, open) }
func BenchmarkSegmentMean(b *testing.B)         { kerneltest.Bench(b, open) }
func BenchmarkSegmentMeanBackward(b *testing.B) { kerneltest.Bench(b, open) }
func BenchmarkLogProb(b *testing.B)             { kerneltest.Bench(b, open) }
func BenchmarkLogProbBackward(b *testing.B)     { kerneltest.Bench(b, open) }
func BenchmarkSample(b *testing.B)              { kerneltest.Bench(b, open) }
func BenchmarkAdamW(b *testing.B)               { kerneltest.Bench(b, open) }
func BenchmarkSumSquares(b *testing.B)          { kerneltest.Bench(b, open) }
func BenchmarkLogits(b *testing.B)              { kerneltest.Bench(b, open) }
func BenchmarkGate(b *testing.B)                { kerneltest.Bench(b, open) }
func BenchmarkGateBackward(b *testing.B)        { kerneltest.Bench(b, open) }
func BenchmarkTakeColumns(b *testing.B)         { kerneltest.Bench(b, open) }
func BenchmarkAddColumns(b *testing.B)          { kerneltest.Bench(b, open) }
func BenchmarkRoute(b *testing.B)               { kerneltest.Bench(b, open) }
func BenchmarkRouteBackward(b *testing.B)       { kerneltest.Bench(b, open) }
func BenchmarkCombine(b *testing.B)             { kerneltest.Bench(b, open) }
func BenchmarkCombineBackward(b *testing.B)     { kerneltest.Bench(b, open) }

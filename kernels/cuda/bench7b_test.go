//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"testing"

	"exp/kernels"
)

// The sizes of Qwen2.5-7B (its config.json), for Benchmark7BOperations.
const (
	width7B, hidden7B, vocab7B = 3584, 18944, 152064
	rows7B                     = 4096 // of a micro-batch
	decode7B                   = 256  // sequences of a sampling step
	taught7B                   = 64   // likeliest tokens of a teacher
)

var heads7B = kernels.AttentionShape{H: 28, K: 4, D: 128, Scale: 0x1p-4}

// Benchmark7BOperations measures a 7B model's operations other than plain products, on tensor cores: attention, norms,
// gates, the output layer, the update. It counts the bytes that must move, and the operations of the formulas.
func Benchmark7BOperations(b *testing.B) {
	be := openIn(b, "matrix/16x25")
	if _, fake := os.LookupEnv(fakeVariable); fake {
		b.Skip("takes a device's memory")
	}
	for _, list := range [][]operation{attention7B(), rows7BOperations(), output7B(), update7B()} {
		for _, op := range list {
			b.Run(op.name, func(b *testing.B) {
				run := op.prepare(b, be)
				run()
				be.Sync()
				const calls = 4
				for b.Loop() {
					for range calls {
						run()
					}
					be.Sync()
				}
				each := b.Elapsed().Seconds() / float64(calls*b.N)
				b.ReportMetric(each*1e9, "ns/call")
				if op.flops > 0 {
					b.ReportMetric(op.flops/each/1e9, "GFLOP/s")
				} else {
					b.ReportMetric(op.bytes/each/1e6, "MB/s")
				}
			})
		}
	}
}

// operation is one of them: of flops where arithmetic is the limit, else of bytes.
type operation struct {
	name         string
	flops, bytes float64
	prepare      func(b *testing.B, be *Backend) (run func())
}

// evenly returns n offsets that are step apart, from 0.
func evenly(n, step int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i * step)
	}
	return x
}

func attention7B() (list []operation) {
	s, stride := heads7B, heads7B.Stride()
	for _, T := range []int{512, 1024, 4096} {
		n := rows7B / T
		flops := float64(4*s.H*s.D) * float64(T) * float64(T+1) / 2 * float64(n)
		qkv := func(b *testing.B, be *Backend) (qkv, offsets kernels.Buffer) {
			return random(b, be, kernels.BF16, rows7B*stride), upload(b, be, kernels.I32, evenly(n+1, T))
		}
		list = append(list, operation{fmt.Sprintf("Attention/%dx%d", n, T), flops, 0, func(b *testing.B, be *Backend) func() {
			x, offsets := qkv(b, be)
			out, stats := random(b, be, kernels.BF16, rows7B*s.H*s.D), random(b, be, kernels.F32, 2*rows7B*s.H)
			return func() { be.Attention(out, stats, x, offsets, kernels.Buffer{}, s) }
		}}, operation{fmt.Sprintf("AttentionBackward/%dx%d", n, T), 2.5 * flops, 0, func(b *testing.B, be *Backend) func() {
			x, offsets := qkv(b, be)
			out, stats := random(b, be, kernels.BF16, rows7B*s.H*s.D), random(b, be, kernels.F32, 2*rows7B*s.H)
			be.Attention(out, stats, x, offsets, kernels.Buffer{}, s)
			dout, dqkv := random(b, be, kernels.BF16, rows7B*s.H*s.D), random(b, be, kernels.BF16, rows7B*stride)
			return func() { be.AttentionBackward(dqkv, dout, out, stats, x, offsets, kernels.Buffer{}, s) }
		}})
	}
	for _, T := range []int{512, 2048} {
		const size = 16
		pages := T / size
		bytes := float64(decode7B) * float64(T) * float64(2*s.K*s.D) * 2
		list = append(list, operation{fmt.Sprintf("PagedAttention/%dx%d", decode7B, T), 0, bytes, func(b *testing.B, be *Backend) func() {
			p := kernels.Pages{Keys: random(b, be, kernels.BF16, decode7B*T*s.K*s.D),
				Values: random(b, be, kernels.BF16, decode7B*T*s.K*s.D), Size: size}
			x, out := random(b, be, kernels.BF16, decode7B*stride), random(b, be, kernels.BF16, decode7B*s.H*s.D)
			table, seq := upload(b, be, kernels.I32, evenly(decode7B*pages, 1)), upload(b, be, kernels.I32, evenly(decode7B, 1))
			last := evenly(decode7B, 0)
			for i := range last {
				last[i] = int32(T - 1)
			}
			pos := upload(b, be, kernels.I32, last)
			return func() { be.PagedAttention(out, kernels.Buffer{}, x, p, table, seq, pos, pages, s) }
		}})
	}
	return list
}

func rows7BOperations() []operation {
	const M, C, F = rows7B, width7B, hidden7B
	shape := kernels.NormShape{Heads: 1, Dim: C, Stride: C}
	f32 := func(b *testing.B, be *Backend, n int) kernels.Buffer { return random(b, be, kernels.F32, n) }
	bf16 := func(b *testing.B, be *Backend, n int) kernels.Buffer { return random(b, be, kernels.BF16, n) }
	matrix := func(b *testing.B, be *Backend, out, in int) kernels.Matrix {
		return kernels.Matrix{W: kernels.Buffer{}, Packed: bf16(b, be, out*in), Out: out, In: in}
	}
	return []operation{
		{"AddRMSNorm", 0, M * C * (4 + 4 + 4 + 2), func(b *testing.B, be *Backend) func() {
			sum, out, rstd := f32(b, be, M*C), bf16(b, be, M*C), f32(b, be, M)
			x, delta, w := f32(b, be, M*C), f32(b, be, M*C), f32(b, be, C)
			return func() { be.AddRMSNorm(sum, out, rstd, x, delta, w, shape, 1e-6) }
		}},
		{"RMSNormBackward", 0, M * C * (4 + 4 + 4), func(b *testing.B, be *Backend) func() {
			dx, dw, dout, x := f32(b, be, M*C), f32(b, be, C), f32(b, be, M*C), f32(b, be, M*C)
			w, rstd, blocks := f32(b, be, C), f32(b, be, M), upload(b, be, kernels.I32, evenly(M/256+1, 256))
			return func() { be.RMSNormBackward(dx, dw, dout, x, w, rstd, blocks, shape, true) }
		}},
		{"Rope", 0, M * float64((heads7B.H+heads7B.K)*heads7B.D) * 4, func(b *testing.B, be *Backend) func() {
			x, cos, sin := bf16(b, be, M*heads7B.Stride()), f32(b, be, M*heads7B.D/2), f32(b, be, M*heads7B.D/2)
			pos := upload(b, be, kernels.I32, evenly(M, 1))
			return func() { be.Rope(x, cos, sin, pos, heads7B, false) }
		}},
		{"Add", 0, M * C * 12, func(b *testing.B, be *Backend) func() {
			x, y := f32(b, be, M*C), f32(b, be, M*C)
			return func() { be.Add(x, y) }
		}},
		{"MatMulSwiGLU", 2 * M * 2 * F * C, 0, func(b *testing.B, be *Backend) func() {
			act, gateUp, x, w := bf16(b, be, M*F), bf16(b, be, M*2*F), bf16(b, be, M*C), matrix(b, be, 2*F, C)
			return func() { be.MatMulSwiGLU(act, gateUp, x, w) }
		}},
		{"MatMulDXSwiGLU", 2 * M * F * C, 0, func(b *testing.B, be *Backend) func() {
			d, gateUp, dout, w := bf16(b, be, M*2*F), bf16(b, be, M*2*F), bf16(b, be, M*C), matrix(b, be, C, F)
			return func() { be.MatMulDXSwiGLU(d, gateUp, dout, w) }
		}},
	}
}

func output7B() (list []operation) {
	const C, V = width7B, vocab7B
	for _, R := range []int{decode7B, 1024} {
		setup := func(b *testing.B, be *Backend) (sc kernels.Scores, h kernels.Buffer, w kernels.Matrix, targets kernels.Buffer) {
			sc = kernels.Scores{LogProb: random(b, be, kernels.F32, R), Entropy: random(b, be, kernels.F32, R),
				LSE: random(b, be, kernels.F32, R)}
			return sc, random(b, be, kernels.BF16, R*C), kernels.Matrix{Packed: random(b, be, kernels.BF16, V*C), Out: V, In: C},
				upload(b, be, kernels.I32, evenly(R, 7))
		}
		flops := 2 * float64(R) * C * V
		list = append(list, operation{fmt.Sprintf("LogProb/R=%d", R), flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, targets := setup(b, be)
			return func() { be.LogProb(sc, h, w, targets, kernels.Softmax{Temperature: 1}) }
		}}, operation{fmt.Sprintf("Sample/R=%d", R), flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, ids := setup(b, be)
			u := random(b, be, kernels.F32, R)
			return func() { be.Sample(ids, sc, h, w, u, kernels.Sampling{Temperature: 1, TopP: 1}) }
		}}, operation{fmt.Sprintf("Sample/R=%d/TopP=0.95", R), flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, ids := setup(b, be)
			u := random(b, be, kernels.F32, R)
			return func() { be.Sample(ids, sc, h, w, u, kernels.Sampling{Temperature: 1, TopP: 0.95}) }
		}}, operation{fmt.Sprintf("LogProbBackward/R=%d", R), 3 * flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, targets := setup(b, be)
			be.LogProb(sc, h, w, targets, kernels.Softmax{Temperature: 1})
			dh, dw, d := random(b, be, kernels.F32, R*C), random(b, be, kernels.F32, V*C), random(b, be, kernels.F32, R)
			blocks := upload(b, be, kernels.I32, evenly(2, R))
			return func() {
				be.LogProbBackward(dh, dw, d, d, sc, h, w, targets, blocks, kernels.Softmax{Temperature: 1})
			}
		}}, operation{fmt.Sprintf("TopTokens/R=%d/K=%d", R, taught7B), flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, _ := setup(b, be)
			sc.LogProb = random(b, be, kernels.F32, R*taught7B)
			ids := upload(b, be, kernels.I32, evenly(R*taught7B, 7))
			return func() { be.TopTokens(ids, sc, h, w, kernels.Softmax{Temperature: 1}) }
		}}, operation{fmt.Sprintf("LogProb/R=%d/K=%d", R, 1+taught7B), flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, _ := setup(b, be)
			sc.LogProb = random(b, be, kernels.F32, R*(1+taught7B))
			targets := upload(b, be, kernels.I32, evenly(R*(1+taught7B), 2))
			return func() { be.LogProb(sc, h, w, targets, kernels.Softmax{Temperature: 1}) }
		}}, operation{fmt.Sprintf("LogProbBackward/R=%d/K=%d", R, 1+taught7B), 3 * flops, 0, func(b *testing.B, be *Backend) func() {
			sc, h, w, _ := setup(b, be)
			sc.LogProb = random(b, be, kernels.F32, R*(1+taught7B))
			targets := upload(b, be, kernels.I32, evenly(R*(1+taught7B), 2))
			be.LogProb(sc, h, w, targets, kernels.Softmax{Temperature: 1})
			dh, dw, d := random(b, be, kernels.F32, R*C), random(b, be, kernels.F32, V*C), random(b, be, kernels.F32, R)
			dlp, blocks := random(b, be, kernels.F32, R*(1+taught7B)), upload(b, be, kernels.I32, evenly(2, R))
			return func() {
				be.LogProbBackward(dh, dw, dlp, d, sc, h, w, targets, blocks, kernels.Softmax{Temperature: 1})
			}
		}})
	}
	return list
}

func update7B() []operation {
	const n = 1 << 27
	return []operation{
		{"AdamW", 0, 28 * n, func(b *testing.B, be *Backend) func() {
			p, m, v, g := random(b, be, kernels.F32, n), random(b, be, kernels.F32, n), random(b, be, kernels.F32, n), random(b, be, kernels.F32, n)
			be.Zero(v)
			return func() {
				be.AdamW(p, m, v, g, kernels.AdamW{LR: 1e-6, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01, GradScale: 1, Step: 10})
			}
		}},
		{"SumSquares", 0, 4 * n, func(b *testing.B, be *Backend) func() {
			out, x := random(b, be, kernels.F64, 1), random(b, be, kernels.F32, n)
			return func() { be.SumSquares(out, x) }
		}},
	}
}

package kerneltest

import (
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// TestFindsMutants runs single checks on backends with one plausible mistake
// each. Where exact is false the mistake must be found by a law alone, without
// comparing bits with the reference.
func TestFindsMutants(t *testing.T) {
	r := ref.New[float32]()
	f := kernels.Elems[float32]
	findsMutants(t, []slip{
		{"memory is not zeroed", "Alloc", true, dirtyAlloc{r}},
		{"products are rounded before the sum", "MatMul/shapes", true, mutant{Backend: r, matMul: func(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
			r.MatMul(out, x, w, bias)
			for i := range f(out) {
				m, n := i/w.Out, i%w.Out
				var acc float32
				if !bias.Empty() {
					acc = f(bias)[n]
				}
				for k := range w.In {
					acc += float32(f(x)[m*w.In+k] * f(w.W)[n*w.In+k])
				}
				f(out)[i] = acc
			}
		}}},
		{"a tile multiplies a neighbour's row by zero", "MatMul/rows", false, mutant{Backend: r, matMul: func(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
			r.MatMul(out, x, w, bias)
			M := out.Len() / w.Out
			for i := range f(out) {
				f(out)[i] += 0 * f(x)[(i/w.Out+1)%M*w.In]
			}
		}}},
		{"one row is computed in another order", "MatMul/rows", false, mutant{Backend: r, matMul: func(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
			r.MatMul(out, x, w, bias)
			if out.Len() == w.Out {
				for n := range f(out) {
					f(out)[n] = 0
					for k := w.In - 1; k >= 0; k-- {
						f(out)[n] = ref.FMA(f(x)[k], f(w.W)[n*w.In+k], f(out)[n])
					}
					f(out)[n] += f(bias)[n]
				}
			}
		}}},
		{"a gradient is one chain over blocks", "MatMulDW/blocks", false, mutant{Backend: r, matMulDW: func(dw, dbias, dout, x, blocks kernels.Buffer) {
			bl := kernels.Elems[int32](blocks)
			r.MatMulDW(dw, dbias, dout, x, kernels.Host([]int32{0, bl[len(bl)-1]}))
		}}},
		{"a scatter keeps old rows", "ScatterRows", true, mutant{Backend: r, scatter: func(dx, dout, rows kernels.Buffer, C int) {
			for i, m := range kernels.Elems[int32](rows) {
				copy(f(dx)[int(m)*C:][:C], f(dout)[i*C:])
			}
		}}},
		{"a branch does not see its prefix", "Attention/sequences", false, mutant{Backend: r, attention: func(out, stats, qkv, offsets, _ kernels.Buffer, s kernels.AttentionShape) {
			r.Attention(out, stats, qkv, offsets, kernels.Buffer{}, s)
		}}},
		{"a window is one too long", "Attention/sequences", false, mutant{Backend: r, attention: func(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			r.Attention(out, stats, qkv, offsets, groups, longer(s, 1))
		}}},
		{"a window is one too short", "Attention/shapes", true, mutant{Backend: r, attention: func(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			if s.Window > 1 {
				s.Window--
			}
			r.Attention(out, stats, qkv, offsets, groups, s)
		}}},
		{"a window of pages is one too long", "PagedAttention/prefill", false, mutant{Backend: r, paged: func(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, width int, s kernels.AttentionShape) {
			r.PagedAttention(out, stats, qkv, p, table, seq, pos, width, longer(s, 1))
		}}},
		{"pages before the window are read", "PagedAttention/window", false, mutant{Backend: r, paged: func(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, width int, s kernels.AttentionShape) {
			r.PagedAttention(out, stats, qkv, p, table, seq, pos, width, s)
			r.PagedAttention(kernels.Host(make([]float32, out.Len())), kernels.Buffer{}, qkv, p, table, seq, pos, width, longer(s, 1<<20))
		}}},
		{"the backward pass ignores windows", "AttentionBackward", false, mutant{Backend: r, back: func(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			r.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, longer(s, 1<<20))
		}}},
		{"the backward pass ignores caps", "AttentionBackward", true, mutant{Backend: r, back: func(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			s.Cap = 0
			r.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, s)
		}}},
		{"capped scores are not scaled", "Attention/shapes", true, mutant{Backend: r, attention: func(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			if s.Cap > 0 {
				s.Scale = 1
			}
			r.Attention(out, stats, qkv, offsets, groups, s)
		}}},
		{"full attention sees no row behind", "FullAttention/pages", false, mutant{Backend: r, attention: func(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			s.Full = false
			r.Attention(out, stats, qkv, offsets, groups, s)
		}}},
		{"full attention sees all sequences", "FullAttention/sequences", false, mutant{Backend: r, attention: func(out, stats, qkv, _, groups kernels.Buffer, s kernels.AttentionShape) {
			r.Attention(out, stats, qkv, kernels.Host([]int32{0, int32(qkv.Len() / s.Stride())}), groups, s)
		}}},
		{"the backward pass sees all sequences", "FullAttention/backward", false, mutant{Backend: r, back: func(dqkv, dout, out, stats, qkv, _, groups kernels.Buffer, s kernels.AttentionShape) {
			r.AttentionBackward(dqkv, dout, out, stats, qkv, kernels.Host([]int32{0, int32(qkv.Len() / s.Stride())}), groups, s)
		}}},
		{"the backward pass sees no row behind", "FullAttention/backward", true, mutant{Backend: r, back: func(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
			s.Full = false
			r.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, s)
		}}},
		{"no row sees a block", "AheadAttention/prefill", false,
			mutant{Backend: r, attention: func(out, stats, qkv, offsets, groups kernels.Buffer,
				s kernels.AttentionShape) {
				s.Ahead = kernels.Buffer{}
				r.Attention(out, stats, qkv, offsets, groups, s)
			}}},
		{"no row in pages sees a block", "AheadAttention/prefill", false,
			mutant{Backend: r, paged: func(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq,
				pos kernels.Buffer, width int, s kernels.AttentionShape) {
				s.Ahead = kernels.Buffer{}
				r.PagedAttention(out, stats, qkv, p, table, seq, pos, width, s)
			}}},
		{"a block moves windows in pages", "AheadAttention/rows", true,
			mutant{Backend: r, paged: func(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq,
				pos kernels.Buffer, width int, s kernels.AttentionShape) {
				ends := append([]int32(nil), kernels.Elems[int32](pos)...)
				if !s.Ahead.Empty() {
					for i, n := range kernels.Elems[int32](s.Ahead) {
						ends[i] += n
					}
				}
				s.Ahead = kernels.Buffer{}
				r.PagedAttention(out, stats, qkv, p, table, seq, kernels.Host(ends), width, s)
			}}},
		{"no row sees a block in the backward pass", "AheadAttention/backward", true,
			mutant{Backend: r, back: func(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer,
				s kernels.AttentionShape) {
				s.Ahead = kernels.Buffer{}
				r.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, s)
			}}},
		{"blocks see whole sequences", "AheadAttention/sequences", false,
			mutant{Backend: r, attention: func(out, stats, qkv, offsets, groups kernels.Buffer,
				s kernels.AttentionShape) {
				s.Full, s.Ahead = s.Window == 0 && groups.Empty() && !s.Ahead.Empty(), kernels.Buffer{}
				r.Attention(out, stats, qkv, offsets, groups, s)
			}}},
		{"a part that turns is paired across the head", "Rope", true, mutant{Backend: r, rope: func(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
			old := append([]float32(nil), f(qkv)...)
			r.Rope(qkv, cos, sin, pos, s, inverse)
			if half := s.Rotated() / 2; half < s.D/2 {
				for i := 0; i < len(old); i += s.D { // as if the second half of a head were first
					copy(f(qkv)[i+half:i+2*half], old[i+s.D/2:])
				}
			}
		}}},
		{"neighbours are paired as halves", "Rope", true, mutant{Backend: r, rope: func(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
			s.Interleaved = false
			r.Rope(qkv, cos, sin, pos, s, inverse)
		}}},
		{"positions past the last are read", "PagedAttention/prefill", false, mutant{Backend: r, paged: func(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, width int, s kernels.AttentionShape) {
			r.PagedAttention(out, stats, qkv, p, table, seq, pos, width, s)
			for m, at := range kernels.Elems[int32](pos) {
				if next := int(at) + 1; next%p.Size != 0 {
					page := int(kernels.Elems[int32](table)[int(kernels.Elems[int32](seq)[m])*width+next/p.Size])
					f(out)[m*s.H*s.D] += 0 * f(p.Keys)[page*s.K*s.D*p.Size+next%p.Size]
				}
			}
		}}},
		{"a sink's share ignores the sum", "Sink", true, strayed{r, func(stats kernels.Buffer) kernels.Buffer {
			for i := 1; i < stats.Len(); i += 2 {
				f(stats)[i] = 1
			}
			return stats
		}}},
		{"a sink's share ignores the largest score", "SinkBackward", true, strayed{r, func(stats kernels.Buffer) kernels.Buffer {
			for i := 0; i < stats.Len(); i += 2 {
				f(stats)[i] = 0
			}
			return stats
		}}},
		{"the clamped gate is not", "Gate", true, unclamped{r}},
		{"draws ignore the temperature", "Sample/distribution", false, mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
			if p.Temperature > 0 {
				p.Temperature = 1
			}
			r.Sample(ids, out, h, w, u, p)
		}}},
		{"only the first token of a row is adjusted", "Sample/adjusted/rows", false, mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
			if a := p.Adjust.IDs; !a.Empty() {
				K := a.PerRow(ids.Len())
				for i := range kernels.Elems[int32](a) {
					if i%K > 0 {
						kernels.Elems[int32](a)[i] = -1
					}
				}
			}
			r.Sample(ids, out, h, w, u, p)
		}}},
		{"penalties are added", "Sample/adjusted/distribution", false, mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
			for i := range f(p.Adjust.After) {
				f(p.Adjust.After)[i] *= -1
			}
			r.Sample(ids, out, h, w, u, p)
		}}},
		{"the score comes from the adjusted softmax", "Sample/adjusted/scores", false, mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
			r.Sample(ids, out, h, w, u, p)
			if !p.Adjust.IDs.Empty() {
				f(out.LSE)[0] += 0.1
			}
		}}},
		{"the last word of a mask is not read", "Sample/masked/tokens", false,
			mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer,
				w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
				if W := kernels.MaskWords(w.Out); !p.Mask.Empty() {
					words := kernels.Elems[int32](p.Mask)
					for i := W - 1; i < len(words); i += W {
						words[i] = -1
					}
				}
				r.Sample(ids, out, h, w, u, p)
			}}},
		{"the score comes from the masked softmax", "Sample/masked/rows", false,
			mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer,
				w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
				r.Sample(ids, out, h, w, u, p)
				if !p.Mask.Empty() {
					f(out.LSE)[0] -= 0.1
				}
			}}},
		{"one token too many is kept", "Sample/ties", false, mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
			if p.TopK > 0 {
				p.TopK++
			}
			r.Sample(ids, out, h, w, u, p)
		}}},
		{"equal logits are not by id", "TopTokens", true, mutant{Backend: r, top: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax) {
			r.TopTokens(ids, out, h, w, x)
			if id := kernels.Elems[int32](ids); len(id) > 1 && f(out.LogProb)[0] == f(out.LogProb)[1] {
				id[0], id[1] = id[1], id[0]
			}
		}}},
		{"only one target has a gradient", "LogProbBackward", false, firstTarget{r}},
		{"the score comes from the restricted softmax", "Sample/scores", false, mutant{Backend: r, sample: func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
			r.Sample(ids, out, h, w, u, p)
			for i := range f(out.LogProb) {
				if p.TopK > 0 {
					f(out.LogProb)[i] += 0.1
				}
			}
		}}},
	})
}

// slip is a backend with a mistake that a check must notice.
type slip struct {
	name  string
	check string
	exact bool
	b     kernels.Backend
}

// findsMutants runs the checks on the mistakes, and each once on the reference, which must pass.
func findsMutants(t *testing.T, list []slip) {
	passed := map[slip]bool{}
	for _, tt := range list {
		t.Run(tt.name, func(t *testing.T) {
			if found := finds(tt.b, tt.check, tt.exact); found == "" {
				t.Errorf("%s does not notice it", tt.check)
			}
			if right := (slip{check: tt.check, exact: tt.exact}); !passed[right] {
				if found := finds(ref.New[float32](), tt.check, tt.exact); found != "" {
					t.Errorf("%s fails without the mistake: %s", tt.check, found)
				}
				passed[right] = true
			}
		})
	}
}

// strayed is a backend whose sinks read other stats.
type strayed struct {
	kernels.Backend
	other func(stats kernels.Buffer) kernels.Buffer
}

func (b strayed) Sink(out, att, stats, sinks kernels.Buffer, s kernels.AttentionShape) {
	b.Backend.Sink(out, att, b.other(copied(b, stats)), sinks, s)
}

func (b strayed) SinkBackward(datt, dsinks, dout, out, stats, sinks, blocks kernels.Buffer, s kernels.AttentionShape) {
	b.Backend.SinkBackward(datt, dsinks, dout, out, b.other(copied(b, stats)), sinks, blocks, s)
}

// unclamped takes SiLU for Clamped.
type unclamped struct{ kernels.Backend }

func (b unclamped) Gate(act, gateUp kernels.Buffer, F int, kind kernels.GateKind) {
	if kind == kernels.Clamped {
		kind = kernels.SiLU
	}
	b.Backend.Gate(act, gateUp, F, kind)
}

// longer returns s with a window, if it has one, that is longer by n.
func longer(s kernels.AttentionShape, n int) kernels.AttentionShape {
	if s.Window > 0 {
		s.Window += n
	}
	return s
}

// mutant is a backend with some operations replaced.
type mutant struct {
	kernels.Backend
	matMul    func(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer)
	attention func(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape)
	back      func(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape)
	rope      func(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool)
	matMulDW  func(dw, dbias, dout, x, blocks kernels.Buffer)
	scatter   func(dx, dout, rows kernels.Buffer, C int)
	paged     func(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, tableWidth int, s kernels.AttentionShape)
	sample    func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling)
	top       func(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax)
}

func (t mutant) TopTokens(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, x kernels.Softmax) {
	if t.top == nil {
		t.Backend.TopTokens(ids, out, h, w, x)
		return
	}
	t.top(ids, out, h, w, x)
}

func (t mutant) MatMul(out, x kernels.Buffer, w kernels.Matrix, bias kernels.Buffer) {
	if t.matMul == nil {
		t.Backend.MatMul(out, x, w, bias)
		return
	}
	t.matMul(out, x, w, bias)
}

func (t mutant) MatMulDW(dw, dbias, dout, x, blocks kernels.Buffer) {
	if t.matMulDW == nil {
		t.Backend.MatMulDW(dw, dbias, dout, x, blocks)
		return
	}
	t.matMulDW(dw, dbias, dout, x, blocks)
}

func (t mutant) ScatterRows(dx, dout, rows kernels.Buffer, C int) {
	if t.scatter == nil {
		t.Backend.ScatterRows(dx, dout, rows, C)
		return
	}
	t.scatter(dx, dout, rows, C)
}

func (t mutant) Attention(out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	if t.attention == nil {
		t.Backend.Attention(out, stats, qkv, offsets, groups, s)
		return
	}
	t.attention(out, stats, qkv, offsets, groups, s)
}

func (t mutant) AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups kernels.Buffer, s kernels.AttentionShape) {
	if t.back == nil {
		t.Backend.AttentionBackward(dqkv, dout, out, stats, qkv, offsets, groups, s)
		return
	}
	t.back(dqkv, dout, out, stats, qkv, offsets, groups, s)
}

func (t mutant) Rope(qkv, cos, sin, pos kernels.Buffer, s kernels.AttentionShape, inverse bool) {
	if t.rope == nil {
		t.Backend.Rope(qkv, cos, sin, pos, s, inverse)
		return
	}
	t.rope(qkv, cos, sin, pos, s, inverse)
}

func (t mutant) PagedAttention(out, stats, qkv kernels.Buffer, p kernels.Pages, table, seq, pos kernels.Buffer, tableWidth int, s kernels.AttentionShape) {
	if t.paged == nil {
		t.Backend.PagedAttention(out, stats, qkv, p, table, seq, pos, tableWidth, s)
		return
	}
	t.paged(out, stats, qkv, p, table, seq, pos, tableWidth, s)
}

func (t mutant) Sample(ids kernels.Buffer, out kernels.Scores, h kernels.Buffer, w kernels.Matrix, u kernels.Buffer, p kernels.Sampling) {
	if t.sample == nil {
		t.Backend.Sample(ids, out, h, w, u, p)
		return
	}
	t.sample(ids, out, h, w, u, p)
}

// dirtyAlloc gives memory that holds something.
type dirtyAlloc struct{ kernels.Backend }

func (d dirtyAlloc) Alloc(t kernels.DType, n int) (kernels.Buffer, error) {
	b, err := d.Backend.Alloc(t, n)
	if err == nil && n > 0 {
		flip(b, n-1)
	}
	return b, err
}

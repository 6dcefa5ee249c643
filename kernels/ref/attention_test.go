package ref

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
)

func TestAttentionKnown(t *testing.T) {
	// Two query heads share one key/value head, D = 1, Scale 2; a row is
	// [q0 q1 k v]. Two sequences: rows 0-1 and row 2.
	const ln3 = 1.0986122886681098
	s := kernels.AttentionShape{H: 2, K: 1, D: 1, Scale: 2}
	qkv := []float64{
		1, 2, 5, 10,
		1, 0, 5 - ln3/2, 20,
		1, 1, 7, 30,
	}
	out, stats := make([]float64, 6), make([]float64, 12)
	Attention(out, stats, qkv, []int32{0, 2, 3}, nil, s)
	// Row 0 sees itself: out = 10; m = 2·q·5 = 10 and 20; l = 1.
	// Row 1, head 0: z = [10, 10-ln3], e = [1, 1/3], l = 4/3:
	// out = (10 + 20/3)·3/4 = 12.5. Head 1: z = [0,0], l = 2, out = 15.
	// Row 2 is alone: 30, m = 14.
	wantNear(t, "out", out, []float64{10, 10, 12.5, 15, 30, 30}, 1e-13)
	wantNear(t, "stats", stats, []float64{10, 1, 20, 1, 10, 0.75, 0, 0.5, 14, 1, 14, 1}, 1e-13)

	// dout = 1 for row 1 head 0 only. delta = 12.5; p = [¾ ¼]; dp = [10 20];
	// dz = p·(dp-12.5)·2 = [-3.75 3.75];
	// dq = -3.75·5 + 3.75·(5-ln3/2) = -3.75·ln3/2; dk = dz·q; dv = p.
	dout := []float64{0, 0, 1, 0, 0, 0}
	dqkv := make([]float64, 12)
	AttentionBackward(dqkv, dout, out, stats, qkv, []int32{0, 2, 3}, nil, s)
	want := []float64{
		0, 0, -3.75, 0.75,
		-3.75 * ln3 / 2, 0, 3.75, 0.25,
		0, 0, 0, 0,
	}
	wantNear(t, "dqkv", dqkv, want, 1e-12)
}

func TestAttentionWindowKnown(t *testing.T) {
	// One head, D = 1; a row is [q k v] and sees itself and the row before.
	const ln3 = 1.0986122886681098
	s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 1, Window: 2}
	qkv := []float64{
		1, 0, 3,
		1, ln3, 7,
		1, 0, 11,
	}
	out, stats := zeros(3), zeros(6)
	Attention(out, stats, qkv, []int32{0, 3}, nil, s)
	// Row 1: e = [1/3 1], l = 4/3, out = (3/3 + 7)·3/4 = 6. Row 2 sees rows 1 and 2:
	// e = [1 1/3], out = (7 + 11/3)·3/4 = 8.
	wantNear(t, "out", out, []float64{3, 6, 8}, 1e-14)
	wantNear(t, "stats", stats, []float64{0, 1, ln3, 0.75, ln3, 0.75}, 1e-14)
	// dout = 1 for row 2: p = [3/4 1/4], dp = [7 11], delta = 8, dz = [-3/4 3/4].
	dqkv := zeros(9)
	AttentionBackward(dqkv, []float64{0, 0, 1}, out, stats, qkv, []int32{0, 3}, nil, s)
	wantNear(t, "dqkv", dqkv, []float64{0, 0, 0, 0, -0.75, 0.75, -0.75 * ln3, 0.75, 0.25}, 1e-14)
	// A branch counts its prefix: row 2 is the third of its sequence.
	branch := zeros(3)
	Attention(branch, stats, qkv, []int32{0, 2, 3}, []int32{0, 2}, s)
	wantNear(t, "out of a branch", branch, out, 0)
}

func TestAttentionFullKnown(t *testing.T) {
	// One head, D = 1, Scale 2; a row is [q k v]. Two sequences: rows 0-1 and row 2.
	const ln3 = 1.0986122886681098
	s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 2, Full: true}
	qkv := []float64{
		1, 5, 10,
		0, 5 - ln3/2, 20,
		1, 7, 30,
	}
	out, stats := zeros(3), zeros(6)
	Attention(out, stats, qkv, []int32{0, 2, 3}, nil, s)
	// Row 0 sees row 1 too: z = [10, 10-ln3], e = [1, 1/3], l = 4/3: out = (10 + 20/3)·3/4 = 12.5. Row 1: z = [0,0],
	// l = 2, out = 15. Row 2 is alone.
	wantNear(t, "out", out, []float64{12.5, 15, 30}, 1e-13)
	wantNear(t, "stats", stats, []float64{10, 0.75, 0, 0.5, 14, 1}, 1e-13)
	// dout = 1 for rows 0 and 1. Row 0: p = [3/4 1/4], delta = 12.5, dz = p·([10 20]-12.5)·2 = [-3.75 3.75],
	// dq = -3.75·5 + 3.75·(5-ln3/2). Row 1: p = [1/2 1/2], delta = 15, dz = [-5 5], dq = -5·5 + 5·(5-ln3/2).
	// dk = -3.75·1 - 5·0 and 3.75·1 + 5·0; dv = 3/4 + 1/2 and 1/4 + 1/2.
	dqkv := zeros(9)
	AttentionBackward(dqkv, []float64{1, 1, 0}, out, stats, qkv, []int32{0, 2, 3}, nil, s)
	want := []float64{
		-3.75 * ln3 / 2, -3.75, 1.25,
		-5 * ln3 / 2, 3.75, 0.75,
		0, 0, 0,
	}
	wantNear(t, "dqkv", dqkv, want, 1e-12)
}

// Sums of products with 8 bits give what the others do where rows see those behind them, but for rounding.
func TestAttentionFullRounded(t *testing.T) {
	s := kernels.AttentionShape{H: 2, K: 1, D: 4, Scale: 0.5, Full: true}
	r, offsets := source(3), []int32{0, 5, 9}
	qkv, dout := float32s(r, 9*s.Stride()), float32s(r, 9*s.H*s.D)
	out, stats, want := make([]float32, len(dout)), make([]float32, 2*9*s.H), make([]float32, len(qkv))
	Attention(out, stats, qkv, offsets, nil, s)
	AttentionBackward(want, dout, out, stats, qkv, offsets, nil, s)
	for name, f := range map[string]factors{"tile sums": NewMixed().f, "matrix sums": NewMatrix().f} {
		gotOut, got := make([]float32, len(out)), make([]float32, len(qkv))
		f.attention(gotOut, stats, qkv, offsets, nil, s)
		f.attentionBackward(got, dout, gotOut, stats, qkv, offsets, nil, s)
		for i := range got {
			if d := got[i] - want[i]; !(d < 0.05 && d > -0.05) {
				t.Errorf("%s: gradient %d is %v, want about %v", name, i, got[i], want[i])
			}
		}
		for i := range out {
			if d := gotOut[i] - out[i]; !(d < 0.05 && d > -0.05) {
				t.Errorf("%s: out %d is %v, want about %v", name, i, gotOut[i], out[i])
			}
		}
	}
}

func TestAttentionCapKnown(t *testing.T) {
	// One head, D = 1. With cap 2·ln 3 the score (ln 3)² has Tanh(ln 3 / 2) = 1/2 and
	// becomes ln 3.
	const ln3 = 1.0986122886681098
	s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 1, Cap: 2 * ln3}
	qkv := []float64{
		1, 0, 3,
		1, ln3 * ln3, 7,
	}
	out, stats := zeros(2), zeros(4)
	Attention(out, stats, qkv, []int32{0, 2}, nil, s)
	wantNear(t, "out", out, []float64{3, 6}, 1e-14) // as row 1 of the window's
	wantNear(t, "stats", stats, []float64{0, 1, ln3, 0.75}, 1e-14)
	// dout = 1 for row 1: p = [1/4 3/4], dp = [3 7], delta = 6, dz = [-3/4 3/4·(1 - 1/4)].
	dqkv := zeros(6)
	AttentionBackward(dqkv, []float64{0, 1}, out, stats, qkv, []int32{0, 2}, nil, s)
	wantNear(t, "dqkv", dqkv, []float64{0, -0.75, 0.25, 0.5625 * ln3 * ln3, 0.5625, 0.75}, 1e-14)
	// The capped score of a tiny negative one is -0; as the largest it is +0.
	one := []float32{-1e-20, 1, 5}
	o, st := make([]float32, 1), make([]float32, 2)
	Attention(o, st, one, []int32{0, 1}, nil, s)
	if o[0] != 5 || math.Float32bits(st[0]) != 0 {
		t.Errorf("a tiny score: out %v, largest %v, want 5, +0", o[0], st[0])
	}
}

// A window that reaches the first row of every sequence changes no bit, in any class.
func TestAttentionWideWindow(t *testing.T) {
	offsets, groups := []int32{0, 3, 40, 40, 59}, []int32{0, 3, 4}
	all := kernels.AttentionShape{H: 4, K: 2, D: 5, Scale: 0.4, Cap: 3}
	M, r := 59, source(3)
	qkv, dout := float32s(r, M*all.Stride()), float32s(r, M*all.H*all.D)
	for name, both := range map[string]struct {
		forward  func(out, stats, qkv []float32, offsets, groups []int32, s kernels.AttentionShape)
		backward func(dqkv, dout, out, stats, qkv []float32, offsets, groups []int32, s kernels.AttentionShape)
	}{"chains": {Attention[float32], AttentionBackward[float32]}, "tile sums": {NewMixed().f.attention, NewMixed().f.attentionBackward},
		"matrix sums": {NewMatrix().f.attention, NewMatrix().f.attentionBackward}} {
		attend := func(window int) (out, stats, dqkv []float32) {
			s := all
			s.Window = window
			out, stats, dqkv = make([]float32, len(dout)), make([]float32, 2*M*s.H), make([]float32, len(qkv))
			both.forward(out, stats, qkv, offsets, groups, s)
			both.backward(dqkv, dout, out, stats, qkv, offsets, groups, s)
			return out, stats, dqkv
		}
		out, stats, dqkv := attend(0)
		for _, window := range []int{40, 41, 1 << 40} {
			o, st, d := attend(window)
			wantExact(t, name+": out", o, out)
			wantExact(t, name+": stats", st, stats)
			wantExact(t, name+": dqkv", d, dqkv)
		}
		if o, _, _ := attend(39); slices.Equal(o, out) {
			t.Errorf("%s: a window of 39 hides nothing from a row at position 39", name)
		}
	}
}

func float32s(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestAttentionGradient(t *testing.T) {
	tests := []struct {
		name    string
		s       kernels.AttentionShape
		offsets []int32
		groups  []int32
	}{
		{"one head", kernels.AttentionShape{H: 1, K: 1, D: 3}, []int32{0, 5}, nil},
		{"shared key heads, packed", kernels.AttentionShape{H: 4, K: 2, D: 4}, []int32{0, 1, 7, 7, 10}, nil},
		{"one key head, past a lane", kernels.AttentionShape{H: 3, K: 1, D: 2}, []int32{0, 18, 20}, nil},
		{"window", kernels.AttentionShape{H: 2, K: 1, D: 3, Window: 4}, []int32{0, 9, 11}, nil},
		{"cap", kernels.AttentionShape{H: 2, K: 2, D: 3, Cap: 1.5}, []int32{0, 6}, nil},
		{"window, cap and prefixes", kernels.AttentionShape{H: 4, K: 2, D: 3, Window: 3, Cap: 2}, []int32{0, 3, 5, 5, 9, 10, 12, 12}, []int32{0, 4, 5, 7}},
		{"prefixes", kernels.AttentionShape{H: 4, K: 2, D: 3}, []int32{0, 3, 5, 5, 9, 10, 12, 12}, []int32{0, 4, 5, 7}},
		{"full", kernels.AttentionShape{H: 4, K: 2, D: 3, Full: true}, []int32{0, 1, 6, 6, 9}, nil},
		{"full with a cap", kernels.AttentionShape{H: 2, K: 2, D: 3, Full: true, Cap: 1.5}, []int32{0, 6}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, r := tt.s, source(9)
			s.Scale = 1 / math.Sqrt(float64(s.D))
			M := int(tt.offsets[len(tt.offsets)-1])
			qkv, c := normal(r, M*s.Stride()), normal(r, M*s.H*s.D)
			out, stats := zeros(M*s.H*s.D), zeros(M*s.H*2)
			loss := func() float64 {
				Attention(out, stats, qkv, tt.offsets, tt.groups, s)
				return project(out, c)
			}
			loss()
			dqkv := normal(r, M*s.Stride()) // overwritten
			AttentionBackward(dqkv, c, out, stats, qkv, tt.offsets, tt.groups, s)
			checkGradient(t, loss, limit, argument{"qkv", qkv, dqkv})
		})
	}
}

// A sequence with a prefix computes the same as one with the prefix's rows before its
// own, and its gradients reach the prefix.
func TestAttentionPrefix(t *testing.T) {
	s := kernels.AttentionShape{H: 2, K: 1, D: 2, Scale: 0.7}
	stride, r := s.Stride(), source(4)
	qkv, c := normal(r, 6*stride), normal(r, 6*s.H*s.D) // prefix: rows 0-1; branches: 2 and 3-5
	attend := func(rows []int, offsets, groups []int32, c []float64) (out, dqkv []float64) {
		x, stats := zeros(0), zeros(len(rows)*s.H*2)
		for _, m := range rows {
			x = append(x, qkv[m*stride:(m+1)*stride]...)
		}
		out, dqkv = zeros(len(rows)*s.H*s.D), zeros(len(x))
		Attention(out, stats, x, offsets, groups, s)
		AttentionBackward(dqkv, c, out, stats, x, offsets, groups, s)
		return out, dqkv
	}
	out, dqkv := attend([]int{0, 1, 2, 3, 4, 5}, []int32{0, 2, 3, 6}, []int32{0, 3}, c)
	w := s.H * s.D
	c2 := append(zeros(2*w), c[3*w:]...)
	out1, d1 := attend([]int{0, 1, 2}, []int32{0, 3}, nil, c[:3*w])
	out2, d2 := attend([]int{0, 1, 3, 4, 5}, []int32{0, 5}, nil, c2)
	wantNear(t, "out", out, append(out1, out2[2*w:]...), 0)
	want := append(append([]float64(nil), d1...), d2[2*stride:]...)
	for i := range 2 * stride {
		want[i] += d2[i]
	}
	wantNear(t, "dqkv", dqkv, want, 1e-13)
}

func TestAttentionPanics(t *testing.T) {
	s := kernels.AttentionShape{H: 2, K: 1, D: 2, Scale: 1}
	x := zeros(24)
	wantPanic(t, "ref: groups do not cover the sequences", func() { Attention(x[:12], x[:12], x, []int32{0, 2, 3}, []int32{0, 1}, s) })
	wantPanic(t, "ref: groups are not in order", func() { Attention(x[:12], x[:12], x, []int32{0, 2, 3}, []int32{0, 2, 1, 2}, s) })
	wantPanic(t, "ref: sequences do not cover the rows", func() { Attention(x[:12], x[:12], x, []int32{0, 2}, nil, s) })
	wantPanic(t, "ref: sequences are not in order", func() { Attention(x[:12], x[:12], x, []int32{0, 2, 1, 3}, nil, s) })
	wantPanic(t, "ref: Attention: length mismatch", func() { Attention(x[:12], x[:6], x, []int32{0, 3}, nil, s) })
	wantPanic(t, "ref: attention: not a whole number of rows", func() { Attention(x, x, x[:23], []int32{0, 3}, nil, s) })
	wantPanic(t, "ref: AttentionBackward: length mismatch", func() {
		AttentionBackward(x, x[:12], x[:11], x[:12], x, []int32{0, 3}, nil, s)
	})
	s.Full = true
	wantPanic(t, "kernels: full attention has groups, whose sequences begin with a prefix", func() {
		Attention(x[:12], x[:12], x, []int32{0, 2, 3}, []int32{0, 2}, s)
	})
	s.Window = 1
	for _, both := range []struct {
		forward  func(out, stats, qkv []float32, offsets, groups []int32, s kernels.AttentionShape)
		backward func(dqkv, dout, out, stats, qkv []float32, offsets, groups []int32, s kernels.AttentionShape)
	}{{Attention[float32], AttentionBackward[float32]}, {NewMixed().f.attention, NewMixed().f.attentionBackward}} {
		y := make([]float32, 24)
		wantPanic(t, "kernels: full attention has a window", func() { both.forward(y[:12], y[:12], y, []int32{0, 3}, nil, s) })
		wantPanic(t, "kernels: full attention has a window", func() {
			both.backward(y, y[:12], y[:12], y[:12], y, []int32{0, 3}, nil, s)
		})
	}
	s.K = 3
	wantPanic(t, "ref: query heads are not a multiple of key/value heads", func() {
		Attention(x[:12], x[:12], x, []int32{0, 3}, nil, s)
	})
}

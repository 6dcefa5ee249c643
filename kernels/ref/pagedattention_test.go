package ref

import (
	"math"
	"testing"

	"exp/kernels"
)

func TestAppendKVLayout(t *testing.T) {
	// H = 1, K = 2, D = 2: a row is [q q | k0 k0 k1 k1 | v0 v0 v1 v1].
	s := kernels.AttentionShape{H: 2, K: 2, D: 2}
	const size = 16
	n := s.K * s.D * size
	p := Pages[float32]{Keys: make([]float32, 2*n), Values: make([]float32, 2*n), Size: size}
	row := []float32{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	AppendKV(p, row, []int32{size + 3}, s) // page 1, position 3
	// Keys [page,K,D,Size]: component d of head h at n + (2h+d)·16 + 3.
	for i, want := range []float32{1, 2, 3, 4} {
		if got := p.Keys[n+i*size+3]; got != want {
			t.Errorf("key component %d = %v, want %v", i, got, want)
		}
	}
	// Values [page,K,Size,D]: head h at n + h·32 + 3·2.
	wantExact(t, "value of head 0", p.Values[n+6:n+8], []float32{5, 6})
	wantExact(t, "value of head 1", p.Values[n+38:n+40], []float32{7, 8})
	var sum float32
	for i := range p.Keys {
		sum += p.Keys[i] + p.Values[i]
	}
	if sum != 36 { // 1+2+…+8: nothing else was written
		t.Errorf("the elements of the cache add up to %v, want 36", sum)
	}

	CopyPages(p, []int32{1, 0}, s)
	wantExact(t, "copied keys", p.Keys[:n], p.Keys[n:])
	wantExact(t, "copied values", p.Values[:n], p.Values[n:])
}

func TestPagedAttentionKnown(t *testing.T) {
	// One head, D = 1, Scale 1. Sequence 1 has positions 0-16 in pages 2, then 0.
	// All keys are 0 but the one at position 16, ln 16: z = 0 sixteen times
	// and ln 16, so l·e^m = 32, and position 16 has half the weight.
	s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 1}
	const size = 16
	nan := math.NaN()
	p := Pages[float64]{Keys: make([]float64, 3*size), Values: make([]float64, 3*size), Size: size}
	for i := range p.Keys {
		p.Keys[i], p.Values[i] = nan, nan // never written, never read
	}
	for i := 0; i < size; i++ {
		p.Keys[2*size+i], p.Values[2*size+i] = 0, 4
	}
	p.Keys[0], p.Values[0] = math.Log(16), 10
	table := []int32{-7, -7, 2, 0}
	out := make([]float64, 2)
	// 16/32·4 + 16/32·10 = 7; with positions 0-15 alone: 4.
	PagedAttention(out, nil, []float64{1, nan, nan, 1, nan, nan}, p, table, []int32{1, 1}, []int32{16, 15}, 2, s)
	wantNear(t, "out", out, []float64{7, 4}, 1e-14)
}

func TestPagedAttentionWindowKnown(t *testing.T) {
	// One head, D = 1, Scale 1. The row at position 16 sees positions 1 to 16 in pages 2 and
	// 0: fifteen scores of 0 and ln 15, so position 16 has half the weight.
	s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 1, Window: 16}
	const size = 16
	nan := math.NaN()
	p := Pages[float64]{Keys: make([]float64, 3*size), Values: make([]float64, 3*size), Size: size}
	for i := range p.Keys {
		p.Keys[i], p.Values[i] = nan, nan // never read, position 0 neither
	}
	for i := 1; i < size; i++ {
		p.Keys[2*size+i], p.Values[2*size+i] = 0, 4
	}
	p.Keys[0], p.Values[0] = math.Log(15), 10
	out := zeros(1)
	PagedAttention(out, nil, []float64{1, nan, nan}, p, []int32{2, 0}, []int32{0}, []int32{16}, 2, s)
	wantNear(t, "window 16", out, []float64{7}, 1e-14) // (4 + 10)/2
	s.Window = 1
	PagedAttention(out, nil, []float64{1, nan, nan}, p, []int32{-7, 0}, []int32{0}, []int32{16}, 2, s)
	wantNear(t, "window 1", out, []float64{10}, 0)
}

func TestPagedAttentionPanics(t *testing.T) {
	s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 1}
	p := Pages[float64]{Keys: zeros(32), Values: zeros(32), Size: 16}
	out, qkv := zeros(1), zeros(3)
	call := func(table, seq, pos []int32) func() {
		return func() { PagedAttention(out, nil, qkv, p, table, seq, pos, 1, s) }
	}
	wantPanic(t, "ref: PagedAttention: page out of range", call([]int32{2}, []int32{0}, []int32{0}))
	wantPanic(t, "ref: PagedAttention: sequence or position out of range", call([]int32{0}, []int32{1}, []int32{0}))
	wantPanic(t, "ref: PagedAttention: sequence or position out of range", call([]int32{0}, []int32{0}, []int32{16}))
	wantPanic(t, "ref: PagedAttention: sequence or position out of range", call([]int32{0}, []int32{0}, []int32{-1}))
	wantPanic(t, "ref: PagedAttention: length mismatch", call([]int32{0}, []int32{0}, nil))
	wantPanic(t, "ref: AppendKV: slot out of range", func() { AppendKV(p, qkv, []int32{32}, s) })
	wantPanic(t, "ref: AppendKV: length mismatch", func() { AppendKV(p, qkv, nil, s) })
	wantPanic(t, "ref: CopyPages: page out of range", func() { CopyPages(p, []int32{0, 2}, s) })
	wantPanic(t, "ref: CopyPages: length mismatch", func() { CopyPages(p, []int32{0}, s) })
	p.Size = 8
	wantPanic(t, "ref: page size is not a multiple of the lanes", func() { AppendKV(p, qkv, []int32{0}, s) })
	p.Size = 48
	wantPanic(t, "ref: not a whole number of pages", func() { AppendKV(p, qkv, []int32{0}, s) })
}

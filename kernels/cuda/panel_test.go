//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// The suite's heads are narrow, its sequences shorter than a block's rows, and its pages not aligned. Here is the rest of
// what panels hold.
func TestPanels(t *testing.T) {
	beside(t)
	b := openIn(t, "matrix/16x25")
	for _, s := range []kernels.AttentionShape{
		{H: 2, K: 1, D: 128}, {H: 1, K: 1, D: 72, Window: 20}, {H: 2, K: 2, D: 24, Cap: 3}, {H: 2, K: 1, D: 16, Window: 150},
		{H: 2, K: 1, D: 24, Full: true},
	} {
		s.Scale = 1 / math.Sqrt(float64(s.D))
		for name, groups := range map[string][]int32{"": nil, "groups": {0, 2, 4}} {
			if s.Full && groups != nil {
				continue // rows that see all of their sequence share no prefix
			}
			t.Run(fmt.Sprintf("%+v%s", s, name), func(t *testing.T) {
				offsets := []int32{0, 21, 23, 165, 186}
				want := attended(t, ref.NewMatrix(), s, offsets, groups)
				sameBits(t, attended(t, b, s, offsets, groups), want)
			})
		}
	}
}

func TestPanelsOfPages(t *testing.T) {
	beside(t)
	b := openIn(t, "matrix/16x25")
	for _, s := range []kernels.AttentionShape{
		{H: 14, K: 2, D: 128}, {H: 18, K: 1, D: 24}, {H: 2, K: 1, D: 72, Window: 10}, {H: 2, K: 2, D: 8, Cap: 3},
	} {
		s.Scale = 1 / math.Sqrt(float64(s.D))
		for _, size := range []int{16, 48} {
			t.Run(fmt.Sprintf("%+v/%d", s, size), func(t *testing.T) {
				sameBits(t, pagedOn(t, b, s, size, nil), pagedOn(t, ref.NewMatrix(), s, size, nil))
				if s.Window > 0 {
					sameBits(t, pagedOn(t, b, s, size, pagesAhead), pagedOn(t, ref.NewMatrix(), s, size, pagesAhead))
				}
			})
		}
	}
}

// attended returns the results of Attention and AttentionBackward.
func attended(t *testing.T, b kernels.Backend, s kernels.AttentionShape, offsets, groups []int32) [][]float32 {
	M := int(offsets[len(offsets)-1])
	if !s.Ahead.Empty() {
		s.Ahead = upload(t, b, kernels.I32, kernels.Elems[int32](s.Ahead))
	}
	qkv, dout := operands(t, b, spread(M*s.Stride(), 0.37)), operands(t, b, spread(M*s.H*s.D, 1.3))
	out, dqkv := operands(t, b, make([]float32, M*s.H*s.D)), operands(t, b, make([]float32, M*s.Stride()))
	stats := upload(t, b, kernels.F32, make([]float32, 2*M*s.H))
	bounds, shared := upload(t, b, kernels.I32, offsets), kernels.Buffer{}
	if groups != nil {
		shared = upload(t, b, kernels.I32, groups)
	}
	b.Attention(out, stats, qkv, bounds, shared, s)
	b.AttentionBackward(dqkv, dout, out, stats, qkv, bounds, shared, s)
	return [][]float32{read32(b, out), read32(b, stats), read32(b, dqkv)}
}

// pagesAhead is how many positions behind it each row of pagedOn sees.
var pagesAhead = []int32{0, 20, 0, 5}

// pagedOn returns the attention of the last and the middle rows of two sequences, which lie in pages among others that
// hold NaN. Pages that no row sees are none. Rows see as many behind them as ahead says, if it says so.
func pagedOn(t *testing.T, b kernels.Backend, s kernels.AttentionShape, size int, ahead []int32) [][]float32 {
	const used = 5
	lengths := []int{61, 17}
	keys := make([]float32, 2*used*s.K*s.D*size)
	for i := range keys {
		keys[i] = float32(math.NaN())
	}
	p := kernels.Pages{Keys: operands(t, b, keys), Values: operands(t, b, keys), Size: size}
	var slots, seq, pos []int32
	table := make([]int32, 2*used)
	for j, n := range lengths {
		for i := range used {
			table[j*used+i] = int32((7*(j*used+i) + 3) % (2 * used))
		}
		for i := range n {
			slots = append(slots, table[j*used+i/size]*int32(size)+int32(i%size))
		}
		seq, pos = append(seq, int32(j), int32(j)), append(pos, int32(n-1), int32(n/2))
	}
	b.AppendKV(p, operands(t, b, spread(len(slots)*s.Stride(), 0.37)), upload(t, b, kernels.I32, slots), s)
	for i := range table {
		page, seen := i%used, false
		for m, n := range pos {
			from, last := max(0, int(n)+1-s.Window), int(n)
			if ahead != nil {
				last += int(ahead[m])
			}
			seen = seen || int(seq[m]) == i/used && page >= from/size && page <= last/size || s.Window == 0
		}
		if !seen {
			table[i] = -1 << 20
		}
	}
	if ahead != nil {
		s.Ahead = upload(t, b, kernels.I32, ahead)
	}
	out := operands(t, b, make([]float32, len(seq)*s.H*s.D))
	b.PagedAttention(out, kernels.Buffer{}, operands(t, b, spread(len(seq)*s.Stride(), 0.7)), p, upload(t, b, kernels.I32, table),
		upload(t, b, kernels.I32, seq), upload(t, b, kernels.I32, pos), used, s)
	return [][]float32{read32(b, out)}
}

// spread returns numbers of order 2.
func spread(n int, step float64) []float32 {
	x := waves(n, step)
	for i := range x {
		x[i] *= 3
	}
	return x
}

// operands returns x on the device as operands.
func operands(t *testing.T, b kernels.Backend, x []float32) kernels.Buffer {
	t.Helper()
	y, err := b.Alloc(b.Operand(), len(x))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free(y) })
	b.Copy(y, kernels.Host(x))
	return y
}

// read32 returns x.
func read32(b kernels.Backend, x kernels.Buffer) []float32 {
	y := make([]float32, x.Len())
	b.Copy(kernels.Host(y), x)
	b.Sync()
	return y
}

func sameBits(t *testing.T, got, want [][]float32) {
	t.Helper()
	for i := range want {
		for j, w := range want[i] {
			if g := got[i][j]; math.Float32bits(g) != math.Float32bits(w) {
				t.Fatalf("result %d differs at %d of %d: %g, want %g", i, j, len(want[i]), g, w)
			}
		}
		if slices.Max(want[i]) == 0 || want[i][0] != want[i][0] {
			t.Fatalf("result %d shows nothing", i)
		}
	}
}

// A sum that is too small for its row is +0 in every kernel: some add steps of zeros behind it, which would turn -0 into
// 0, and others do not.
func TestAttentionZeros(t *testing.T) {
	device := openIn(t, "matrix/16x25")
	for _, D := range []int{5, 8} { // not in panels, and in them
		for _, wgmma := range []bool{false, true} {
			if wgmma && D == 5 {
				continue
			}
			s := kernels.AttentionShape{H: 1, K: 1, D: D, Scale: 1}
			x := make([]float32, 2*s.Stride())
			x[D], x[2*D], x[s.Stride()] = -70, -0x1p-60, 1 // a key and a value of row 0, which row 1 weighs with Exp(-70)
			if wgmma {
				needsWgmma(t, device)
			}
			device.wgmmaAttention = func(int, int, int) bool { return wgmma }
			for _, b := range []kernels.Backend{ref.NewMatrix(), device} {
				out := operands(t, b, make([]float32, 2*D))
				b.Attention(out, upload(t, b, kernels.F32, make([]float32, 4)), operands(t, b, x),
					upload(t, b, kernels.I32, []int32{0, 2}), kernels.Buffer{}, s)
				pages := kernels.Pages{Keys: operands(t, b, make([]float32, 16*D)),
					Values: operands(t, b, make([]float32, 16*D)), Size: 16}
				b.AppendKV(pages, operands(t, b, x), upload(t, b, kernels.I32, []int32{0, 1}), s)
				decoded := operands(t, b, make([]float32, D))
				b.PagedAttention(decoded, kernels.Buffer{}, operands(t, b, x[s.Stride():]), pages, upload(t, b, kernels.I32, []int32{0}),
					upload(t, b, kernels.I32, []int32{0}), upload(t, b, kernels.I32, []int32{1}), 1, s)
				for _, got := range [][]float32{read32(b, out)[D:], read32(b, decoded)} {
					for i, v := range got {
						if math.Float32bits(v) != 0 {
							t.Errorf("%s, D=%d: channel %d is %#x", b.Name(), D, i, math.Float32bits(v))
						}
					}
				}
			}
		}
	}
}

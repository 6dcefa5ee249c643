package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"exp/kernels"
)

// Products of matrices have the bits of sums one by one, also where products are subnormal, too large or no numbers.
func TestDots(t *testing.T) {
	tiles, matrix := NewMixed().f, NewMatrix().f
	for name, kind := range map[string]struct {
		sum  func(a, b []float32, acc float32) float32
		dots dots[float32]
	}{"chains": {chain[float32], chains[float32]}, "tiles": {tiles.sum, tiles.dots}, "matrix": {matrix.sum, matrix.dots}} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			for i := range 120 {
				M, N, K := 1+r.IntN(3), 1+r.IntN(9), r.IntN(2*kernels.TileTerms+3)
				from, width := []int{-70, -56, -49, 0, 40, 57}[i%6], []int{1, 8, 30}[i/6%3]
				a, b, out := hardRows(r, M, K, from, width), hardRows(r, N, K, from, width), hardRows(r, M, N, 2*from, width)
				what := fmt.Sprintf("%d: %d × %d × %d from 2^%d", i, M, N, K, from)
				compareDots(t, what, kind.sum, kind.dots, out, a, b, M, N, K)
			}
		})
	}
}

// hardRows returns x [n,K] with rows of zeros, infinities and NaNs among them.
func hardRows(r *rand.Rand, n, K, from, width int) []float32 {
	x := make([]float32, n*K)
	for i := range x {
		x[i] = hard(r, from, width)
	}
	if len(x) == 0 {
		return x
	}
	switch at := r.IntN(len(x)); r.IntN(12) {
	case 0:
		x[at] = float32(math.Inf(r.IntN(2)*2 - 1))
	case 1:
		x[at] = float32(math.NaN())
	case 2:
		clear(x[at/K*K : at/K*K+K])
	case 3:
		x[at] = math.MaxFloat32
	}
	return x
}

// compareDots compares dots with sums one by one.
func compareDots(t *testing.T, what string, sum func(a, b []float32, acc float32) float32, dots dots[float32],
	out, a, b []float32, M, N, K int) {
	want := make([]float32, M*N)
	for i := range want {
		m, n := i/N, i%N
		want[i] = sum(a[m*K:(m+1)*K], b[n*K:(n+1)*K], out[i])
	}
	dots(out, a, b, M, N, K)
	for i, got := range out {
		if math.Float32bits(got) != math.Float32bits(want[i]) {
			t.Errorf("%s: element %d = %v, want %v", what, i, got, want[i])
		}
	}
}

// accumulate fuses each element, however many there are.
func TestAccumulate(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 3000 {
		n, a := i%11, hard(r, 0, 2)
		x, acc, want := hardRows(r, 1, n, 0, 2), hardRows(r, 1, n, 0, 2), make([]float32, n)
		for d := range n {
			if i%2 > 0 { // about half a unit in the last place of acc, so that only one rounding is right
				a, x[d], acc[d] = 0x1p-24, 1+float32(r.IntN(5)-2)*0x1p-23, 1+float32(d)*0x1p-23
			}
			want[d] = FMA(a, x[d], acc[d])
		}
		accumulate(acc, a, x)
		for d := range acc {
			if math.Float32bits(acc[d]) != math.Float32bits(want[d]) {
				t.Fatalf("element %d of %d = %v, want %v", d, n, acc[d], want[d])
			}
		}
	}
}

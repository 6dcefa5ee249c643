//go:build cuda

package cuda

import (
	"math"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// The suite has no vector that is longer than a block's memory, and few of wideNorm elements or more: 5,003 take
// three rounds of a block, and two arrays of them fit.
func TestLongNorms(t *testing.T) {
	for _, dim := range []int{wideNorm, 3584, 5003, 6200, normRoom + 77} {
		testNorm(t, dim)
	}
}

func testNorm(t *testing.T, dim int) {
	const M = 19
	s := kernels.NormShape{Heads: 1, Dim: dim, Stride: dim}
	var want [][]float32
	for _, b := range []kernels.Backend{ref.New[float32](), open(t)} {
		x, dout := upload(t, b, kernels.F32, waves(M*dim, 0.7)), upload(t, b, kernels.F32, waves(M*dim, 0.3))
		weight, blocks := upload(t, b, kernels.F32, waves(dim, 0.1)), upload(t, b, kernels.I32, []int32{0, 1, M - 1, M})
		rstd, dw := upload(t, b, kernels.F32, make([]float32, M)), upload(t, b, kernels.F32, make([]float32, dim))
		out, dx := upload(t, b, kernels.F32, waves(M*dim, 0.2)), upload(t, b, kernels.F32, waves(M*dim, 0.9))
		b.RMSNorm(out, rstd, x, weight, s, 1e-6)
		b.RMSNormBackward(dx, dw, dout, x, weight, rstd, blocks, s, false)
		var got [][]float32
		for _, x := range []kernels.Buffer{out, rstd, dx, dw} {
			host := make([]float32, x.Len())
			b.Copy(kernels.Host(host), x)
			b.Sync()
			got = append(got, host)
		}
		if want == nil {
			want = got
		}
		for i := range want {
			for j, w := range want[i] {
				if math.Float32bits(w) != math.Float32bits(got[i][j]) {
					t.Fatalf("%d elements, result %d: element %d is %v, want %v", dim, i, j, got[i][j], w)
				}
			}
		}
	}
}

func waves(n int, step float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i) * step))
	}
	return x
}

package ref

import (
	"testing"

	"exp/kernels"
)

func TestRMSNormKnown(t *testing.T) {
	// Rows of 5 with two vectors of 2 from element 1 on. eps is chosen so that the
	// roots are exact: [3 4]: 25/2 + 3.5 = 16, rstd 1/4; [0 1]: 1/2 + 3.5 = 4, 1/2.
	s := kernels.NormShape{Heads: 2, Dim: 2, Stride: 5, Offset: 1}
	x := []float32{9, 3, 4, 0, 1}
	out, rstd := []float32{-1, 0, 0, 0, 0}, make([]float32, 2)
	RMSNorm(out, rstd, x, []float32{8, -8}, s, 3.5)
	// [3/4·8, 4/4·-8], [0, 1/2·-8]; element 0 is outside the shape.
	wantExact(t, "out", out, []float32{-1, 6, -8, 0, -4})
	wantExact(t, "rstd", rstd, []float32{0.25, 0.5})

	// dout = [1 1], [2 0]; g = dout·weight = [8 -8], [16 0].
	// dot = 24-32 = -8; a = -8·(1/64)/2 = -1/16: dx = 1/16·[3 4] + [8 -8]/4 = [2.1875 -1.75].
	// Second: dot = 0, dx = [16 0]/2 = [8 0].
	dout := []float32{0, 1, 1, 2, 0}
	dx, dw := []float32{100, 1, 1, 1, 1}, []float32{0, 10}
	RMSNormBackward(dx, dw, dout, x, []float32{8, -8}, rstd, []int32{0, 1}, s, false)
	wantExact(t, "dx added", dx, []float32{100, 3.1875, -0.75, 9, 1})
	// dweight: 1·3/4 + 2·0 = 0.75; 1·4/4 + 0·1/2 = 1, added to 10.
	wantExact(t, "dweight", dw, []float32{0.75, 11})

	dw = make([]float32, 2)
	RMSNormBackward(dout, dw, dout, x, []float32{8, -8}, rstd, []int32{0, 1}, s, true)
	wantExact(t, "dx set in place", dout, []float32{0, 2.1875, -1.75, 8, 0})
	wantExact(t, "dweight in place", dw, []float32{0.75, 1})
}

// With UnitOffset, weights of 7 and -9 act as 8 and -8 above.
func TestRMSNormUnitOffset(t *testing.T) {
	s := kernels.NormShape{Heads: 2, Dim: 2, Stride: 5, Offset: 1, UnitOffset: true}
	x, w := []float32{9, 3, 4, 0, 1}, []float32{7, -9}
	out, rstd := []float32{-1, 0, 0, 0, 0}, make([]float32, 2)
	RMSNorm(out, rstd, x, w, s, 3.5)
	wantExact(t, "out", out, []float32{-1, 6, -8, 0, -4})
	dx, dw := []float32{100, 1, 1, 1, 1}, []float32{0, 10}
	RMSNormBackward(dx, dw, []float32{0, 1, 1, 2, 0}, x, w, rstd, []int32{0, 1}, s, false)
	wantExact(t, "dx", dx, []float32{100, 3.1875, -0.75, 9, 1})
	wantExact(t, "dweight", dw, []float32{0.75, 11})

	// The sum is rounded: 1 + 2⁻²⁴ is 1, 1 + 3·2⁻²⁵ is 1 + 2⁻²³. rstd = 1/√(2/2) = 1.
	plain := kernels.NormShape{Heads: 1, Dim: 2, Stride: 2, UnitOffset: true}
	sum, out, rstd := make([]float32, 2), make([]float32, 2), make([]float32, 1)
	AddRMSNorm(sum, out, rstd, []float32{2, 1}, []float32{-1, 0}, []float32{0x1p-24, 0x3p-25}, plain, 0)
	wantExact(t, "rounded", out, []float32{1, 1 + 0x1p-23})
}

func TestAddRMSNormKnown(t *testing.T) {
	// sum = [3 4], as above: rstd = 1/4.
	x, delta := []float32{1, 5}, []float32{2, -1}
	out, rstd := make([]float32, 2), make([]float32, 1)
	AddRMSNorm(x, out, rstd, x, delta, []float32{8, 4}, kernels.NormShape{Heads: 1, Dim: 2, Stride: 2}, 3.5)
	wantExact(t, "sum over x", x, []float32{3, 4})
	wantExact(t, "out", out, []float32{6, 4})
	wantExact(t, "rstd", rstd, []float32{0.25})
	AddRMSNorm(delta, out, rstd, []float32{1, 5}, delta, []float32{8, 4}, kernels.NormShape{Heads: 1, Dim: 2, Stride: 2}, 3.5)
	wantExact(t, "sum over delta", delta, []float32{3, 4})
}

func TestRMSNormGradient(t *testing.T) {
	tests := []struct {
		name string
		s    kernels.NormShape
		set  bool
	}{
		{"rows", kernels.NormShape{Heads: 1, Dim: 19, Stride: 19}, false},
		{"rows, set", kernels.NormShape{Heads: 1, Dim: 19, Stride: 19}, true},
		{"queries of qkv", kernels.NormShape{Heads: 3, Dim: 4, Stride: 20}, true},
		{"keys of qkv", kernels.NormShape{Heads: 1, Dim: 4, Stride: 20, Offset: 12}, true},
		{"keys of qkv, added", kernels.NormShape{Heads: 2, Dim: 4, Stride: 20, Offset: 12}, false},
		{"one more", kernels.NormShape{Heads: 1, Dim: 19, Stride: 19, UnitOffset: true}, false},
		{"one more, keys of qkv", kernels.NormShape{Heads: 2, Dim: 4, Stride: 20, Offset: 12, UnitOffset: true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const M = 5
			s, r := tt.s, source(3)
			x, w, c := normal(r, M*s.Stride), normal(r, s.Dim), normal(r, M*s.Stride)
			out, rstd := zeros(M*s.Stride), zeros(M*s.Heads)
			loss := func() float64 {
				clear(out) // elements outside the shape do not count
				RMSNorm(out, rstd, x, w, s, 1e-6)
				return project(out, c)
			}
			loss()
			dx, dw := zeros(M*s.Stride), normal(r, s.Dim)
			if !tt.set {
				dx = normal(r, M*s.Stride)
			}
			dx0, dw0 := clone(dx), clone(dw)
			RMSNormBackward(dx, dw, c, x, w, rstd, []int32{0, 2, 3, M}, s, tt.set)
			checkGradient(t, loss, limit, argument{"x", x, minus(dx, dx0)}, argument{"weight", w, minus(dw, dw0)})
		})
	}
}

func TestRMSNormPanics(t *testing.T) {
	x := zeros(6)
	wantPanic(t, "ref: the norm's vectors do not fit into a row", func() {
		RMSNorm(x, x, x, x, kernels.NormShape{Heads: 2, Dim: 2, Stride: 5, Offset: 2}, 0)
	})
	wantPanic(t, "ref: norm: not a whole number of rows", func() {
		RMSNorm(x, x, x, x, kernels.NormShape{Heads: 1, Dim: 2, Stride: 4}, 0)
	})
	wantPanic(t, "ref: RMSNorm: length mismatch", func() {
		RMSNorm(x, x[:2], x, x[:2], kernels.NormShape{Heads: 1, Dim: 2, Stride: 2}, 0)
	})
}

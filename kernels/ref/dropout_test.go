package ref

import (
	"math"
	"testing"

	"exp/kernels"
)

func TestDropoutFollowsPhilox(t *testing.T) {
	const C, layer = 7, 3
	keys := []int32{1, -2, 5, 6}
	x := make([]float32, 2*C)
	for i := range x {
		x[i] = float32(i + 1)
	}
	out := make([]float32, 2*C)
	Dropout(out, x, keys, C, layer, 0.5)
	for m := range 2 {
		for c := range C {
			key := [2]uint32{uint32(keys[2*m]), uint32(keys[2*m+1])}
			u := kernels.Uniform24(kernels.Philox(key, [4]uint32{uint32(c / 4), layer, 0, 0})[c%4])
			want := 2 * x[m*C+c] // 1/(1-0.5)
			if u < 0.5 {
				want = 0
			}
			if got := out[m*C+c]; got != want {
				t.Errorf("row %d element %d = %v, want %v (u = %v)", m, c, got, want, u)
			}
		}
	}
	Dropout(x, x, keys, C, layer, 0.5)
	wantExact(t, "in place", x, out)
}

func TestDropoutRate(t *testing.T) {
	const C, p = 20000, 0.1
	x, out := make([]float32, C), make([]float32, C)
	for i := range x {
		x[i] = 1
	}
	Dropout(out, x, []int32{11, 12}, C, 0, p)
	dropped := 0
	for _, v := range out {
		if v == 0 {
			dropped++
		}
	}
	// 2000 expected, standard deviation √(20000·0.1·0.9) = 42.4; five of them.
	if math.Abs(float64(dropped)-2000) > 5*42.4 {
		t.Errorf("%d of %d dropped at p = %v", dropped, C, p)
	}
	Dropout(out, x, []int32{11, 12}, C, 0, 0)
	wantExact(t, "p = 0", out, x)

	// A dropped NaN is gone: 0 is written, not 0·x.
	nan := []float32{float32(math.NaN())}
	zero := make([]float32, 1)
	Dropout(zero, nan, []int32{1, 1}, 1, 0, 1-0x1p-25)
	wantExact(t, "dropped NaN", zero, []float32{0})

	wantPanic(t, "ref: Dropout: p is not in [0,1)", func() { Dropout(out, x, []int32{1, 2}, C, 0, 1) })
	wantPanic(t, "ref: Dropout: length mismatch", func() { Dropout(out, x, []int32{1, 2, 3}, C, 0, 0) })
}

func TestDropoutIsItsOwnBackward(t *testing.T) {
	const C = 12
	r := source(7)
	x, c := normal(r, C), normal(r, C)
	out, dx := zeros(C), zeros(C)
	loss := func() float64 {
		Dropout(out, x, []int32{3, 4}, C, 1, 0.3)
		return project(out, c)
	}
	Dropout(dx, c, []int32{3, 4}, C, 1, 0.3)
	checkGradient(t, loss, limit, argument{"x", x, dx})
}

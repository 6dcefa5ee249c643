package ref

import (
	"testing"

	"exp/kernels"
)

// convShapes are one channel with one tap, and more of both.
func convShapes() []kernels.DeltaShape {
	return []kernels.DeltaShape{
		{Values: 1, ValueDim: 1, Taps: 1, Conv: true},
		{Values: 1, ValueDim: 5, Taps: 3, Conv: true},
		{Values: 2, ValueDim: 2, Taps: 4, Conv: true},
	}
}

func TestGatedConvKnown(t *testing.T) {
	// Two channels of factors before and after, and x. Channel 1 has taps 2, 3 and products 2·5 = 10 and -1·4 = -4:
	// 7·(3·10) = 210 and 1·(2·10 - 3·4) = 8. Channel 2 has tap 1 of the row itself: 3·(1·6) and 2·(2·2).
	s := kernels.DeltaShape{Values: 1, ValueDim: 2, Taps: 2, Conv: true}
	x := []float64{2, 1, 7, 3, 5, 6, -1, 2, 1, 2, 4, 2}
	w := []float64{2, 3, 0, 1}
	u, tails := zeros(4), zeros(2)
	GatedConv(u, x, w, nil, []int32{0, 2}, nil, nil, s)
	wantExact(t, "u", u, []float64{210, 18, 8, 8})
	// A slot keeps the last products.
	GatedConv(u, x, w, tails, []int32{0, 2}, nil, []int32{-1}, s)
	wantExact(t, "u", u, []float64{210, 18, 8, 8})
	wantExact(t, "tails", tails, []float64{-4, 4})

	// With du = 1 in the second row of channel 1, da = 20 - 12 = 8 and dy = 1, which gives the products 2 and 3:
	// db = 2·5 and 3·4, dx = 2·2 and 3·(-1). Its weights get the products themselves.
	dx, dw := zeros(12), zeros(4)
	GatedConvBackward(dx, dw, []float64{0, 0, 1, 0}, x, w, []int32{0, 2}, []int32{0, 2}, nil, s)
	wantExact(t, "dx", dx, []float64{10, 0, 0, 0, 4, 0, 12, 0, 8, 0, -3, 0})
	wantExact(t, "dweight", dw, []float64{10, -4, 0, 0})
}

func TestGatedConvGradient(t *testing.T) {
	const M = deltaTestRows
	for _, s := range convShapes() {
		for _, b := range deltaBatches() {
			r := source(14)
			x, w, c := normal(r, M*s.Stride()), normal(r, s.Mixed()*s.Taps), normal(r, M*s.Mixed())
			u, dx, dw := zeros(len(c)), normal(r, len(x)), normal(r, len(w))
			start := clone(dw)
			GatedConvBackward(dx, dw, c, x, w, []int32{0, 4, M}, b[0], b[1], s)
			checkGradient(t, func() float64 {
				GatedConv(u, x, w, nil, b[0], b[1], nil, s)
				return project(u, c)
			}, limit, argument{"x", x, dx}, argument{"weight", w, minus(dw, start)})
		}
	}
}

// Steps from slots, and rows after a shared prefix, have the bits of whole sequences.
func TestGatedConvInSteps(t *testing.T) {
	for _, s := range convShapes() {
		r := source(15)
		x, w := floats32(normal(r, 7*s.Stride())), floats32(normal(r, s.Mixed()*s.Taps))
		u, u2 := make([]float32, 7*s.Mixed()), make([]float32, 7*s.Mixed())
		GatedConv(u, x, w, nil, []int32{0, 7}, nil, nil, s)
		tails := floats32(normal(r, 3*s.Tail()))
		at, slot := 0, int32(-3)
		for _, n := range []int{2, 1, 3, 1} {
			to := at + n
			GatedConv(u2[at*s.Mixed():to*s.Mixed()], x[at*s.Stride():to*s.Stride()], w, tails, []int32{0, int32(n)}, nil,
				[]int32{slot}, s)
			at, slot = to, 2
		}
		wantExact(t, "u in steps", u2, u)
		GatedConv(u2, x, w, nil, []int32{0, 4, 7}, []int32{0, 2}, nil, s)
		wantExact(t, "u after a prefix", u2, u)
	}
}

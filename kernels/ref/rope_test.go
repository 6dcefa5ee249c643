package ref

import (
	"math"
	"testing"

	"exp/kernels"
)

func TestRopeKnown(t *testing.T) {
	// One query head, one key head, D = 4; position 1 turns pair 0 by 90° and pair
	// 1 by 3-4-5: c = 0.6, s = 0.8. (a,b) → (a·c - b·s, b·c + a·s).
	s := kernels.AttentionShape{H: 1, K: 1, D: 4}
	cos := []float64{1, 1, 0, 0.6}
	sin := []float64{0, 0, 1, 0.8}
	row := []float64{1, 5, 2, 10, 3, 0, 4, 5, 9, 9, 9, 9}
	qkv := append(clone(row), row...)
	Rope(qkv, cos, sin, []int32{1, 0}, s, false)
	want := []float64{
		-2, 5*0.6 - 10*0.8, 1, 10*0.6 + 5*0.8, // query: (1,2) → (-2,1); (5,10) → (-5,10)
		-4, -5 * 0.8, 3, 5 * 0.6, // key: (3,4) → (-4,3); (0,5) → (-4,3)
		9, 9, 9, 9, // values are not turned
	}
	wantNear(t, "position 1", qkv[:12], want, 1e-15)
	wantExact(t, "position 0", qkv[12:], row)
	Rope(qkv, cos, sin, []int32{1, 0}, s, true)
	wantNear(t, "and back", qkv[:12], row, 1e-14)
}

func TestRopePartKnown(t *testing.T) {
	// D = 6; four channels turn: pairs (0,2) by 90° and (1,3) by 3-4-5.
	s := kernels.AttentionShape{H: 1, K: 1, D: 6, Rotary: 4}
	cos, sin := []float64{0, 0.6}, []float64{1, 0.8}
	qkv := []float64{1, 5, 2, 10, 7, 8, 3, 0, 4, 5, 7, 8, 9, 9, 9, 9, 9, 9}
	Rope(qkv, cos, sin, []int32{0}, s, false)
	wantNear(t, "part", qkv, []float64{-2, -5, 1, 10, 7, 8, -4, -4, 3, 3, 7, 8, 9, 9, 9, 9, 9, 9}, 1e-14)
	// The same pairs as neighbours.
	s.Interleaved = true
	qkv = []float64{1, 2, 5, 10, 7, 8, 3, 4, 0, 5, 7, 8, 9, 9, 9, 9, 9, 9}
	Rope(qkv, cos, sin, []int32{0}, s, false)
	wantNear(t, "neighbours", qkv, []float64{-2, 1, -5, 10, 7, 8, -4, 3, -4, 3, 7, 8, 9, 9, 9, 9, 9, 9}, 1e-14)
	s.Rotary = 8
	wantPanic(t, "ref: Rope: the rotated channels are odd or more than the head has", func() { Rope(qkv, cos, sin, []int32{0}, s, false) })
}

func TestRopeGradient(t *testing.T) {
	const M = 3
	s := kernels.AttentionShape{H: 2, K: 1, D: 6}
	pos := []int32{0, 4, 2}
	r := source(8)
	cos, sin := zeros(5*3), zeros(5*3)
	for i := range cos {
		a := r.Float64()
		cos[i], sin[i] = math.Cos(a), math.Sin(a)
	}
	x, c := normal(r, M*s.Stride()), normal(r, M*s.Stride())
	loss := func() float64 {
		y := clone(x)
		Rope(y, cos, sin, pos, s, false)
		return project(y, c)
	}
	for _, s.Interleaved = range []bool{false, true} {
		dx := clone(c)
		Rope(dx, cos, sin, pos, s, true)
		checkGradient(t, loss, limit, argument{"qkv", x, dx})
	}

	wantPanic(t, "ref: Rope: length mismatch", func() { Rope(x, cos, sin, pos[:2], s, false) })
	wantPanic(t, "ref: Rope: position out of range", func() { Rope(x, cos, sin, []int32{0, 5, 0}, s, false) })
	wantPanic(t, "ref: Rope: the rotated channels are odd or more than the head has", func() {
		Rope(x, cos, sin, pos, kernels.AttentionShape{H: 1, K: 1, D: 3}, false)
	})
}

package ref

import (
	"math"
	"testing"
)

func TestRound(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tt := range []struct{ x, want float32 }{
		{0, 0}, {1, 1}, {-1, -1}, {inf, inf}, {-inf, -inf},
		{1 + 0x1p-8, 1},                 // a tie, to even
		{1 + 0x1p-7, 1 + 0x1p-7},        // exact
		{1 + 0x3p-8, 1 + 0x1p-6},        // a tie, to even, upwards
		{1 + 0x1.8p-8, 1 + 0x1p-7},      // above the tie
		{math.MaxFloat32, inf},          // rounds past the largest
		{0x1p-126, 0x1p-126},            // the smallest normal
		{0x1.fep-127, 0}, {0x1p-149, 0}, // subnormal
	} {
		if got := Round(tt.x); got != tt.want {
			t.Errorf("Round(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
	if got := Round(nan); got == got {
		t.Errorf("Round(NaN) = %v", got)
	}
	if got := Round(-0x1p-130); got != 0 || !math.Signbit(float64(got)) {
		t.Errorf("Round of a negative subnormal = %v, want -0", got)
	}
}

// The even and the odd terms of a step are summed apart.
func TestTileSum(t *testing.T) {
	big, one := float32(0x1p30), float32(1)
	// In one chain 1 would be lost in 2^30 and left after it cancels; apart it stays.
	a := []float32{big, one, -big, one}
	b := []float32{one, one, one, one}
	if got := TileSum(a, b, 0); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	// acc joins at the end of a step: 2^30 takes it up only if the step's sum is
	// large enough by itself.
	if got := TileSum([]float32{32, 32}, b[:2], big); got != big {
		t.Errorf("got %v, want %v: half a unit in the last place is a tie", got, big)
	}
	if got := TileSum([]float32{32, 33}, b[:2], big); got != big+128 {
		t.Errorf("got %v, want %v", got, big+128)
	}
	// Steps of 32 terms are added one after another.
	x, y := make([]float32, 33), make([]float32, 33)
	for i := range x {
		x[i], y[i] = 2, 1
	}
	if got := TileSum(x, y, big); got != big {
		t.Errorf("got %v, want %v: 64 is lost, then 2", got, big)
	}
	// Factors are rounded, products are not.
	if got, want := TileSum([]float32{1 + 0x1p-8}, []float32{1 + 0x1p-7}, 0), float32(1+0x1p-7); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	// Subnormal results are zero.
	if got := TileSum([]float32{0x1p-100}, []float32{0x1p-30}, 0); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"exp/kernels"
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

// Each chain fuses products and additions, also where a product is subnormal, zero, too large or no number.
func TestTileSumFuses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 200000 {
		from := []int{-70, -63, 0, 60, 63}[i%5]
		x, y, c, one := Round(hard(r, from, 4)), Round(hard(r, from, 4)), Round(hard(r, 2*from, 8)), float32(1)
		switch i % 50 {
		case 0:
			x = math.Float32frombits(r.Uint32() &^ 0xffff)
		case 1:
			c = -Round(x * y)
		}
		// The even chain is c·1, then x·y.
		want := flush(0 + flush(flush(FMA(x, y, flush(FMA(Round(c), one, 0))))+0))
		got := TileSum([]float32{c, 0, x, 0}, []float32{one, 0, y, 0}, 0)
		if math.Float32bits(got) != math.Float32bits(want) && !(got != got && want != want) {
			t.Fatalf("%v·%v + %v = %v, want %v", x, y, c, got, want)
		}
	}
}

// A row of 33 keys in class matrix/16x25: one head, D = 1, q = 1 in the last row, so that scores are the keys.
func TestAttentionByKeys(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, last float32 // scores of 32 keys with value 1, and of the one after them with value 3
		out, m, inv float64
		window      int
		other       float32 // the value of the first key, if it is not 1
	}{
		// l = 32 + 1; out = (32 + 3)/33.
		{name: "equal", first: 4, last: 4, out: 35.0 / 33, m: 4, inv: 1.0 / 33},
		// The maximum stays, and the last power is Exp(8).
		{name: "not enough to rise", first: 0, last: 8, out: (32 + 3*math.Exp(8)) / (32 + math.Exp(8)), m: 0, inv: 1 / (32 + math.Exp(8))},
		// It rises, and the sums of 32 become 32·Exp(-16).
		{name: "risen", first: 0, last: 16, out: (32*math.Exp(-16) + 3) / (32*math.Exp(-16) + 1), m: 16, inv: 1 / (32*math.Exp(-16) + 1)},
		{name: "risen from -Inf", first: float32(math.Inf(-1)), last: -64, out: 3, m: -64, inv: 1},
		// A window of 1 hides all but the last.
		{name: "window", first: 64, last: -4, window: 1, out: 3, m: -4, inv: 1},
		// The window hides an infinite value.
		{name: "hidden", first: 0, last: 0, window: 32, other: float32(math.Inf(1)), out: 34.0 / 32, m: 0, inv: 1.0 / 32},
	} {
		s := kernels.AttentionShape{H: 1, K: 1, D: 1, Scale: 1, Window: tt.window}
		var qkv []float32
		for range kernels.MatrixKeys {
			qkv = append(qkv, 0, tt.first, 1)
		}
		qkv = append(qkv, 1, tt.last, 3)
		if tt.other != 0 {
			qkv[2] = tt.other
		}
		n := kernels.MatrixKeys + 1
		out, stats := make([]float32, n), make([]float32, 2*n)
		NewMatrix().f.attention(out, stats, qkv, []int32{0, int32(n)}, nil, s)
		got := []float64{float64(out[n-1]), float64(stats[2*n-2]), float64(stats[2*n-1])}
		for i, want := range []float64{tt.out, tt.m, tt.inv} {
			if math.Abs(got[i]-want) > 0.005*math.Abs(want) { // weights have 8 bits
				t.Errorf("%s: out, m, 1/l = %v, want %v, %v, %v", tt.name, got, tt.out, tt.m, tt.inv)
				break
			}
		}
	}
}

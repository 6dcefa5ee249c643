package ref

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"exp/kernels"
)

// exactStep is matrixStep by the definition's words, in numbers of any size.
func exactStep(a, b []float32, acc float32) float32 {
	addends, top := []*big.Float{big.NewFloat(float64(acc))}, -133
	exponent := func(x float32) int { _, e := math.Frexp(float64(x)); return max(e-1, -126) }
	if acc != 0 {
		top = exponent(acc)
	}
	for i := range a {
		x, y := Round(a[i]), Round(b[i])
		addends = append(addends, new(big.Float).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y))))
		if x != 0 && y != 0 {
			top = max(top, exponent(x)+exponent(y))
		}
	}
	sum := new(big.Int)
	for _, x := range addends {
		units, _ := new(big.Float).SetMantExp(x, 25-top).Int(nil) // towards zero
		sum.Add(sum, units)
	}
	exact := new(big.Float).SetMode(big.ToZero).SetMantExp(new(big.Float).SetInt(sum), top-25)
	if sum.Sign() == 0 {
		return 0
	}
	// Cut to the float32's last place: 23 below the leading one, but not below 2^-149.
	last := max(exact.MantExp(nil)-1-23, -149)
	kept, _ := new(big.Float).SetMantExp(exact, -last).Int(nil)
	f, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(kept), last).Float64()
	if kept.Sign() == 0 {
		return 0
	}
	if math.Abs(f) > math.MaxFloat32 {
		return float32(math.Inf(sum.Sign()))
	}
	return float32(f)
}

// hard draws a number whose exponent is near others', with zeros and subnormals among them.
func hard(r *rand.Rand, from, width int) float32 {
	if r.IntN(8) == 0 {
		return float32(math.Copysign(0, r.Float64()-0.5))
	}
	return float32(math.Ldexp(r.Float64()*2-1, from+r.IntN(width)))
}

func TestMatrixSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		n := 1 + r.IntN(kernels.MatrixTerms)
		from, width := []int{-60, -5, 0, 55, -70}[i%5], []int{1, 4, 30}[i%3]
		a, b := make([]float32, n), make([]float32, n)
		for k := range a {
			a[k], b[k] = hard(r, from, width), hard(r, from, width)
		}
		acc := hard(r, 2*from, 2*width)
		if i%4 == 0 { // almost cancels
			acc = -Round(a[0]) * Round(b[0])
		}
		if math.IsInf(float64(acc), 0) {
			acc = 1
		}
		got, want := MatrixSum(a, b, acc), exactStep(a, b, acc)
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%v · %v + %v = %v, want %v", a, b, acc, got, want)
		}
	}
}

// What the definition says in particular.
func TestMatrixSumCases(t *testing.T) {
	inf, nan, negative := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	many := func(v float32, n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = v
		}
		return x
	}
	for _, tt := range []struct {
		name string
		a, b []float32
		acc  float32
		want float32
	}{
		{"no terms", nil, nil, negative, negative},
		{"zeros", []float32{0, negative}, []float32{1, 1}, negative, 0},
		{"cancelled", []float32{1, 1}, []float32{1, -1}, negative, 0},
		{"exact", []float32{3, 5}, []float32{7, 11}, 2, 78},
		{"below 25 places", []float32{1, 0x1p-13}, []float32{1, 0x1p-13}, 0, 1},
		{"what 25 places keep", append(many(0x1p-12, 15), 1), append(many(0x1p-13, 15), 1), 0, 1 + 3*0x1p-23},
		{"cut, not rounded", []float32{1, 0x1.fep-13}, []float32{1, 0x1.fep-12}, 0, 1},
		{"two steps", many(1, 17), many(0x1p24, 17), 0, 17 * 0x1p24},
		{"the second step loses", append(many(1, 16), 1), append(many(0x1p24, 16), 1), 0, 16 * 0x1p24},
		{"factors are rounded", []float32{1 + 0x1p-8}, []float32{1}, 0, 1},
		{"subnormal factors are zero", []float32{0x1p-127}, []float32{0x1p100}, 0, 0},
		{"subnormal result", []float32{0x1p-70}, []float32{0x1p-70}, 0, 0x1p-140},
		{"no units below 2^-158", append(many(0x1.fep-77, 15), 0x1.1p-77), append(many(0x1p-77, 15), 0x1p-76), 0, 0},
		{"zero next to a large number", []float32{0, 0x1p-60}, []float32{0x1p60, 0x1p-60}, 0x1p-66, 0x1p-66},
		{"cut to zero", []float32{-0x1p-75}, []float32{0x1p-75}, negative, 0},
		{"overflow", []float32{0x1p100}, []float32{0x1p100}, 0, inf},
		{"infinity", []float32{inf}, []float32{1}, 5, inf},
		{"infinities", []float32{inf}, []float32{-1}, inf, nan},
		{"infinity times zero", []float32{inf}, []float32{0}, 0, nan},
	} {
		got := MatrixSum(tt.a, tt.b, tt.acc)
		if math.Float32bits(got) != math.Float32bits(tt.want) && !(got != got && tt.want != tt.want) {
			t.Errorf("%s: %v (%x), want %v", tt.name, got, math.Float32bits(got), tt.want)
		}
	}
	// Padding changes nothing but the sign of a zero.
	r := rand.New(rand.NewPCG(3, 4))
	for range 100000 {
		x := math.Float32frombits(r.Uint32())
		if got := MatrixSum([]float32{0}, []float32{1}, x); x == x && got != x {
			t.Fatalf("%v plus a step of zeros is %v", x, got)
		}
	}
}

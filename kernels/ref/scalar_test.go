package ref

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// ulps returns |got-want| in units of the last place of float32(want).
func ulps(got float32, want float64) float64 {
	w := math.Abs(want)
	_, e := math.Frexp(w)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// worst returns the largest error in ulps of f against want over all finite
// float32 of [lo,hi], every stride-th bit pattern.
func worst(f func(float32) float32, want func(float64) float64, lo, hi float32, stride uint32) (float64, float32) {
	w, at := 0.0, float32(0)
	for _, neg := range []bool{false, true} {
		for u := uint32(0); u < 0x7f800000; u += stride {
			x := math.Float32frombits(u)
			if neg {
				x = -x
			}
			if x < lo || x > hi {
				continue
			}
			if e := ulps(f(x), want(float64(x))); e > w {
				w, at = e, x
			}
		}
	}
	return w, at
}

func TestExpLogError(t *testing.T) {
	stride := uint32(997) // a prime: 2.1 million values; 1 takes minutes and gives the same bound
	if e, x := worst(exp32, math.Exp, expMin, expMax, stride); e > 1 {
		t.Errorf("Exp(%v) is off by %.3f ulp, want ≤ 1", x, e)
	} else {
		t.Logf("Exp: worst %.3f ulp at %v", e, x)
	}
	if e, x := worst(log32, math.Log, 1e-45, math.MaxFloat32, stride); e > 1 {
		t.Errorf("Log(%v) is off by %.3f ulp, want ≤ 1", x, e)
	} else {
		t.Logf("Log: worst %.3f ulp at %v", e, x)
	}
}

func TestExpLogSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	tests := []struct {
		name     string
		got, out float32
	}{
		{"exp(0)", exp32(0), 1},
		{"exp(-0)", exp32(float32(math.Copysign(0, -1))), 1},
		{"exp(-inf)", exp32(-inf), 0},
		{"exp(-87.4)", exp32(-87.4), 0},
		{"exp(inf)", exp32(inf), inf},
		{"exp(88.8)", exp32(88.8), inf},
		{"exp(nan)", exp32(nan), nan},
		{"log(1)", log32(1), 0},
		{"log(0)", log32(0), -inf},
		{"log(-1)", log32(-1), nan},
		{"log(inf)", log32(inf), inf},
		{"log(nan)", log32(nan), nan},
		{"sigmoid(-inf)", Sigmoid(-inf), 0},
		{"sigmoid(inf)", Sigmoid(inf), 1},
	}
	for _, tt := range tests {
		if math.Float32bits(tt.got) != math.Float32bits(tt.out) && !(tt.got != tt.got && tt.out != tt.out) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got, tt.out)
		}
	}
	// The largest arguments are finite.
	if y := exp32(expMax); math.IsInf(float64(y), 0) {
		t.Errorf("exp(%v) = %v, want finite", float32(expMax), y)
	}
}

func TestTanhError(t *testing.T) {
	const limit = 1e-7
	worst, at := 0.0, float32(0)
	for u := uint32(0); u < 0x42000000; u += 997 { // to 32
		x := math.Float32frombits(u)
		if e := math.Abs(float64(Tanh(x)) - math.Tanh(float64(x))); e > worst {
			worst, at = e, x
		}
		if Tanh(-x) != -Tanh(x) {
			t.Fatalf("Tanh(%v) = %v, Tanh(%v) = %v", -x, Tanh(-x), x, Tanh(x))
		}
	}
	if worst > limit {
		t.Errorf("Tanh(%v) is off by %.3g, want ≤ %.0e", at, worst, limit)
	} else {
		t.Logf("Tanh: worst %.3g at %v", worst, at)
	}
	inf := float32(math.Inf(1))
	for x, want := range map[float32]float32{0: 0, inf: 1, -inf: -1, 100: 1, -100: -1} {
		if got := Tanh(x); got != want {
			t.Errorf("Tanh(%v) = %v, want %v", x, got, want)
		}
	}
	if y := Tanh(float32(math.NaN())); y == y {
		t.Errorf("Tanh(NaN) = %v", y)
	}
}

// exactFMA rounds a·b+c once, in exact arithmetic.
func exactFMA(a, b, c float32) float32 {
	x := new(big.Float).SetPrec(600).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetPrec(600).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetPrec(600).SetFloat64(float64(c)))
	y, _ := x.Float32()
	return y
}

func TestFMARoundsOnce(t *testing.T) {
	// 1 + 2^-24 is a tie in float32; the product's tail decides it, and is lost if
	// the sum is first rounded to float64.
	tie := []struct{ a, b, c float32 }{
		{0x1p-24, 1 + 0x1p-23, 1},
		// Sums 2^-70 beside a tie, which float64 rounds to the tie, and ties to even then to the wrong side.
		{1 + 0x1p-23, 0x1p-24 - 0x1p-47, 1 + 0x1p-23},
		{-1 - 0x1p-23, 0x1p-24 - 0x1p-47, 1 + 0x1p-23},
		{0x1p-12 + 0x1p-35, 0x1p-12, 1},
		{-0x1p-12 - 0x1p-35, 0x1p-12, 1},
		{0x1.000002p0, 0x1.000002p-60, 0x1.000003p0},
		{0x1p-80, 0x1p-80, 0x1p-149},
		{3, -5, 15},
	}
	for _, tt := range tie {
		if got, want := FMA(tt.a, tt.b, tt.c), exactFMA(tt.a, tt.b, tt.c); got != want {
			t.Errorf("FMA(%v, %v, %v) = %v, want %v", tt.a, tt.b, tt.c, got, want)
		}
	}
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	draw := func() float32 {
		u := r.Uint32()
		// Close exponents make ties and cancellations likely.
		return math.Float32frombits(u&0x80ffffff | 0x3f000000)
	}
	for i := 0; i < 200000; i++ {
		a, b, c := draw(), draw()*0x1p-12, draw()
		if i%3 == 0 { // few significant bits: exact ties
			a = math.Float32frombits(math.Float32bits(a) & 0xfffff000)
		}
		if got, want := FMA(a, b, c), exactFMA(a, b, c); got != want {
			t.Fatalf("seed %d: FMA(%v, %v, %v) = %v, want %v", seed, a, b, c, got, want)
		}
	}
	// Results around the smallest normal number, where ties move to other bits.
	for i := 0; i < 200000; i++ {
		a, b := draw()*0x1p-64, draw()*0x1p-64
		c := math.Float32frombits(r.Uint32() & 0x81ffffff)
		if i%3 == 0 {
			a = math.Float32frombits(math.Float32bits(a) & 0xfff80000)
			b = math.Float32frombits(math.Float32bits(b) & 0xfff80000)
		}
		if got, want := FMA(a, b, c), exactFMA(a, b, c); got != want {
			t.Fatalf("seed %d: FMA(%v, %v, %v) = %v, want %v", seed, a, b, c, got, want)
		}
	}
	// The largest number and half a unit more is a tie with infinity.
	const big = math.MaxFloat32
	for _, tt := range []struct{ a, b, c float32 }{{0x1p52, 0x1p51, big}, {0x1p52, 0x1.fffffep50, big}, {-0x1p52, -0x1.000002p51, big}} {
		if got, want := FMA(tt.a, tt.b, tt.c), exactFMA(tt.a, tt.b, tt.c); got != want {
			t.Errorf("FMA(%v, %v, %v) = %v, want %v", tt.a, tt.b, tt.c, got, want)
		}
	}
	inf := float32(math.Inf(1))
	if got := FMA(inf, 1, -inf); got == got {
		t.Errorf("FMA(inf, 1, -inf) = %v, want NaN", got)
	}
	if got := FMA(inf, 2, 1); got != inf {
		t.Errorf("FMA(inf, 2, 1) = %v, want +Inf", got)
	}
}

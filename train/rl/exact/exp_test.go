package exact

import (
	"math"
	"testing"
)

func TestExp(t *testing.T) {
	for i := -7451; i <= 7098; i++ {
		x := float64(i)/10 + 1e-3*math.Sin(float64(i))
		got, want := Exp(x), math.Exp(x)
		ulp := math.Max(math.Nextafter(want, math.Inf(1))-want, 0x1p-1074)
		if math.Abs(got-want) > ulp {
			t.Errorf("exp(%g) = %.17g, want %.17g", x, got, want)
		}
	}
	inf := math.Inf(1)
	for _, tt := range []struct{ x, want float64 }{
		{0, 1}, {1, math.E}, {-inf, 0}, {-746, 0}, {inf, inf}, {710, inf}, {709.782712893384, 1.797693134862273e308},
	} {
		if got := Exp(tt.x); got != tt.want && !(math.Abs(got/tt.want-1) < 1e-13) {
			t.Errorf("exp(%g) = %g, want %g", tt.x, got, tt.want)
		}
	}
	if got := Exp(math.NaN()); got == got {
		t.Errorf("exp(NaN) = %g", got)
	}
}

// The same bits on every machine.
func TestExpBits(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want uint64
	}{
		{0.1, 0x3ff1aec7b35a00d4}, {-0.3, 0x3fe7b4c869c37c05}, {2.5, 0x40285d6fd931e0bb},
		{0, 0x3ff0000000000000}, {math.Copysign(0, -1), 0x3ff0000000000000}, {-20, 0x3e21b48655f37267}, {20, 0x41bceb088b68e804},
		{709.78, 0x7fefe9ce5c4c52b4}, {-707.3, 0x27f2894d304b6c}, {-708.3, 0x119e98b83de7a3}, {-700.25, 0xcaf5fe9a485c8e}, {-744.5, 1},
	} {
		if got := math.Float64bits(Exp(tt.x)); got != tt.want {
			t.Errorf("exp(%g) has bits %#x, want %#x", tt.x, got, tt.want)
		}
	}
}

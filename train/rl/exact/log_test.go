package exact

import (
	"math"
	"testing"
)

func TestLog(t *testing.T) {
	for i := -7083; i <= 7090; i++ {
		x := math.Exp(float64(i)/10 + 1e-3*math.Sin(float64(i)))
		checkLog(t, x)
		checkLog(t, 1+float64(i)/1e5) // either side of 1
	}
	for _, x := range []float64{0x1p-1022, math.Sqrt2 / 2, math.Nextafter(1, 0), math.Nextafter(1, 2), math.Sqrt2, math.MaxFloat64} {
		checkLog(t, x)
	}
	inf := math.Inf(1)
	for _, tt := range []struct{ x, want float64 }{
		{1, 0}, {2, math.Ln2}, {5e-324, -744.4400719213812}, {0, -inf}, {inf, inf}, {-1, math.NaN()}, {-inf, math.NaN()}, {math.NaN(), math.NaN()},
	} {
		if got := Log(tt.x); got != tt.want && !(got != got && tt.want != tt.want) {
			t.Errorf("log(%g) = %g, want %g", tt.x, got, tt.want)
		}
	}
}

// checkLog compares with math.Log, whose own error is below 1 ulp. (Its assembly is
// wrong for subnormal numbers.)
func checkLog(t *testing.T, x float64) {
	t.Helper()
	got, want := Log(x), math.Log(x)
	ulp := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
	if math.Abs(got-want) > 2*ulp {
		t.Errorf("log(%.17g) = %.17g, want %.17g", x, got, want)
	}
}

// The same bits on every machine.
func TestLogBits(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want uint64
	}{
		{0.1, 0xc0026bb1bbb55515}, {0.7, 0xbfd6d3c324e13f50}, {0.99999, 0xbee4f8bc681df715}, {1.3, 0x3fd0ca937be1b9dd}, {3, 0x3ff193ea7aad030b},
		{1e-10, 0xc037069e2aa2aa5b}, {1e300, 0x4085963447f87fb5},
	} {
		if got := math.Float64bits(Log(tt.x)); got != tt.want {
			t.Errorf("log(%g) has bits %#x, want %#x", tt.x, got, tt.want)
		}
	}
}

func TestLog1p(t *testing.T) {
	for i := -400; i <= 40; i++ {
		x := math.Exp(float64(i) / 10)
		if got, want := Log1p(x), math.Log1p(x); math.Abs(got-want) > 4e-16*want {
			t.Errorf("log1p(%g) = %.17g, want %.17g", x, got, want)
		}
	}
	if Log1p(0) != 0 || Log1p(5e-324) != 5e-324 {
		t.Error("log1p of the smallest numbers")
	}
}

package stat

import (
	"math"
	"testing"
)

func TestImprovementInterval(t *testing.T) {
	// One run against one: V = θ(1-θ), the score interval of one success in one trial,
	// [1/(1+z²), 1].
	z2 := 1.959963984540054 * 1.959963984540054
	if iv := ImprovementInterval(1, 1, 1, 0.95); !near(iv.Lo, 1/(1+z2), 1e-9) || iv.Hi != 1 {
		t.Errorf("one against one: %+v, want [%v, 1]", iv, 1/(1+z2))
	}
	// The bound solves p - θ = z √V: V(0.5) with m = n = 3 is 0.25/9 · (1 + 2·(2/3)) =
	// 0.0648148, so that 0.5 is the bound of p = 0.5 + z·0.2545875.
	p := 0.5 + 0.5*math.Sqrt(0.25/9*(1+4.0/3))
	if iv := ImprovementInterval(p, 3, 3, 2*normalCDF(0.5)-1); !near(iv.Lo, 0.5, 1e-9) {
		t.Errorf("%+v, want a lower end of 0.5", iv)
	}
	for _, p := range []float64{0, 0.1, 0.5, 0.93, 1} {
		a, b := ImprovementInterval(p, 3, 5, 0.95), ImprovementInterval(1-p, 5, 3, 0.95)
		if !near(a.Lo, 1-b.Hi, 1e-9) || !near(a.Hi, 1-b.Lo, 1e-9) {
			t.Errorf("p %v: %+v and %+v are not mirror images", p, a, b)
		}
		if !a.holds(p) || a.Lo < 0 || a.Hi > 1 || a.Hi-a.Lo < 0.2 {
			t.Errorf("p %v: %+v", p, a)
		}
		if more := ImprovementInterval(p, 30, 50, 0.95); more.Hi-more.Lo > a.Hi-a.Lo {
			t.Errorf("p %v: more runs have the wider interval %+v", p, more)
		}
	}
}

func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

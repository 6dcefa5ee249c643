package stat

import (
	"math"
	"slices"
	"testing"
)

func TestClusterMean(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name     string
		xs       []float64
		clusters []string
		want     Mean
	}{
		// deviations ±0.5: SE = sqrt(4/3 · 4·0.25) / 4 = sqrt(4/3)/4
		{"no clusters", []float64{0, 1, 1, 0}, nil, Mean{4, 4, 0.5, math.Sqrt(4.0/3) / 4, 3}},
		// cluster sums of deviations 0, 1, -1: SE = sqrt(3/2 · 2) / 6
		{"pairs", []float64{1, 0, 1, 1, 0, 0}, []string{"a", "a", "b", "b", "c", "c"}, Mean{6, 3, 0.5, math.Sqrt(3) / 6, 2}},
		// sums: a 0.5+0.5 = 1, each other -0.5: SE = sqrt(3/2 · 1.5) / 4 = 1.5/4
		{"an empty name is alone", []float64{1, 0, 1, 0}, []string{"a", "", "a", ""}, Mean{4, 3, 0.5, 0.375, 2}},
		{"one cluster", []float64{1, 0}, []string{"a", "a"}, Mean{2, 1, 0.5, inf, 0}},
		{"one value", []float64{0.25}, nil, Mean{1, 1, 0.25, inf, 0}},
		{"all equal", []float64{0.5, 0.5, 0.5}, nil, Mean{3, 3, 0.5, 0, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ClusterMean(tt.xs, tt.clusters)
			if got.N != tt.want.N || got.G != tt.want.G ||
				!near(got.Value, tt.want.Value, 1e-15) || !near(got.SE, tt.want.SE, 1e-15) || got.DF != tt.want.DF {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Student's t quantiles of the usual table (Abramowitz and Stegun 26.10).
// The sum of equal numbers may round. Taken for spread, the rounding would make any difference significant.
func TestEqualValues(t *testing.T) {
	for _, v := range []float64{0.1, 0.7, -0.172, 1e6 + 0.1} {
		for n := 2; n < 20; n++ {
			x := slices.Repeat([]float64{v}, n)
			m := ClusterMean(x, nil)
			if m.SE != 0 {
				t.Errorf("%d times %v: SE %v, want 0", n, v, m.SE)
			}
			if p, ok := TTest(m); ok {
				t.Errorf("%d times %v: p = %v, want none", n, v, p)
			}
			if p, ok := TTest(Welch(m, ClusterMean([]float64{0, 0, 0}, nil))); ok {
				t.Errorf("%d times %v against zeros: p = %v, want none", n, v, p)
			}
			if e, _ := EffectSize(x); !math.IsInf(e, 0) {
				t.Errorf("%d times %v: effect %v, want ±Inf", n, v, e)
			}
		}
	}
}

func TestTInterval(t *testing.T) {
	tests := []struct {
		G     int
		level float64
		t     float64
	}{
		{2, 0.95, 12.7062047},
		{3, 0.95, 4.3026527},
		{11, 0.95, 2.2281389},
		{11, 0.90, 1.8124611},
		{101, 0.99, 2.6258905},
	}
	for _, tt := range tests {
		iv, ok := TInterval(Mean{N: tt.G, G: tt.G, Value: 0.5, SE: 0.01, DF: float64(tt.G - 1)}, tt.level)
		if !ok || !near(iv.Lo, 0.5-0.01*tt.t, 1e-8) || !near(iv.Hi, 0.5+0.01*tt.t, 1e-8) {
			t.Errorf("G=%d level=%v: %+v, want 0.5 ± 0.01·%v", tt.G, tt.level, iv, tt.t)
		}
	}
	if iv, ok := TInterval(Mean{N: 5, G: 1, Value: 0.5, SE: math.Inf(1)}, 0.95); ok {
		t.Errorf("one cluster: %+v, want no interval", iv)
	}
}

func TestWilson(t *testing.T) {
	tests := []struct {
		c, n   int
		lo, hi float64
	}{
		// z = 1.959964, z² = 3.841459: centre 0.8+0.192073, half z·sqrt(0.016+0.009604),
		// both over 1.384146
		{8, 10, 0.490162, 0.943318},
		// lo 0, hi z²/(n+z²)
		{0, 10, 0, 3.841459 / 13.841459},
		{10, 10, 10 / 13.841459, 1},
		{1, 1, 1 / 4.841459, 1},
	}
	for _, tt := range tests {
		iv := Wilson(tt.c, tt.n, 0.95)
		if !near(iv.Lo, tt.lo, 1e-6) || !near(iv.Hi, tt.hi, 1e-6) {
			t.Errorf("Wilson(%d, %d) = [%.6f, %.6f], want [%.6f, %.6f]", tt.c, tt.n, iv.Lo, iv.Hi, tt.lo, tt.hi)
		}
	}
}

func TestUnanimous(t *testing.T) {
	for _, tt := range []struct {
		shares   []float64
		clusters []string
		lo, hi   float64
		ok       bool
	}{
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil, 0, 3.841459 / 13.841459, true},
		{[]float64{1, 1, 1}, []string{"a", "a", "a"}, 1 / 4.841459, 1, true}, // one cluster
		{[]float64{0, 0, 0}, []string{"a", "a", ""}, 0, 3.841459 / 5.841459, true},
		{[]float64{0, 1}, nil, 0, 0, false},
		{[]float64{0.5, 0.5}, nil, 0, 0, false}, // no spread, but not a proportion's end
		{nil, nil, 0, 0, false},
	} {
		iv, ok := Unanimous(tt.shares, tt.clusters, 0.95)
		if ok != tt.ok || !near(iv.Lo, tt.lo, 1e-6) || !near(iv.Hi, tt.hi, 1e-6) {
			t.Errorf("%v %q: [%.6f, %.6f] %v, want [%.6f, %.6f] %v", tt.shares, tt.clusters, iv.Lo, iv.Hi, ok, tt.lo, tt.hi, tt.ok)
		}
	}
}

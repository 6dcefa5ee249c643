package stat

import (
	"math"
	"testing"
)

func TestGPassAtK(t *testing.T) {
	tests := []struct {
		n, c, k int
		tau     float64
		want    float64
	}{
		{16, 8, 4, 0.5, 0.715384615384615},   // 1 - (C(8,4) + 8·C(8,3))/C(16,4) = 1 - 518/1820
		{16, 8, 4, 1, 0.038461538461538},     // C(8,4)/C(16,4) = 70/1820
		{16, 12, 8, 0.75, 0.715384615384615}, // at least six of eight
		{16, 3, 4, 0, 0.607142857142857},     // pass@4
		{10, 7, 10, 0.7, 1},                  // 0.7·10 is seven, not eight
		{5, 2, 3, 1, 0},
	}
	for _, tt := range tests {
		got, err := GPassAtK(tt.n, tt.c, tt.k, tt.tau)
		if err != nil || !near(got, tt.want, 1e-12) {
			t.Errorf("GPassAtK(%d, %d, %d, %v) = %.15f, %v, want %.15f", tt.n, tt.c, tt.k, tt.tau, got, err, tt.want)
		}
	}
}

func TestAllAtK(t *testing.T) {
	tests := []struct {
		n, c, k int
		want    float64
	}{
		{16, 8, 4, 70.0 / 1820},
		{16, 8, 1, 0.5},
		{4, 4, 4, 1},
		{4, 1, 2, 0},
	}
	for _, tt := range tests {
		if got, err := AllAtK(tt.n, tt.c, tt.k); err != nil || !near(got, tt.want, 1e-15) {
			t.Errorf("AllAtK(%d, %d, %d) = %v, %v, want %v", tt.n, tt.c, tt.k, got, err, tt.want)
		}
	}
}

// k = 4: τ = 3/4 and 1. (2/4)·((8·C(8,3) + C(8,4)) + C(8,4))/1820
func TestMeanGPassAtK(t *testing.T) {
	got, err := MeanGPassAtK(16, 8, 4)
	if want := 0.5 * (8*56 + 70 + 70) / 1820; err != nil || !near(got, want, 1e-12) {
		t.Errorf("MeanGPassAtK(16, 8, 4) = %v, %v, want %v", got, err, want)
	}
}

// The ends of τ are pass@k and pass^k, whatever the counts.
func TestGPassEnds(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				pass, _ := PassAtK(n, c, k)
				all, _ := AllAtK(n, c, k)
				low, err0 := GPassAtK(n, c, k, 0)
				high, err1 := GPassAtK(n, c, k, 1)
				if err0 != nil || err1 != nil || !near(low, pass, 1e-12) || !near(high, all, 1e-12) {
					t.Errorf("n, c, k = %d, %d, %d: τ=0 %v, τ=1 %v, want %v and %v", n, c, k, low, high, pass, all)
				}
			}
		}
	}
}

func TestGPassRefuses(t *testing.T) {
	for _, tau := range []float64{-0.1, 1.1, math.NaN()} {
		if got, err := GPassAtK(4, 2, 2, tau); err == nil {
			t.Errorf("GPassAtK with τ = %v = %v, want an error", tau, got)
		}
	}
	for _, k := range []int{0, 5} {
		if got, err := AllAtK(4, 2, k); err == nil {
			t.Errorf("AllAtK(4, 2, %d) = %v, want an error", k, got)
		}
		if got, err := MeanGPassAtK(4, 2, k); err == nil {
			t.Errorf("MeanGPassAtK(4, 2, %d) = %v, want an error", k, got)
		}
	}
}

package stat

import (
	"testing"
)

func TestPassAtK(t *testing.T) {
	tests := []struct {
		n, c, k int
		want    float64
	}{
		{16, 1, 1, 0.0625},
		{16, 3, 1, 0.1875},
		{16, 3, 4, 0.607142857142857}, // 1 - C(13,4)/C(16,4) = 1 - 715/1820
		{16, 3, 8, 0.9},               // 1 - C(13,8)/C(16,8) = 1 - 1287/12870
		{16, 3, 16, 1},
		{16, 13, 4, 1}, // only three are wrong
		{64, 5, 16, 0.775421167938},
		{200, 7, 100, 0.992991117241812}, // 1 - C(193,100)/C(200,100) in exact fractions
		{5, 2, 3, 0.9},                   // 1 - C(3,3)/C(5,3) = 1 - 1/10
		{4, 0, 2, 0},
		{1, 1, 1, 1},
	}
	for _, tt := range tests {
		got, err := PassAtK(tt.n, tt.c, tt.k)
		if err != nil || !near(got, tt.want, 1e-12) {
			t.Errorf("PassAtK(%d, %d, %d) = %.15f, %v, want %.15f", tt.n, tt.c, tt.k, got, err, tt.want)
		}
	}
}

func TestPassAtKRefuses(t *testing.T) {
	tests := []struct{ n, c, k int }{
		{4, 1, 5},  // more than there are samples
		{0, 0, 1},  // no samples
		{4, 5, 1},  // more correct than sampled
		{4, -1, 1}, //
		{4, 1, 0},  //
	}
	for _, tt := range tests {
		if got, err := PassAtK(tt.n, tt.c, tt.k); err == nil {
			t.Errorf("PassAtK(%d, %d, %d) = %v, want an error", tt.n, tt.c, tt.k, got)
		}
	}
}

// The estimate is the share of k-subsets of the samples with a correct one,
// counted here one by one.
func TestPassAtKCountsSubsets(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				hits, total := 0, 0
				for mask := range 1 << n {
					if ones(mask) != k {
						continue
					}
					total++
					if mask&(1<<c-1) != 0 { // samples 0 to c-1 are the correct ones
						hits++
					}
				}
				got, err := PassAtK(n, c, k)
				if want := float64(hits) / float64(total); err != nil || !near(got, want, 1e-12) {
					t.Errorf("PassAtK(%d, %d, %d) = %v, %v, want %v", n, c, k, got, err, want)
				}
			}
		}
	}
}

func ones(mask int) int {
	n := 0
	for ; mask > 0; mask &= mask - 1 {
		n++
	}
	return n
}

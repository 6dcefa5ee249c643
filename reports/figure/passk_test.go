package figure

import (
	"testing"
)

func TestKTicks(t *testing.T) {
	for _, tt := range []struct {
		ks   []int
		want string
	}{
		{[]int{16, 1, 4, 4, 8, 2}, "1 2 4 8 16"},
		{[]int{1, 2, 3, 4, 5, 6}, "1 2 4"},
		{[]int{3, 10}, "3 10"},
		{nil, ""},
	} {
		if got := tickLabels(kTicks(tt.ks)); got != tt.want {
			t.Errorf("kTicks(%v) = %q, want %q", tt.ks, got, tt.want)
		}
	}
}

func TestDivergence(t *testing.T) {
	for _, tt := range []struct {
		kl   []float64
		want string
	}{
		{nil, "no policy"},
		{[]float64{0.021}, "KL(target ‖ π) = 0.021 nats"},
		{[]float64{0.01, 0.02, 0.06}, "KL(target ‖ π) = 0.030 nats (0.010 to 0.060)"},
	} {
		if got := (DistributionArm{KL: tt.kl}).divergence("KL(target ‖ π) = ", " nats"); got != tt.want {
			t.Errorf("divergence of %v = %q, want %q", tt.kl, got, tt.want)
		}
	}
}

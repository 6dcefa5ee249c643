package figure

import (
	"testing"
)

func TestBins(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   []float64 // edges; first, second, last where there are many
	}{
		{"whole numbers", []float64{0, 1, 3}, []float64{-0.5, 0.5, 1.5, 2.5, 3.5}},
		{"one whole number", []float64{7, 7}, []float64{6.5, 7.5}},
		{"one broken number", []float64{0.5}, []float64{0.475, 0.525}},
		{"zero to one", []float64{0, 0.31, 1}, []float64{0, 0.05, 1.05}}, // 1/30 is nearer to 0.05 than to 0.02
		{"many whole numbers", []float64{13, 212}, []float64{10, 15, 215}},
		{"negative", []float64{-1.5, 1.5}, []float64{-1.5, -1.4, 1.6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			edges := binsFor(extentOf(Axis{}, tt.values...)).edges()
			if len(tt.want) == 3 {
				edges = []float64{edges[0], edges[1], edges[len(edges)-1]}
			}
			same(t, "edges", edges, tt.want)
		})
	}
}

// Every finite value is in one bin: a value on an edge belongs to the bin above.
func TestBar(t *testing.T) {
	b := bins{from: 0, width: 0.1, n: 11}
	got := b.bar(HistSet{"step 1", []float64{0, 0.05, 0.3, 0.30000000000000004, 1, nan}})
	want := make([]number, 11)
	want[0], want[3], want[10] = 0.4, 0.4, 0.2
	same(t, "share", got.Share, want)
	if got.N != 5 || got.Label != "step 1" {
		t.Errorf("n = %d, label %q; want 5 and %q", got.N, got.Label, "step 1")
	}
	if empty := b.bar(HistSet{}); empty.N != 0 || empty.Share[0] != 0 {
		t.Errorf("an empty set has n = %d and share %v", empty.N, empty.Share[0])
	}
}

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
		if got := (DistributionArm{KL: tt.kl}).divergence(); got != tt.want {
			t.Errorf("divergence of %v = %q, want %q", tt.kl, got, tt.want)
		}
	}
}

package rollout

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMicroBatches(t *testing.T) {
	tests := []struct {
		name    string
		lengths []int
		budget  int
		want    []int
	}{
		{"none", nil, 10, nil},
		{"one", []int{3}, 10, []int{1}},
		{"exact fit", []int{4, 6, 1}, 10, []int{2, 3}},
		{"too long for the budget", []int{2, 30, 2}, 10, []int{1, 2, 3}},
		{"each alone", []int{6, 6, 6}, 10, []int{1, 2, 3}},
	}
	for _, tt := range tests {
		if got := MicroBatches(tt.lengths, tt.budget); !slices.Equal(got, tt.want) {
			t.Errorf("%s: MicroBatches(%v, %d) = %v, want %v", tt.name, tt.lengths, tt.budget, got, tt.want)
		}
	}
}

// Every sequence is in one run, in order, and no run could have taken the next
// sequence too.
func TestMicroBatchesCoverInOrder(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		lengths := make([]int, 1+r.IntN(40))
		for i := range lengths {
			lengths[i] = 1 + r.IntN(50)
		}
		budget := 1 + r.IntN(120)
		ends := MicroBatches(lengths, budget)
		if ends[len(ends)-1] != len(lengths) {
			t.Fatalf("seed %d: ends %v miss the last of %d sequences", seed, ends, len(lengths))
		}
		start := 0
		for _, end := range ends {
			if end <= start {
				t.Fatalf("seed %d: empty run in %v", seed, ends)
			}
			sum := 0
			for _, n := range lengths[start:end] {
				sum += n
			}
			if sum > budget && end-start > 1 {
				t.Fatalf("seed %d: run %d:%d has %d tokens, budget %d", seed, start, end, sum, budget)
			}
			if end < len(lengths) && sum+lengths[end] <= budget {
				t.Fatalf("seed %d: run %d:%d had room for the next", seed, start, end)
			}
			start = end
		}
	}
}

package query

import (
	"testing"

	"exp/experiments/store"
)

func TestSeeds(t *testing.T) {
	tests := []struct {
		seeds []int64
		want  string
	}{
		{nil, ""}, {[]int64{7}, "7"}, {[]int64{2, 0, 1}, "0-2"}, {[]int64{5, 1, 2, 9, 10}, "1-2,5,9-10"}, {[]int64{3, 3}, "3"},
	}
	for _, tt := range tests {
		var runs []store.Run
		for _, s := range tt.seeds {
			runs = append(runs, store.Run{Seed: s})
		}
		if got := Seeds(runs); got != tt.want {
			t.Errorf("Seeds(%v) = %q, want %q", tt.seeds, got, tt.want)
		}
	}
}

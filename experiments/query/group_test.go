package query

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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

// Lists are one group only if they have the same elements.
func TestGroups(t *testing.T) {
	values := []any{[]any{"a b"}, []any{"a", "b"}, []any{"a b"}, 1., "1", nil, 1.}
	l := &List{}
	for i, v := range values {
		l.Runs, l.Values = append(l.Runs, store.Run{ID: int64(i)}), append(l.Values, []any{v})
	}
	var got [][]int64
	for _, g := range l.Groups(0) {
		var ids []int64
		for _, r := range g.Runs {
			ids = append(ids, r.ID)
		}
		got = append(got, ids)
	}
	if diff := cmp.Diff([][]int64{{0, 2}, {1}, {3, 6}, {4}, {5}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

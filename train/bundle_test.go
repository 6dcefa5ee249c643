package train

import (
	"slices"
	"testing"

	"exp/train/rollout"
)

// Neighbours with one prompt are computed together while they fit; a completion behind
// another counts two tokens at least.
func TestBundles(t *testing.T) {
	type row struct {
		prompt     int // first token of three
		completion int // length
	}
	tests := []struct {
		name  string
		rows  []row
		lo    int
		limit int
		want  []bundle
	}{
		{"each its own prompt", []row{{1, 4}, {2, 5}, {1, 6}}, 0, 100, []bundle{{1, 7, 1}, {2, 8, 1}, {3, 9, 1}}},
		{"two groups", []row{{1, 4}, {1, 5}, {2, 6}, {2, 7}}, 0, 100, []bundle{{2, 12, 2}, {4, 16, 2}}},
		{"a part of the batch", []row{{1, 4}, {1, 5}, {1, 6}, {2, 7}}, 1, 100, []bundle{{3, 14, 2}, {4, 10, 1}}},
		{"a full bundle", []row{{1, 4}, {1, 5}, {1, 6}, {1, 7}}, 0, 12, []bundle{{2, 12, 2}, {3, 9, 1}, {4, 10, 1}}},
		{"longer than the limit alone", []row{{1, 40}, {1, 5}}, 0, 12, []bundle{{1, 43, 1}, {2, 8, 1}}},
		{"completions of one token", []row{{1, 1}, {1, 1}, {1, 1}}, 0, 7, []bundle{{2, 6, 2}, {3, 4, 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &batch{rows: []int{0}}
			for _, r := range tt.rows {
				tr := &Trajectory{Prompt: []int32{int32(r.prompt), 0, 0}, Completion: &rollout.Completion{Tokens: make([]int32, r.completion)}}
				b.traj, b.context = append(b.traj, tr), append(b.context, 3)
				b.rows = append(b.rows, b.rows[len(b.rows)-1]+r.completion)
			}
			got := b.bundles(tt.lo, len(tt.rows), tt.limit)
			if !slices.Equal(got, tt.want) {
				t.Errorf("bundles %v, want %v", got, tt.want)
			}
			m := b.sequences(tt.lo, got)
			at := 0
			for g, u := range got {
				for i := tt.lo + at; i < u.end; i++ {
					if m.Group[at] != int32(g) || m.Tokens[m.Offsets[at]] != int32(tt.rows[i].prompt) {
						t.Errorf("sequence %d: group %d, prompt %d", at, m.Group[at], m.Tokens[m.Offsets[at]])
					}
					at++
				}
			}
			if at != len(m.Prompt) {
				t.Errorf("%d sequences, want %d", len(m.Prompt), at)
			}
		})
	}
}

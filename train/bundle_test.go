package train

import (
	"slices"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// A completion of several conversations is a bundle of its own, with a sequence for each of them.
func TestBundlesOfConversations(t *testing.T) {
	all := []Trajectory{}
	for i, later := range [][]rollout.Later{nil, nil, {{Start: 1, Tokens: []int32{8, 9}}, {Start: 2, Tokens: []int32{7}}}, nil, nil} {
		all = append(all, Trajectory{Problem: &rollout.Problem{ID: "p"}, Sample: i, Prompt: []int32{1, 2, 3},
			Verdict:    rollout.Verdict{Status: rollout.Graded},
			Completion: &rollout.Completion{Tokens: []int32{4, 5, 6, 6}, LogProbs: make([]float32, 4), Asked: &rollout.Asked{Later: later}}})
	}
	b := newBatch(all, rl.Overlong{MaxResponse: 4, Buffer: 2, Penalty: 1}, nil)
	got := b.bundles(0, 5, 100)
	if want := []bundle{{2, 11, 2}, {3, 10, 3}, {5, 11, 2}}; !slices.Equal(got, want) {
		t.Errorf("bundles %v, want %v", got, want)
	}
	if c := capacityOf(got); c.Tokens != 32 || c.Sequences != 7 {
		t.Errorf("%+v", c)
	}
	if n := b.lengths(1, 4); !slices.Equal(n, []int{7, 10, 7}) {
		t.Errorf("lengths %v", n)
	}
	m := b.sequences(0, got)
	if want := []int32{1, 2, 3, 4, 8, 9, 5, 7, 6, 6}; !slices.Equal(m.Group, []int32{0, 0, 1, 2, 3, 4, 4}) ||
		!slices.Equal(m.Prompt, []int32{3, 3, 3, 2, 1, 3, 3}) || !slices.Equal(m.Tokens[14:24], want) {
		t.Errorf("%+v", m)
	}
	if want := []float32{-1, -1, 0, -1, -1}; !slices.Equal(b.score, want) { // the longest conversation counts
		t.Errorf("scores %v, want %v", b.score, want)
	}
}

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

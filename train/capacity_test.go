package train

import (
	"math/rand/v2"
	"testing"

	"exp/train/rollout"
)

// The workspace holds every micro-batch of a step, however long its sequences are. It is no larger
// than the longest completions need.
func TestCapacity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		prompt, most := 1+rng.IntN(60), 1+rng.IntN(300)
		r := Rows{Update: 1 + rng.IntN(20), Samples: 1 + rng.IntN(12), Slices: 1 << rng.IntN(5), Longest: prompt + most,
			New: most, Budget: 1 + rng.IntN(4000)}
		r.Problems = r.Update * (1 + rng.IntN(3))
		if rng.IntN(2) > 0 {
			r.Conversations = 1 + rng.IntN(3)
			r.New, r.Longest = most+(r.Conversations-1)*(prompt+most), r.Conversations*(prompt+most)
		}
		scored, trained := r.Scored(), r.Trained()
		if trained.Tokens > scored.Tokens || trained.Sequences > scored.Sequences {
			t.Errorf("%+v: training needs %+v, scoring %+v", r, trained, scored)
		}
		for _, shortest := range []int{1, most} {
			b := &batch{rows: []int{0}}
			for i := range r.Problems * r.Samples {
				n := shortest + rng.IntN(most-shortest+1)
				ids := make([]int32, prompt)
				ids[0] = int32(i / r.Samples)
				c, context := &rollout.Completion{Tokens: make([]int32, n)}, prompt
				if r.Conversations > 1 {
					asked := &rollout.Asked{Tokens: ids}
					for range rng.IntN(r.Conversations) {
						asked.Later = append(asked.Later, rollout.Later{Start: len(c.Tokens), Tokens: make([]int32, prompt)})
						c.Tokens, context = append(c.Tokens, make([]int32, n)...), context+prompt
					}
					c.Asked = asked
				}
				b.traj = append(b.traj, &Trajectory{Prompt: ids, Completion: c})
				b.context, b.score = append(b.context, context), append(b.score, 0)
				b.rows = append(b.rows, b.rows[i]+len(c.Tokens))
			}
			b.mask = make([]bool, b.rows[len(b.rows)-1])
			largest := func(lo, hi int) (tokens, sequences int) {
				all := b.bundles(lo, hi, r.limit())
				var lengths []int
				for _, u := range all {
					lengths = append(lengths, u.tokens)
				}
				first := 0
				for _, end := range rollout.MicroBatches(lengths, r.Budget) {
					c := capacityOf(all[first:end])
					tokens, sequences = max(tokens, c.Tokens), max(sequences, c.Sequences)
					first, lo = end, all[end-1].end
				}
				return tokens, sequences
			}
			if n, s := largest(0, len(b.traj)); n > scored.Tokens || s > scored.Sequences {
				t.Errorf("%+v: %d tokens of %d sequences are scored, planned %+v", r, n, s, scored)
			}
			s := b.slice(0, r.Update*r.Samples, r.Slices, r.limit())
			b = s.batch
			for i := range s.ends {
				if n, q := largest(s.start(i), s.ends[i]); n > trained.Tokens || q > trained.Sequences {
					t.Errorf("%+v: slice %d of %d tokens and %d sequences, planned %+v", r, i, n, q, trained)
				}
			}
		}
	}
	r := Rows{Problems: 128, Update: 32, Samples: 8, Slices: 8, Longest: 88, New: 40, Budget: 4096}
	if scored, trained := r.Scored(), r.Trained(); scored.Tokens != 4096 || trained.Tokens > 1850 || trained.Sequences > 256 {
		t.Errorf("%+v and %+v", scored, trained)
	}
}

package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"exp/train/ranks"
	"exp/train/rollout"
)

// tokensOf returns a batch of rows with different prompts and these lengths in tokens, a
// prompt token included.
func tokensOf(lengths ...int) *batch {
	b := &batch{rows: []int{0}}
	for i, n := range lengths {
		b.traj = append(b.traj, &Trajectory{Prompt: []int32{int32(i)}, Completion: &rollout.Completion{}})
		b.context, b.score = append(b.context, 1), append(b.score, float32(i))
		b.rows = append(b.rows, b.rows[i]+n-1)
	}
	n := b.rows[len(lengths)]
	b.mask = make([]bool, n)
	for _, x := range []*[]float32{&b.roll, &b.old, &b.reward, &b.adv, &b.ret} {
		*x = make([]float32, n)
	}
	for k := range b.roll {
		b.roll[k] = float32(k)
	}
	return b
}

// Work goes longest first to the slice with the least so far; rows keep their order within a
// slice. Of 10, 30, 20, 30, 5 tokens on two slices: 30 (row 1) to slice 0, 30 (row 3) to 1,
// 20 to 0, 10 to 1, 5 to 1.
func TestSlices(t *testing.T) {
	tests := []struct {
		lengths []int
		slices  int
		rows    []float32 // numbers of the rows in their new order
		ends    []int
	}{
		{[]int{10, 30, 20, 30, 5}, 1, []float32{0, 1, 2, 3, 4}, []int{5}},
		{[]int{10, 30, 20, 30, 5}, 2, []float32{1, 2, 0, 3, 4}, []int{2, 5}},
		{[]int{7, 7, 7}, 2, []float32{0, 2, 1}, []int{2, 3}},
		{[]int{5, 9}, 4, []float32{1, 0}, []int{1, 2, 2, 2}},
	}
	for _, tt := range tests {
		got := tokensOf(tt.lengths...).slice(0, len(tt.lengths), tt.slices, 1)
		if !slices.Equal(got.score, tt.rows) || !slices.Equal(got.ends, tt.ends) {
			t.Errorf("%v in %d slices: rows %v, ends %v; want %v, %v", tt.lengths, tt.slices, got.score, got.ends, tt.rows,
				tt.ends)
		}
	}
	// A part of the batch, and its tokens with it: row 2 begins at token 9+29 = 38.
	part := tokensOf(10, 30, 20, 30).slice(1, 4, 2, 1)
	if !slices.Equal(part.score, []float32{1, 2, 3}) || !slices.Equal(part.ends, []int{2, 3}) {
		t.Errorf("rows 1 to 3: %v, ends %v", part.score, part.ends)
	}
	if at := part.rows[1]; part.roll[at] != 38 || part.rows[3]-part.rows[2] != 29 {
		t.Errorf("rows 1 to 3: row 2 begins with token %v; rows %v", part.roll[at], part.rows)
	}
	if got := part.tokenEnds(2); !slices.Equal(got, []int{48, 77}) { // 29+19, +29
		t.Errorf("tokens end at %v", got)
	}
	if got := part.present(); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("present %v", got)
	}
}

// Rows that share a prompt stay in one slice while a bundle holds them.
func TestSlicesKeepBundles(t *testing.T) {
	b := tokensOf(4, 4, 4, 4, 4, 4)
	for i, tr := range b.traj {
		tr.Prompt = []int32{int32(i / 3)}
	}
	if got := b.slice(0, 6, 4, 100); !slices.Equal(got.ends, []int{3, 6, 6, 6}) {
		t.Errorf("two prompts of three rows end at %v", got.ends)
	}
	if got := b.slice(0, 6, 4, 8); !slices.Equal(got.ends, []int{2, 4, 5, 6}) {
		t.Errorf("cut after two rows they end at %v, rows %v", got.ends, got.score)
	}
}

// The number of slices changes the rounding of gradients alone: the first update's loss and
// completions are the same, and one slice sums as ever.
func TestSlicesRound(t *testing.T) {
	run := func(kind Kind, n int) *toyRun {
		r := rankedToy(t, kind)
		r.cfg.Slices, r.cfg.Steps, r.cfg.Epochs, r.cfg.PromptsPerUpdate = n, 1, 1, 18
		r.run()
		return r
	}
	for _, kind := range []Kind{GRPO, PPO, FlowRL, Prime} {
		one, eight := run(kind, 1), run(kind, 8)
		a, b := one.params(), eight.params()
		if at := differentBit(a, b); at < 0 {
			t.Errorf("%s: 8 slices give the bits of one: the tree is not used", kind)
		}
		far := 0.0
		for i := range a {
			far = max(far, math.Abs(float64(a[i]-b[i])))
		}
		t.Logf("%s: parameters differ by up to %g", kind, far)
		for _, m := range one.steps[0].Metrics {
			x, y := m.Value, metric(t, eight.steps[0], m.Name)
			if d := x - y; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s: %s is %v with one slice, %v with 8", kind, m.Name, x, y)
			}
		}
	}
	for _, n := range []int{0, 3, 2 * ranks.MaxSlices} {
		r := rankedToy(t, GRPO)
		r.cfg.Slices = n
		if err := r.cfg.Validate(); err == nil {
			t.Error(fmt.Sprint(n, " slices are accepted"))
		}
	}
}

// BenchmarkSlices is the policy's update of a Countdown recipe: 32 problems, 8 completions
// each, 0.8 M parameters. What 8 slices cost beyond one is memory traffic.
func BenchmarkSlices(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint("slices=", n), func(b *testing.B) {
			r := newToyRun(b, GRPO, 1)
			m, c := &r.model, &r.cfg
			m.Layers, m.Width, m.Heads, m.KVHeads, m.Head, m.FFN, m.MaxPositions = 4, 128, 4, 2, 32, 384, 128
			r.problems = nil
			for i := range 32 {
				r.problems = append(r.problems, rollout.Problem{ID: fmt.Sprint(i), Prompt: "ABCDEABCDEABCDEABCDE"[:10+i%10]})
			}
			r.options.MaxTokens = 128
			c.Slices, c.PromptsPerStep, c.PromptsPerUpdate, c.Sampling.MaxNewTokens, c.MicroBatchTokens = n, 32, 32, 40, 4096
			tr := r.start()
			got, err := tr.collect(b.Context(), 1, newStopwatch(tr.Clock))
			if err != nil {
				b.Fatal(err)
			}
			batch := got.batch(tr.cfg)
			batch.ref = batch.old
			for b.Loop() {
				tr.updateActor(batch, 1)
			}
		})
	}
}

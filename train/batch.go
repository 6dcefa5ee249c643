package train

import (
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// batch holds the graded trajectories of a step, in the order of their problems,
// as the flat arrays that package rl works on. Tokens are completion tokens; all of
// them are trained on.
type batch struct {
	traj  []*Trajectory // [B]
	group []int         // [B] number of the problem within the step
	rows  rl.Rows       // [B+1]
	mask  []bool        // [N]

	old, ref  []float32 // [N] log-probs before the first update, and of the reference
	value     []float32 // [N] the critic's, before its first update
	reward    []float32 // [N] token rewards: the score on the last token, less KL
	adv, ret  []float32 // [N]
	score     []float32 // [B] rewards of the verdicts
	promptLen []int     // [B]
}

// newBatch lays out the graded ones of a step's trajectories.
func newBatch(all []Trajectory) *batch {
	b := &batch{rows: rl.Rows{0}}
	group := -1
	var last *rollout.Problem
	for i := range all {
		t := &all[i]
		if t.Problem != last || i == 0 {
			group++
			last = t.Problem
		}
		if t.Verdict.Status != rollout.Graded {
			continue
		}
		b.traj = append(b.traj, t)
		b.group = append(b.group, group)
		b.score = append(b.score, float32(t.Verdict.Reward))
		b.promptLen = append(b.promptLen, len(t.Prompt))
		b.old = append(b.old, t.Completion.LogProbs...)
		b.rows = append(b.rows, len(b.old))
	}
	n := len(b.old)
	b.mask = make([]bool, n)
	for i := range b.mask {
		b.mask[i] = true
	}
	b.reward, b.adv, b.ret = make([]float32, n), make([]float32, n), make([]float32, n)
	for i, s := range b.score {
		if end := b.rows[i+1]; end > b.rows[i] {
			b.reward[end-1] = s
		}
	}
	return b
}

// miniBatches returns the row ranges of mini-batches of prompts problems each. A
// range may be short, or empty, where completions were not graded.
func (b *batch) miniBatches(prompts, updates int) [][2]int {
	out := make([][2]int, updates)
	row := 0
	for u := range out {
		lo := row
		for row < len(b.group) && b.group[row] < (u+1)*prompts {
			row++
		}
		out[u] = [2]int{lo, row}
	}
	return out
}

// lengths returns the number of tokens, prompts included, of rows lo to hi.
func (b *batch) lengths(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = b.promptLen[lo+i] + b.rows[lo+i+1] - b.rows[lo+i]
	}
	return out
}

// sequences packs rows lo to hi for the model.
func (b *batch) sequences(lo, hi int) model.Batch {
	out := model.Batch{Offsets: make([]int32, 1, hi-lo+1), Prompt: make([]int32, 0, hi-lo)}
	for _, t := range b.traj[lo:hi] {
		out.Tokens = append(append(out.Tokens, t.Prompt...), t.Completion.Tokens...)
		out.Offsets = append(out.Offsets, int32(len(out.Tokens)))
		out.Prompt = append(out.Prompt, int32(len(t.Prompt)))
	}
	return out
}

// part returns rows lo to hi as package rl takes them; logProb is of these rows
// alone.
func (b *batch) part(lo, hi int, logProb []float32) *rl.Batch[float32] {
	n0, n1 := b.rows[lo], b.rows[hi]
	p := &rl.Batch[float32]{
		Rows: make(rl.Rows, hi-lo+1), Mask: b.mask[n0:n1], Coef: make([]float64, n1-n0),
		LogProb: logProb, OldLogProb: b.old[n0:n1], Adv: b.adv[n0:n1],
	}
	for i := range p.Rows {
		p.Rows[i] = b.rows[lo+i] - n0
	}
	if b.ref != nil {
		p.RefLogProb = b.ref[n0:n1]
	}
	return p
}

// counts returns what means over the mini-batch of rows lo to hi divide by. Rows
// are the nominal ones, as in verl.
func (b *batch) counts(lo, hi, nominal int, scale float64) rl.Counts {
	return rl.Counts{Tokens: b.rows[hi] - b.rows[lo], Rows: max(nominal, hi-lo), Scale: scale}
}

// scores sets dst to the row sums of the token rewards.
func (b *batch) rewardSums() []float32 {
	s := make([]float32, len(b.traj))
	rl.RowSums(s, b.reward, b.rows)
	return s
}

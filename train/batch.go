package train

import (
	"slices"

	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// batch holds the graded trajectories of a step, in problem order, as the flat arrays that
// package rl works on. Tokens are completion tokens; those that the policy sampled are trained on.
type batch struct {
	traj  []*Trajectory // [B]
	group []int         // [B] number of the problem within the step
	rows  rl.Rows       // [B+1]
	mask  []bool        // [N] trained tokens: all sampled ones that rollout correction does not reject

	roll     []float32 // [N] log-probs the sampler recorded
	old, ref []float32 // [N] log-probs before the first update, and of the reference
	taught   taught    // the reference's likeliest tokens, if the policy learns them
	entropy  []float32 // [N] before the first update; nil: as the sampler recorded

	// [N] Σ_v π(v)² of the policy before the step, and its log-probs where they are not old; nil unless needed.
	sumPiSquared, own []float32
	weight            []float32        // [N] rollout-correction weights; nil means 1
	value             []float32        // [N] the critic's, before its first update
	reward            []float32        // [N] token rewards: see place; less KL
	process           []float32        // [N] process rewards; nil unless needed
	adv, ret          []float32        // [N]
	target            []rl.PrimeTarget // [B] of the process reward model's loss; nil unless needed
	score             []float32        // [B] verdict rewards less the overlong penalty
	rest              []float64        // [B] parts of the scores that turns did not earn
	baseline          []float32        // [B] scores of greedy completions, or tracked values; nil unless needed
	context           []int            // [B] tokens of the prompts of a row's conversations
	answer            []bool           // [N] tokens of reference answers that are learned; nil: none are
	paired            bool             // rows 2k and 2k+1 are a pair with the same prompt, and always together
}

// newBatch lays out a step's graded trajectories. With baselines of problems, it leaves out problems
// without one.
func newBatch(all []Trajectory, overlong rl.Overlong, baseline map[*rollout.Problem]float64) *batch {
	tokens := 0
	for i := range all {
		tokens += len(all[i].Completion.LogProbs)
	}
	b := &batch{rows: make(rl.Rows, 1, len(all)+1), traj: make([]*Trajectory, 0, len(all)),
		roll: make([]float32, 0, tokens)}
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
		if baseline != nil {
			g, ok := baseline[t.Problem]
			if !ok {
				continue
			}
			b.baseline = append(b.baseline, float32(g))
		}
		b.traj = append(b.traj, t)
		b.group = append(b.group, group)
		b.score = append(b.score, float32(scoreOf(t.Verdict, t.Completion, overlong)))
		b.context = append(b.context, contextOf(t))
		b.roll = append(b.roll, t.Completion.LogProbs...)
		b.rows = append(b.rows, len(b.roll))
	}
	b.old = b.roll // one engine: see Trainer.oldLogProbs
	n := len(b.old)
	b.mask = make([]bool, n)
	for i, t := range b.traj {
		t.Completion.Sampled(b.mask[b.rows[i]:b.rows[i+1]])
	}
	b.reward, b.adv, b.ret = make([]float32, n), make([]float32, n), make([]float32, n)
	for i, t := range b.traj {
		b.rest = append(b.rest, b.place(i, scoreOf(t.Verdict, t.Completion, overlong)))
	}
	return b
}

// place sets the token rewards of row i, which are 0: what a turn earned at its last token, where an agent says so, or
// a step at its, and what these leave of the score at the row's last one. It returns the latter.
func (b *batch) place(i int, score float64) (rest float64) {
	lo, hi, c := b.rows[i], b.rows[i+1], b.traj[i].Completion
	if v := &b.traj[i].Verdict; len(v.Steps) > 0 && hi > lo {
		return b.placeSteps(lo, hi, v, score)
	}
	all, _ := c.Earned()
	rest = score - all
	if lo == hi {
		return rest
	}
	last := rest
	for k := range c.Acts {
		switch a := &c.Acts[k]; {
		case !a.Learned():
		case a.End == hi-lo:
			last += a.Reward
		default:
			b.reward[lo+a.End-1] = float32(a.Reward)
		}
	}
	b.reward[hi-1] = float32(last)
	return rest
}

// contextOf returns the tokens of the prompts of a completion's conversations.
func contextOf(t *Trajectory) (n int) {
	for _, x := range t.Completion.Conversations(t.Prompt) {
		n += len(x.Prompt)
	}
	return n
}

// scoreOf returns the quantity that training maximises: the verdict's reward plus DAPO's
// punishment of completions near the length limit.
func scoreOf(v rollout.Verdict, c *rollout.Completion, o rl.Overlong) float64 {
	return v.Reward + o.Reward(c.Longest())
}

// miniBatches returns the row ranges of mini-batches of prompts problems each. A range may
// be short or empty where completions were not graded.
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

// lengths returns the length in tokens, prompts included, of each of the rows lo to hi.
func (b *batch) lengths(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = b.context[lo+i] + b.rows[lo+i+1] - b.rows[lo+i]
	}
	return out
}

// bundle is a run of rows, up to end, that share one pass over their prompt.
type bundle struct {
	end       int
	tokens    int // that its rows take in a micro-batch
	sequences int // in it: a row has one for each conversation
}

// bundles cuts rows lo to hi. Neighbours with the same prompt form one bundle while it
// takes at most limit tokens; the limit bounds how much must go into one micro-batch. The
// cut affects the rounding of gradients, so limit must not depend on the micro-batch
// budget. Each further completion of a bundle counts at least two tokens, because a
// workspace has room for one sequence per two tokens. A pair is one bundle, however long, and so is a completion of
// several conversations, which share no pass over a prompt.
func (b *batch) bundles(lo, hi, limit int) []bundle {
	var out []bundle
	alone := false // the bundle before takes no more
	for i := lo; i < hi; i++ {
		n := b.rows[i+1] - b.rows[i]
		if b.paired && i%2 == 1 {
			last := &out[len(out)-1]
			last.add(i, n)
			continue
		}
		several := len(b.traj[i].Completion.Later()) > 0
		if !b.paired && i > lo && !several && !alone && slices.Equal(b.traj[i].Prompt, b.traj[i-1].Prompt) {
			if last := &out[len(out)-1]; last.tokens+max(2, n) <= limit {
				last.add(i, n)
				continue
			}
		}
		alone = several
		out = append(out, bundle{end: i + 1, tokens: b.context[i] + n, sequences: b.conversations(i)})
	}
	return out
}

// add adds row i with n tokens.
func (u *bundle) add(i, n int) {
	u.end, u.tokens, u.sequences = i+1, u.tokens+max(2, n), u.sequences+1
}

// conversations returns how many conversations row i has. Each is a sequence.
func (b *batch) conversations(i int) int { return 1 + len(b.traj[i].Completion.Later()) }

// sequences packs the rows of some bundles, from row lo on, for the model.
func (b *batch) sequences(lo int, bundles []bundle) model.Batch {
	hi, tokens := bundles[len(bundles)-1].end, 0
	for i := lo; i < hi; i++ {
		tokens += b.context[i] + b.rows[i+1] - b.rows[i]
	}
	n := capacityOf(bundles).Sequences
	out := model.Batch{Tokens: make([]int32, 0, tokens), Offsets: make([]int32, 1, n+1), Prompt: make([]int32, 0, n),
		Group: make([]int32, 0, n)}
	var g int32 // a number for each pass over a prompt
	for _, u := range bundles {
		for ; lo < u.end; lo++ {
			t := b.traj[lo]
			for k, x := range t.Completion.Conversations(t.Prompt) {
				if k > 0 {
					g++
				}
				out.Tokens = append(append(out.Tokens, x.Prompt...), t.Completion.Tokens[x.Start:x.End]...)
				out.Offsets = append(out.Offsets, int32(len(out.Tokens)))
				out.Prompt, out.Group = append(out.Prompt, int32(len(x.Prompt))), append(out.Group, g)
			}
		}
		g++
	}
	return out
}

// ofFirst sets dst, an element for each of rows r0 to r1, to the elements of their first conversations in src, which
// has one for each sequence.
func (b *batch) ofFirst(dst, src []float32, r0, r1 int) {
	at := 0
	for i := r0; i < r1; i++ {
		dst[i-r0] = src[at]
		at += b.conversations(i)
	}
}

// toFirst is the reverse of ofFirst: it sets their elements of dst, and leaves the others.
func (b *batch) toFirst(dst, src []float32, r0, r1 int) {
	at := 0
	for i := r0; i < r1; i++ {
		dst[at] = src[i-r0]
		at += b.conversations(i)
	}
}

// part returns rows lo to hi in the form package rl takes; logProb covers only these rows.
func (b *batch) part(lo, hi int, logProb []float32) *rl.Batch[float32] {
	n0, n1 := b.rows[lo], b.rows[hi]
	p := &rl.Batch[float32]{
		Rows: make(rl.Rows, hi-lo+1), Mask: b.mask[n0:n1], Coef: make([]float64, n1-n0),
		LogProb: logProb, OldLogProb: b.old[n0:n1], Adv: b.adv[n0:n1],
	}
	if b.weight != nil {
		p.Weight = b.weight[n0:n1]
	}
	for i := range p.Rows {
		p.Rows[i] = b.rows[lo+i] - n0
	}
	if b.ref != nil {
		p.RefLogProb = b.ref[n0:n1]
	}
	return p
}

// sampledTokens counts the tokens that the policy sampled, rejected ones too.
func (b *batch) sampledTokens() (n int) {
	for _, t := range b.traj {
		n += t.Completion.SampledTokens()
	}
	return n
}

// ofPolicy returns all rows with the log-probs of the policy that sumPiSquared is of: in bypass mode old is the
// sampler's, and what both say of a token would not fit together.
func (b *batch) ofPolicy() *rl.Batch[float32] {
	p := b.part(0, len(b.traj), b.old)
	if b.own != nil {
		p.OldLogProb = b.own
	}
	return p
}

// counts returns the denominators of means over the mini-batch of rows lo to hi. Rows
// counts nominal rows, as in verl.
func (b *batch) counts(lo, hi, nominal int, scale float64) rl.Counts {
	n := 0
	for _, on := range b.mask[b.rows[lo]:b.rows[hi]] {
		if on {
			n++
		}
	}
	return rl.Counts{Tokens: n, Rows: max(nominal, hi-lo), Scale: scale}
}

// pick makes b the batch of the rows index[0], index[1], …, which are no longer in problem
// order; a mini-batch then has as many rows as its problems have completions.
func (b *batch) pick(index []int, samples int) {
	*b = *b.chosen(index)
	for k := range index {
		b.group = append(b.group, k/samples)
	}
}

// chosen returns the batch of the rows index[0], index[1], …, in no group and without
// baselines and rests.
func (b *batch) chosen(index []int) *batch {
	c := *b
	c.rows, c.mask = b.rows.Pick(index), rl.PickRows(b.mask, b.rows, index)
	if b.answer != nil {
		c.answer = rl.PickRows(b.answer, b.rows, index)
	}
	for _, x := range c.arrays() {
		if *x != nil {
			*x = rl.PickRows(*x, b.rows, index)
		}
	}
	c.taught = b.taught.chosen(b.rows, index)
	c.traj, c.score, c.rest, c.context, c.group, c.baseline, c.target = nil, nil, nil, nil, nil, nil, nil
	for _, i := range index {
		if b.target != nil {
			c.target = append(c.target, b.target[i])
		}
		c.traj, c.score = append(c.traj, b.traj[i]), append(c.score, b.score[i])
		c.context = append(c.context, b.context[i])
	}
	return &c
}

// arrays returns the arrays of numbers [N], of which some may be nil.
func (b *batch) arrays() []*[]float32 {
	return []*[]float32{&b.roll, &b.old, &b.ref, &b.entropy, &b.sumPiSquared, &b.own, &b.weight, &b.value, &b.reward,
		&b.process, &b.adv, &b.ret}
}

// problems numbers the rows' problems [B].
func (b *batch) problems() []int {
	numbers, known := make([]int, len(b.traj)), map[*rollout.Problem]int{}
	for i, t := range b.traj {
		n, ok := known[t.Problem]
		if !ok {
			n = len(known)
			known[t.Problem] = n
		}
		numbers[i] = n
	}
	return numbers
}

// components returns the parts of the rewards [K][B].
func (b *batch) components() [][]float32 {
	parts := make([][]float32, len(b.traj[0].Verdict.Components))
	for k := range parts {
		for _, t := range b.traj {
			parts[k] = append(parts[k], float32(t.Verdict.Components[k]))
		}
	}
	return parts
}

// rewardSums returns the row sums of the token rewards.
func (b *batch) rewardSums() []float32 {
	s := make([]float32, len(b.traj))
	rl.RowSums(s, b.reward, b.rows)
	return s
}

// totals returns what estimators read as the scores of rows: the sums of their token rewards, with what turns earned
// that have no tokens here. Unless a KL is charged to the rewards, the score of an episode whose turns earned parts of
// it, or of an answer whose steps did, is the score itself: rows of equal scores stay equal, however the parts round.
func (b *batch) totals(charged bool) []float32 {
	s := b.rewardSums()
	for i, t := range b.traj {
		c := t.Completion
		if len(c.Acts) == 0 && len(t.Verdict.Steps) == 0 {
			continue
		}
		if _, elsewhere := c.Earned(); charged {
			s[i] = float32(float64(s[i]) + elsewhere)
		} else {
			s[i] = b.score[i]
		}
	}
	return s
}

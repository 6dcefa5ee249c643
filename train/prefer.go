package train

import (
	"context"
	"fmt"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// PreferConfig holds the settings of learning from preferences.
type PreferConfig struct {
	Steps            int
	PairsPerStep     int
	MicroBatchTokens int
	Recompute        bool
	Slices           int // as in Config
	Offload          Offload
	Optim            Optim
	Loss             rl.PairConfig
	// Reference says that the model at the start is subtracted from the log-probs.
	Reference bool
}

// Rows returns the rows of a step whose pairs have at most so many tokens, the prompt once and both completions.
func (c PreferConfig) Rows(longest int) Rows {
	return Rows{Problems: c.PairsPerStep, Update: c.PairsPerStep, Samples: 1, Slices: c.Slices, Longest: longest,
		New: longest, Budget: c.MicroBatchTokens, Pairs: true}
}

// PreferredPair is a prompt with a completion and a worse one. Inserted parts of completions are context.
type PreferredPair struct {
	ID               string
	Prompt           []int32
	Chosen, Rejected *rollout.Completion
}

// Tokens returns how many tokens a micro-batch has of it: the prompt once, and both completions.
func (p *PreferredPair) Tokens() int {
	return len(p.Prompt) + max(2, len(p.Chosen.Tokens)) + max(2, len(p.Rejected.Tokens))
}

// PreferParts are the inputs of learning from preferences.
type PreferParts struct {
	Backend  kernels.Backend
	Model    *model.Model // trainable
	Pairs    []PreferredPair
	Seed     func(label string) uint64
	Recorder Recorder
	Clock    func() time.Time
	Ranks    ranks.Group // nil: ranks.Alone
	Tensor   int         // as in Parts
	Waiting              // for the reference
}

// Waiting is how a process that prepares to learn tells of it, and how it is stopped meanwhile.
type Waiting struct {
	Phase func(step int, phase string, done, total int) // of step 0; may be nil
	Stop  func() bool                                   // asked between batches, may be nil
}

// Prefer learns from pairs in a file: it minimises the mean loss of a step's pairs (rl.PairConfig), and with Imitate
// also the mean negative log-prob of the tokens of the step's chosen completions, times that weight. Pairs come in a
// new random order each epoch. The reference is the model when Prefer is made; its log-probs are computed then, once.
// With adapters that have dropout, a step's log-probs are under it. Create it with NewPrefer, then Run it.
type Prefer struct {
	tuner
	cfg   PreferConfig
	pairs []PreferredPair
	ref   []float64 // [2·pairs] log-probs of chosen and rejected under the reference; nil without one
}

// NewPrefer prepares learning from step 0. Close it afterwards. A checkpoint is restored after it, since the reference
// is the model as it is now. It returns ErrStopped if it was told to stop.
func NewPrefer(c PreferConfig, p PreferParts) (t *Prefer, err error) {
	longest, err := p.longest()
	switch {
	case err != nil:
		return nil, err
	case len(p.Pairs) < c.PairsPerStep:
		return nil, fmt.Errorf("prefer: only %d pairs, fewer than pairs_per_step %d", len(p.Pairs), c.PairsPerStep)
	case !ranks.Valid(c.Slices):
		return nil, fmt.Errorf("prefer: %d slices: a power of two up to %d", c.Slices, ranks.MaxSlices)
	}
	t = &Prefer{cfg: c, pairs: p.Pairs, tuner: tuner{be: p.Backend, ranks: p.Ranks, clock: p.Clock,
		recorder: p.Recorder, steps: c.Steps, waiting: p.Waiting,
		order: order{n: len(p.Pairs), perStep: c.PairsPerStep, shuffled: true, seed: p.Seed}}}
	rows := c.Rows(longest)
	if err := t.open("prefer", p.Model, c.Optim, rows, c.Offload, keptBy(c.Recompute), p.Tensor); err != nil {
		return nil, err
	}
	if c.Reference {
		err = t.refer(p.Model, rows)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// longest checks the pairs and returns the most tokens of one.
func (p *PreferParts) longest() (most int, err error) {
	limit := p.Model.Config.MaxPositions
	for i := range p.Pairs {
		x := &p.Pairs[i]
		if len(x.Prompt) == 0 {
			return 0, fmt.Errorf("prefer: pair %s has an empty prompt", x.ID)
		}
		for _, c := range []*rollout.Completion{x.Chosen, x.Rejected} {
			switch n := len(x.Prompt) + len(c.Tokens); {
			case n > limit:
				return 0, fmt.Errorf("prefer: pair %s has a completion that ends after %d tokens, the model holds %d "+
					"positions", x.ID, n, limit)
			case c.SampledTokens() == 0:
				return 0, fmt.Errorf("prefer: pair %s has a completion with nothing to learn", x.ID)
			}
		}
		most = max(most, x.Tokens())
	}
	return most, nil
}

// refer computes the log-probs of the pairs that the steps use under the model as it is.
func (t *Prefer) refer(m *model.Model, rows Rows) (err error) {
	defer ranks.Recover(&err)
	defer t.passes.scoring(rows)()
	t.ref = make([]float64, 2*len(t.pairs))
	done, left := make([]bool, len(t.pairs)), len(t.pairs)
	for s := 1; s <= t.steps && left > 0; s++ {
		chosen, _ := t.order.step(s)
		var list []int
		for _, k := range chosen {
			if !done[k] {
				list, done[k] = append(list, k), true
			}
		}
		if len(list) == 0 {
			continue
		}
		if err := t.refers(2*(len(t.pairs)-left), 2*min(len(t.pairs), t.steps*t.cfg.PairsPerStep)); err != nil {
			return err
		}
		left -= len(list)
		b := t.batch(list)
		lp := t.passes.logProbs(m, b, 0, len(b.traj), 1)
		for i, k := range list {
			for side := range 2 {
				t.ref[2*k+side], _ = b.rowLogProb(lp, 2*i+side)
			}
		}
	}
	return nil
}

// batch lays out pairs, chosen before rejected.
func (t *Prefer) batch(list []int) *batch {
	var rows []Trajectory
	for _, k := range list {
		x := &t.pairs[k]
		chosen, rejected := scoredRow(x.ID, x.Prompt, x.Chosen), scoredRow(x.ID, x.Prompt, x.Rejected)
		rejected.Problem, rejected.Sample = chosen.Problem, 1
		rows = append(rows, chosen, rejected)
	}
	b := newBatch(rows, rl.Overlong{}, nil)
	b.paired = true
	return b
}

// scoredRow returns a completion in the form of a batch's rows. Its problem has nothing but the id.
func scoredRow(id string, prompt []int32, c *rollout.Completion) Trajectory {
	copied := *c
	copied.LogProbs = make([]float32, len(c.Tokens))
	return Trajectory{Problem: &rollout.Problem{ID: id}, Prompt: prompt, Completion: &copied,
		Verdict: rollout.Verdict{Status: rollout.Graded}}
}

// rowLogProb returns the sum of a row's log-probs [N] over its learned tokens, and their number.
func (b *batch) rowLogProb(logProb []float32, row int) (sum float64, n int) {
	for i := b.rows[row]; i < b.rows[row+1]; i++ {
		if b.mask[i] {
			sum += float64(logProb[i])
			n++
		}
	}
	return sum, n
}

// Run takes the remaining steps. Between steps it calls stop; if that returns true, Run returns ErrStopped, and State
// and Buffers can be saved. All ranks stop if one is asked to.
func (t *Prefer) Run(ctx context.Context, stop func() bool) error { return t.run(ctx, stop, t.Step) }

// Step takes one step and returns its record. It fails only if another rank does.
func (t *Prefer) Step() (rec *Step, err error) {
	defer ranks.Recover(&err)
	step := t.step + 1
	clock := newStopwatch(t.clock)
	chosen, epoch := t.order.step(step)
	b := t.batch(chosen)
	rec = &Step{Step: step, Of: t.steps}
	x := t.preferences(b, chosen)
	t.answer(step, &x.answered, x.slopes)
	norm, event := t.learner.update(step, t.cfg.Optim.rate(step))
	if event != nil {
		rec.Events = append(rec.Events, *event)
	}
	rec.Metrics = append(x.metrics(), rl.Metric{Name: "prefer/grad_norm", Value: norm},
		rl.Metric{Name: "prefer/lr", Value: t.cfg.Optim.rate(step)},
		rl.Metric{Name: "prefer/epoch", Value: float64(epoch)})
	checkFinite(rec)
	clock.lap("prefer")
	rec.System = clock.metrics(b)
	t.step = step
	return rec, nil
}

// answered are the answers of a step in the order of its slices, with what the model says of them.
type answered struct {
	b              *sliced
	logProb, spent []float32 // [N] log-probs and entropies under the model before the update
}

// preferences are the pairs of a step.
type preferences struct {
	answered
	cfg    rl.PairConfig
	ref    map[*rollout.Problem][2]float64
	chosen int // learned tokens of chosen completions
}

// preferences cuts a batch of the pairs in list into slices.
func (t *Prefer) preferences(b *batch, list []int) *preferences {
	x := &preferences{answered: answered{b: b.slice(0, len(b.traj), t.cfg.Slices, t.passes.bundle)},
		cfg: t.cfg.Loss, ref: map[*rollout.Problem][2]float64{}}
	if t.ref != nil {
		for i, k := range list {
			x.ref[b.traj[2*i].Problem] = [2]float64(t.ref[2*k:])
		}
	}
	for row := 0; row < len(x.b.traj); row += 2 {
		for _, on := range x.b.mask[x.b.rows[row]:x.b.rows[row+1]] {
			if on {
				x.chosen++
			}
		}
	}
	return x
}

// pair returns the loss of the pair whose chosen completion is a row, and both sides.
func (x *preferences) pair(row int) (p rl.Pair, sides [2]rl.Side) {
	for i := range sides {
		s := &sides[i]
		s.LogProb, s.Tokens = x.b.rowLogProb(x.logProb, row+i)
		s.Ref = x.ref[x.b.traj[row].Problem][i]
	}
	return x.cfg.Pair(sides[0], sides[1]), sides
}

// slopes sets grad to the derivatives of the step's loss by the log-probs of the pairs in rows r0 to r1, whose first
// token grad begins with.
func (x *preferences) slopes(r0, r1 int, grad []float32) {
	for row := r0; row < r1; row += 2 {
		x.pairSlopes(row, grad[x.b.rows[row]-x.b.rows[r0]:])
	}
}

func (x *preferences) pairSlopes(row int, grad []float32) {
	p, _ := x.pair(row)
	n, first := float64(len(x.b.traj)/2), x.b.rows[row]
	for i, slope := range p.Slopes {
		slope /= n
		if i == 0 {
			slope -= x.cfg.Imitate / float64(x.chosen)
		}
		for t := x.b.rows[row+i]; t < x.b.rows[row+i+1]; t++ {
			if x.b.mask[t] {
				grad[t-first] = float32(slope)
			}
		}
	}
}

// answer computes the gradient of a loss of a step's answers, and fills their log-probs and entropies. slopes sets
// grad, which begins with the first token of rows r0 to r1 and is 0, to the derivatives by the log-probs of their
// tokens.
func (t *tuner) answer(step int, x *answered, slopes func(r0, r1 int, grad []float32)) {
	b, p, l := x.b, t.passes, t.learner
	ws := p.train
	x.logProb, x.spent = make([]float32, len(b.mask)), make([]float32, len(b.mask))
	var grad []float32
	l.gradient(b, func(r0, r1 int) {
		p.each(b.batch, r0, r1, ws, func(r0, r1 int) {
			t.dropAdapters(b.batch, step, r0, r1)
			l.m.Forward(ws)
			l.m.Scores(ws, 1)
			p.read(x.logProb[b.rows[r0]:], ws.LogProb())
			p.read(x.spent[b.rows[r0]:], ws.Entropy())
			take(&grad, ws.Rows())
			p.write(ws.DEntropy(), grad)
			slopes(r0, r1, grad)
			p.write(ws.DLogProb(), grad)
			l.m.Backward(ws, model.Upstream{Scores: true})
		})
	})
	tokens := b.tokenEnds(p.group.Size())
	p.gather(kernels.Host(x.logProb), tokens, 1)
	p.gather(kernels.Host(x.spent), tokens, 1)
}

// entropy returns the mean entropy at learned tokens.
func (x *answered) entropy() float64 {
	var sum float64
	n := 0
	for i, on := range x.b.mask {
		if on {
			sum += float64(x.spent[i])
			n++
		}
	}
	return sum / float64(n)
}

// metrics describes a step's pairs, as means over them; entropy is a mean over their tokens.
func (x *preferences) metrics() []rl.Metric {
	var loss, right, margin, odds float64
	var reward, logProb [2]float64
	for row := 0; row < len(x.b.traj); row += 2 {
		p, sides := x.pair(row)
		loss += p.Loss
		margin += p.Margin()
		odds += p.LogOdds
		if p.Margin() > 0 {
			right++
		}
		reward[0] += p.Chosen
		reward[1] += p.Rejected
		for i, s := range sides {
			logProb[i] += s.LogProb
		}
	}
	n := float64(len(x.b.traj) / 2)
	loss /= n
	var more []rl.Metric
	if x.cfg.Loss == rl.OddsRatio {
		more = []rl.Metric{{Name: "prefer/log_odds", Value: odds / n},
			{Name: "prefer/odds_loss", Value: loss / x.cfg.Beta}}
	}
	if x.cfg.Imitate > 0 {
		nll := -logProb[0] / float64(x.chosen)
		loss += float64(x.cfg.Imitate * nll)
		more = append(more, rl.Metric{Name: "prefer/nll", Value: nll})
	}
	return append([]rl.Metric{{Name: "prefer/loss", Value: loss}, {Name: "prefer/accuracy", Value: right / n},
		{Name: "prefer/margin", Value: margin / n}, {Name: "prefer/reward_chosen", Value: reward[0] / n},
		{Name: "prefer/reward_rejected", Value: reward[1] / n},
		{Name: "prefer/log_prob_chosen", Value: logProb[0] / n},
		{Name: "prefer/log_prob_rejected", Value: logProb[1] / n},
		{Name: "prefer/entropy", Value: x.entropy()}}, more...)
}

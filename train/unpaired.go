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

// UnpairedConfig holds the settings of learning from single answers.
type UnpairedConfig struct {
	Steps            int
	AnswersPerStep   int // at least 2
	MicroBatchTokens int
	Recompute        bool
	Slices           int // as in Config
	Offload          Offload
	Optim            Optim
	Loss             rl.UnpairedConfig
}

// Rows returns the rows of a step whose answers have at most so many tokens, prompt included.
func (c UnpairedConfig) Rows(longest int) Rows {
	return Rows{Problems: c.AnswersPerStep, Update: c.AnswersPerStep, Samples: 1, Slices: c.Slices, Longest: longest,
		New: longest, Budget: c.MicroBatchTokens}
}

// LabelledAnswer is a completion of a prompt that is good or bad. Inserted parts of it are context.
type LabelledAnswer struct {
	ID         string
	Prompt     []int32
	Completion *rollout.Completion
	Good       bool
}

// UnpairedParts are the inputs of learning from single answers.
type UnpairedParts struct {
	Backend  kernels.Backend
	Model    *model.Model // trainable
	Answers  []LabelledAnswer
	Seed     func(label string) uint64
	Recorder Recorder
	Clock    func() time.Time
	Ranks    ranks.Group // nil: ranks.Alone
	Tensor   int         // as in Parts
	Waiting              // for the reference
}

// Unpaired learns from single answers in a file: it minimises the mean loss of a step's answers (rl.UnpairedConfig).
// They come in a new random order each epoch. The reference is the model when Unpaired is made, and all that its steps
// need of it is computed then.
//
// KTO estimates a KL divergence from the answers of a step, each under the prompt of the next one, the last under the
// first one's, before the update and without the dropout of adapters. One that is then longer than every answer with
// its own prompt loses its end. Create it with NewUnpaired, then Run it.
type Unpaired struct {
	tuner
	cfg     UnpairedConfig
	answers []LabelledAnswer
	rows    Rows
	longest int         // tokens of an answer with its prompt
	ref     []float64   // [answers] log-probs under the reference
	refKL   [][]float64 // [steps][AnswersPerStep] of mismatched answers; nil without KL
}

// NewUnpaired prepares learning from step 0. Close it afterwards. A checkpoint is restored after it, since the
// reference is the model as it is now. It returns ErrStopped if it was told to stop.
func NewUnpaired(c UnpairedConfig, p UnpairedParts) (t *Unpaired, err error) {
	longest, err := p.longest()
	switch {
	case err != nil:
		return nil, err
	case c.AnswersPerStep < 2:
		return nil, fmt.Errorf("prefer: answers_per_step %d: an answer needs the prompt of another", c.AnswersPerStep)
	case len(p.Answers) < c.AnswersPerStep:
		return nil, fmt.Errorf("prefer: only %d answers, fewer than answers_per_step %d", len(p.Answers),
			c.AnswersPerStep)
	case !ranks.Valid(c.Slices):
		return nil, fmt.Errorf("prefer: %d slices: a power of two up to %d", c.Slices, ranks.MaxSlices)
	}
	t = &Unpaired{cfg: c, answers: p.Answers, rows: c.Rows(longest), longest: longest,
		tuner: tuner{be: p.Backend, ranks: p.Ranks, clock: p.Clock, recorder: p.Recorder, steps: c.Steps,
			waiting: p.Waiting,
			order:   order{n: len(p.Answers), perStep: c.AnswersPerStep, shuffled: true, seed: p.Seed}}}
	if err := t.open("prefer", p.Model, c.Optim, t.rows, c.Offload, keptBy(c.Recompute), p.Tensor); err != nil {
		return nil, err
	}
	if err := t.refer(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// longest checks the answers and returns the most tokens of one with its prompt.
func (p *UnpairedParts) longest() (most int, err error) {
	limit := p.Model.Config.MaxPositions
	for i := range p.Answers {
		x := &p.Answers[i]
		switch n := len(x.Prompt) + len(x.Completion.Tokens); {
		case len(x.Prompt) == 0:
			return 0, fmt.Errorf("prefer: answer %s has an empty prompt", x.ID)
		case n > limit:
			return 0, fmt.Errorf("prefer: answer %s ends after %d tokens, the model holds %d positions", x.ID, n,
				limit)
		case x.Completion.SampledTokens() == 0:
			return 0, fmt.Errorf("prefer: answer %s has nothing to learn", x.ID)
		default:
			most = max(most, n)
		}
	}
	return most, nil
}

// refer computes the log-probs of what the steps use under the model as it is.
func (t *Unpaired) refer() (err error) {
	defer ranks.Recover(&err)
	defer t.passes.scoring(t.rows)()
	t.ref = make([]float64, len(t.answers))
	done, left := make([]bool, len(t.answers)), len(t.answers)
	total, scored := min(len(t.answers), t.steps*t.cfg.AnswersPerStep), 0
	if t.cfg.Loss.Loss == rl.KTO {
		total += t.steps * t.cfg.AnswersPerStep
	}
	for s := 1; s <= t.steps; s++ {
		if err := t.refers(scored, total); err != nil {
			return err
		}
		chosen, _ := t.order.step(s)
		if t.cfg.Loss.Loss == rl.KTO {
			t.refKL = append(t.refKL, t.scores(t.mismatched(chosen)))
			scored += len(chosen)
		} else if left == 0 {
			break
		}
		var list []int
		for _, k := range chosen {
			if !done[k] {
				list, done[k] = append(list, k), true
			}
		}
		if len(list) == 0 {
			continue
		}
		left -= len(list)
		scored += len(list)
		for i, lp := range t.scores(t.batch(list)) {
			t.ref[list[i]] = lp
		}
	}
	return nil
}

// scores returns the log-prob of each row's learned tokens under the model as it is.
func (t *Unpaired) scores(b *batch) []float64 {
	lp := t.passes.logProbs(t.learner.m, b, 0, len(b.traj), 1)
	sums := make([]float64, len(b.traj))
	for i := range sums {
		sums[i], _ = b.rowLogProb(lp, i)
	}
	return sums
}

// batch lays out answers.
func (t *Unpaired) batch(list []int) *batch {
	rows := make([]Trajectory, len(list))
	for i, k := range list {
		x := &t.answers[k]
		rows[i] = scoredRow(x.ID, x.Prompt, x.Completion)
	}
	return newBatch(rows, rl.Overlong{}, nil)
}

// mismatched lays out answers, each under the prompt of the next one.
func (t *Unpaired) mismatched(list []int) *batch {
	rows := make([]Trajectory, len(list))
	for i, k := range list {
		x, y := &t.answers[k], &t.answers[list[(i+len(list)-1)%len(list)]]
		rows[i] = scoredRow(x.ID, x.Prompt, beginning(y.Completion, t.longest-len(x.Prompt)))
	}
	return newBatch(rows, rl.Overlong{}, nil)
}

// beginning returns the first n tokens of a completion, or all.
func beginning(c *rollout.Completion, n int) *rollout.Completion {
	if len(c.Tokens) <= n {
		return c
	}
	cut := &rollout.Completion{Tokens: c.Tokens[:n]}
	for _, s := range c.Inserted {
		if s.Start < n {
			cut.Inserted = append(cut.Inserted, rollout.Span{Start: s.Start, End: min(s.End, n)})
		}
	}
	return cut
}

// Run takes the remaining steps. Between steps it calls stop; if that returns true, Run returns ErrStopped, and State
// and Buffers can be saved. All ranks stop if one is asked to.
func (t *Unpaired) Run(ctx context.Context, stop func() bool) error { return t.run(ctx, stop, t.Step) }

// Step takes one step and returns its record. It fails only if another rank does.
func (t *Unpaired) Step() (rec *Step, err error) {
	defer ranks.Recover(&err)
	step := t.step + 1
	clock := newStopwatch(t.clock)
	chosen, epoch := t.order.step(step)
	b := t.batch(chosen)
	rec = &Step{Step: step, Of: t.steps}
	x := t.labelled(b, chosen, t.divergence(step, chosen))
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

// divergence returns the estimate of KL divergence that KTO compares a step's answers with; 0 for other losses.
func (t *Unpaired) divergence(step int, chosen []int) float64 {
	if t.refKL == nil {
		return 0
	}
	defer t.passes.scoring(t.rows)()
	sides := make([]rl.Side, len(chosen))
	for i, lp := range t.scores(t.mismatched(chosen)) {
		sides[i] = rl.Side{LogProb: lp, Ref: t.refKL[step-1][i]}
	}
	return rl.MismatchedKL(sides)
}

// labelled are the answers of a step.
type labelled struct {
	answered
	cfg  rl.UnpairedConfig
	kl   float64
	ref  map[*rollout.Problem]float64
	good map[*rollout.Problem]bool
}

// labelled cuts a batch of the answers in list into slices.
func (t *Unpaired) labelled(b *batch, list []int, kl float64) *labelled {
	x := &labelled{answered: answered{b: b.slice(0, len(b.traj), t.cfg.Slices, t.passes.bundle)}, cfg: t.cfg.Loss,
		kl: kl, ref: map[*rollout.Problem]float64{}, good: map[*rollout.Problem]bool{}}
	for i, k := range list {
		q := b.traj[i].Problem
		x.ref[q], x.good[q] = t.ref[k], t.answers[k].Good
	}
	return x
}

// one returns the loss of a row, its log-prob, and whether it is good.
func (x *labelled) one(row int) (u rl.Unpaired, s rl.Side, good bool) {
	q := x.b.traj[row].Problem
	s.LogProb, s.Tokens = x.b.rowLogProb(x.logProb, row)
	s.Ref, good = x.ref[q], x.good[q]
	return x.cfg.One(good, s, x.kl), s, good
}

// slopes sets grad to the derivatives of the step's loss by the log-probs of rows r0 to r1, whose first token it
// begins with.
func (x *labelled) slopes(r0, r1 int, grad []float32) {
	n, first := float64(len(x.b.traj)), x.b.rows[r0]
	for row := r0; row < r1; row++ {
		u, _, _ := x.one(row)
		for t := x.b.rows[row]; t < x.b.rows[row+1]; t++ {
			if x.b.mask[t] {
				grad[t-first] = float32(u.Slope / n)
			}
		}
	}
}

// metrics describes a step's answers: the loss as a mean over all, rewards and log-probs as means over
// good ones (chosen) and bad ones (rejected), if the step has some; entropy is a mean over tokens.
func (x *labelled) metrics() []rl.Metric {
	var loss float64
	var reward, logProb, count [2]float64
	for row := range x.b.traj {
		u, s, good := x.one(row)
		side := 1
		if good {
			side = 0
		}
		loss += u.Loss
		reward[side] += u.Reward
		logProb[side] += s.LogProb
		count[side]++
	}
	list := []rl.Metric{{Name: "prefer/loss", Value: loss / float64(len(x.b.traj))},
		{Name: "prefer/entropy", Value: x.entropy()}}
	if x.cfg.Loss == rl.KTO {
		list = append(list, rl.Metric{Name: "prefer/kl", Value: x.kl})
	}
	if n := count[0]; n > 0 {
		list = append(list, rl.Metric{Name: "prefer/reward_chosen", Value: reward[0] / n},
			rl.Metric{Name: "prefer/log_prob_chosen", Value: logProb[0] / n})
	}
	if n := count[1]; n > 0 {
		list = append(list, rl.Metric{Name: "prefer/reward_rejected", Value: reward[1] / n},
			rl.Metric{Name: "prefer/log_prob_rejected", Value: logProb[1] / n})
	}
	if count[0] > 0 && count[1] > 0 {
		list = append(list, rl.Metric{Name: "prefer/margin", Value: reward[0]/count[0] - reward[1]/count[1]})
	}
	return list
}

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

// SFTConfig holds the settings of supervised fine-tuning.
type SFTConfig struct {
	Steps            int
	ProblemsPerStep  int
	MicroBatchTokens int
	Recompute        bool
	Slices           int // as in Config
	Offload          Offload
	Optim            Optim
}

// Rows returns the rows of a step whose sequences have at most so many tokens.
func (c SFTConfig) Rows(longest int) Rows {
	return Rows{Problems: c.ProblemsPerStep, Update: c.ProblemsPerStep, Samples: 1, Slices: c.Slices, Longest: longest,
		New: longest, Budget: c.MicroBatchTokens}
}

// SFTParts are the inputs of supervised fine-tuning.
type SFTParts struct {
	Backend  kernels.Backend
	Model    *model.Model // trainable
	Problems []rollout.Problem
	// Example returns the prompt of a problem and a completion to learn from, without its inserted parts.
	Example  func(p *rollout.Problem) (prompt []int32, c *rollout.Completion, err error)
	Seed     func(label string) uint64
	Recorder Recorder
	Clock    func() time.Time
	Ranks    ranks.Group // nil: ranks.Alone
	Tensor   int         // as in Parts
}

// SFT is supervised fine-tuning: it minimises the mean negative log-prob of the tokens of
// the problems' targets, each followed by the end token. Inserted parts of a target are
// context: they have no loss and do not count in the mean, which is over all trained tokens
// of a step. Problems come in a new random order each epoch. Create it with NewSFT, then Run
// it.
type SFT struct {
	tuner
	cfg      SFTConfig
	examples []Trajectory
}

// NewSFT prepares fine-tuning from step 0. Close it afterwards.
func NewSFT(c SFTConfig, p SFTParts) (*SFT, error) {
	examples, longest, err := p.encode()
	if err != nil {
		return nil, err
	}
	if len(examples) < c.ProblemsPerStep {
		return nil, fmt.Errorf("sft: only %d problems, fewer than problems_per_step %d", len(examples),
			c.ProblemsPerStep)
	}
	if !ranks.Valid(c.Slices) {
		return nil, fmt.Errorf("sft: %d slices: a power of two up to %d", c.Slices, ranks.MaxSlices)
	}
	t := &SFT{cfg: c, examples: examples, tuner: tuner{be: p.Backend, ranks: p.Ranks, clock: p.Clock,
		recorder: p.Recorder, steps: c.Steps,
		order: order{n: len(examples), perStep: c.ProblemsPerStep, shuffled: true, seed: p.Seed}}}
	return t, t.open("sft", p.Model, c.Optim, c.Rows(longest), c.Offload, keptBy(c.Recompute), p.Tensor)
}

// Run takes the remaining steps. Between steps it calls stop; if that returns true, Run
// returns ErrStopped, and State and Buffers can be saved. All ranks stop if one is asked to.
func (t *SFT) Run(ctx context.Context, stop func() bool) error { return t.run(ctx, stop, t.Step) }

// Step takes one step and returns its record. It fails only if another rank does.
func (t *SFT) Step() (rec *Step, err error) {
	defer ranks.Recover(&err)
	step := t.step + 1
	clock := newStopwatch(t.clock)
	chosen, epoch := t.order.step(step)
	batch := make([]Trajectory, len(chosen))
	for i, e := range chosen {
		batch[i] = t.examples[e]
	}
	b := newBatch(batch, rl.Overlong{}, nil)
	rec = &Step{Step: step, Of: t.cfg.Steps}
	loss, entropy := t.learner.imitate(t.passes, b.slice(0, len(b.traj), t.cfg.Slices, t.passes.bundle))
	norm, event := t.learner.update(step, t.cfg.Optim.rate(step))
	if event != nil {
		rec.Events = append(rec.Events, *event)
	}
	rec.Metrics = []rl.Metric{{Name: "sft/loss", Value: loss}, {Name: "sft/entropy", Value: entropy},
		{Name: "sft/grad_norm", Value: norm}, {Name: "sft/lr", Value: t.cfg.Optim.rate(step)},
		{Name: "sft/epoch", Value: float64(epoch)}}
	checkFinite(rec)
	clock.lap("sft")
	rec.System = clock.metrics(b)
	t.step = step
	return rec, nil
}

// imitate computes the gradient of the mean negative log-prob of b's trained tokens
// and returns the loss and the mean entropy, over the same tokens.
func (l *learner) imitate(p *passes, b *sliced) (loss, entropy float64) {
	trained := 0
	for _, on := range b.mask {
		if on {
			trained++
		}
	}
	n := float64(trained)
	lp, h := make([]float32, len(b.mask)), make([]float32, len(b.mask))
	var grad []float32
	ws := p.train
	l.gradient(b, func(r0, r1 int) {
		p.each(b.batch, r0, r1, ws, func(r0, _ int) {
			l.m.Forward(ws)
			l.m.Scores(ws, 1)
			p.read(lp[b.rows[r0]:], ws.LogProb())
			p.read(h[b.rows[r0]:], ws.Entropy())
			take(&grad, ws.Rows())
			p.write(ws.DEntropy(), grad)
			for i, on := range b.mask[b.rows[r0]:][:len(grad)] {
				if on {
					grad[i] = float32(-1 / n)
				}
			}
			p.write(ws.DLogProb(), grad)
			l.m.Backward(ws, model.Upstream{Scores: true})
		})
	})
	tokens := b.tokenEnds(p.group.Size())
	p.gather(kernels.Host(lp), tokens, 1)
	p.gather(kernels.Host(h), tokens, 1)
	var sumLP, sumH float64
	for i, on := range b.mask {
		if on {
			sumLP += float64(lp[i])
			sumH += float64(h[i])
		}
	}
	return -sumLP / n, sumH / n
}

// encode turns problems into trajectories to imitate.
func (p SFTParts) encode() (out []Trajectory, longest int, err error) {
	limit := p.Model.Config.MaxPositions
	for i := range p.Problems {
		q := &p.Problems[i]
		prompt, c, err := p.Example(q)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("sft: problem %s: %w", q.ID, err)
		case len(prompt) == 0:
			return nil, 0, fmt.Errorf("sft: problem %s has an empty prompt", q.ID)
		}
		c.LogProbs = make([]float32, len(c.Tokens))
		out = append(out, Trajectory{Problem: q, Prompt: prompt, Completion: c,
			Verdict: rollout.Verdict{Status: rollout.Graded}})
		longest = max(longest, len(prompt)+len(c.Tokens))
	}
	if longest > limit {
		return nil, 0, fmt.Errorf("sft: the longest example has %d tokens, the model holds %d positions",
			longest, limit)
	}
	return out, longest, nil
}

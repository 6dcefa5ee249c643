package train

import (
	"context"
	"fmt"
	"time"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
	"exp/train/rollout"
)

// SFTConfig holds the settings of supervised fine-tuning.
type SFTConfig struct {
	Steps            int
	ProblemsPerStep  int
	MicroBatchTokens int
	Recompute        bool
	Optim            Optim
}

// SFTParts are the inputs of supervised fine-tuning.
type SFTParts struct {
	Backend  kernels.Backend
	Model    *model.Model // trainable
	Problems []rollout.Problem
	Prompt   func(p *rollout.Problem) ([]int32, error)
	Encode   func(target string) ([]int32, error)
	End      int32 // token that ends a target
	Seed     func(label string) uint64
	Recorder Recorder
	Clock    func() time.Time
}

// SFT is supervised fine-tuning: it minimises the mean negative log-prob of the tokens of
// the problems' targets, each followed by the end token. Problems come in a new random
// order each epoch. Create it with NewSFT, then Run it.
type SFT struct {
	SFTParts
	cfg      SFTConfig
	learner  *learner
	passes   *passes
	order    order
	examples []Trajectory
	step     int // finished steps
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
	if p.Clock == nil {
		p.Clock = time.Now
	}
	t := &SFT{SFTParts: p, cfg: c, examples: examples,
		order: order{n: len(examples), perStep: c.ProblemsPerStep, shuffled: true, seed: p.Seed}}
	if t.learner, err = newLearner(p.Backend, "sft", p.Model, c.Optim); err != nil {
		return nil, err
	}
	if t.passes, err = newPasses(p.Backend, p.Model.Config, p.Model.Heads, c.MicroBatchTokens, longest,
		c.Recompute); err != nil {
		t.learner.opt.Close()
		return nil, err
	}
	return t, nil
}

// Close frees the optimizer and workspaces.
func (t *SFT) Close() {
	t.learner.opt.Close()
	t.passes.close()
}

// Run takes the remaining steps. Between steps it calls stop; if that returns true, Run
// returns ErrStopped, and State and Buffers can be saved.
func (t *SFT) Run(ctx context.Context, stop func() bool) error {
	for t.step < t.cfg.Steps {
		if stop != nil && stop() {
			return ErrStopped
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.Recorder.Step(t.Step()); err != nil {
			return err
		}
	}
	return nil
}

// Step takes one step and returns its record.
func (t *SFT) Step() *Step {
	step := t.step + 1
	clock := newStopwatch(t.Clock)
	chosen, epoch := t.order.step(step)
	batch := make([]Trajectory, len(chosen))
	for i, e := range chosen {
		batch[i] = t.examples[e]
	}
	b := newBatch(batch, rl.Overlong{}, nil)
	rec := &Step{Step: step, Of: t.cfg.Steps}
	loss, entropy := t.learner.imitate(t.passes, b)
	norm, event := t.learner.update(step)
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
	return rec
}

// State returns the state after the last finished step.
func (t *SFT) State() State { return State{Step: t.step, PolicyUpdates: t.learner.opt.Steps()} }

// Buffers returns the buffers of everything that learns.
func (t *SFT) Buffers() []NamedBuffer { return t.learner.buffers() }

// Restore continues from a state whose Buffers have been filled.
func (t *SFT) Restore(s State) error {
	t.step = s.Step
	t.learner.restore(s.PolicyUpdates)
	return nil
}

// imitate computes the gradient of the mean negative log-prob of b's completions
// and returns the loss and the mean entropy.
func (l *learner) imitate(p *passes, b *batch) (loss, entropy float64) {
	l.m.ZeroGrads()
	n := float64(len(b.mask))
	var sumLP, sumH float64
	var lp, h, grad []float32
	p.each(b, 0, len(b.traj), p.train, func(_, _ int) {
		ws := p.train
		l.m.Forward(ws)
		l.m.Scores(ws, 1)
		p.read(take(&lp, ws.Rows()), ws.LogProb())
		p.read(take(&h, ws.Rows()), ws.Entropy())
		for i := range lp {
			sumLP += float64(lp[i])
			sumH += float64(h[i])
		}
		take(&grad, ws.Rows())
		p.write(ws.DEntropy(), grad)
		for i := range grad {
			grad[i] = float32(-1 / n)
		}
		p.write(ws.DLogProb(), grad)
		l.m.Backward(ws, model.Upstream{Scores: true})
	})
	return -sumLP / n, sumH / n
}

// encode turns problems with targets into trajectories.
func (p SFTParts) encode() (out []Trajectory, longest int, err error) {
	for i := range p.Problems {
		q := &p.Problems[i]
		if q.Target == "" {
			return nil, 0, fmt.Errorf("sft: problem %s has no target", q.ID)
		}
		prompt, err := p.Prompt(q)
		if err != nil {
			return nil, 0, fmt.Errorf("sft: problem %s: prompt: %w", q.ID, err)
		}
		target, err := p.Encode(q.Target)
		if err != nil {
			return nil, 0, fmt.Errorf("sft: problem %s: target: %w", q.ID, err)
		}
		if len(prompt) == 0 {
			return nil, 0, fmt.Errorf("sft: problem %s has an empty prompt", q.ID)
		}
		c := &rollout.Completion{Tokens: append(target, p.End), Text: q.Target, Finish: rollout.FinishStop}
		c.LogProbs = make([]float32, len(c.Tokens))
		out = append(out, Trajectory{Problem: q, Prompt: prompt, Completion: c,
			Verdict: rollout.Verdict{Status: rollout.Graded}})
		longest = max(longest, len(prompt)+len(c.Tokens))
	}
	if limit := p.Model.Config.MaxPositions; longest > limit {
		return nil, 0, fmt.Errorf("sft: the longest example has %d tokens, the model holds %d positions",
			longest, limit)
	}
	return out, longest, nil
}

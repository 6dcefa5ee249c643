package train

import (
	"errors"
	"fmt"

	"exp/kernels"
	"exp/train/rl"
)

// The loop does not know which algorithm runs. It looks up the estimator and the loss by
// name in package rl, which holds their functions and the table of algorithms.

// estimator returns the advantage estimator (the loss's own or the configured one) and its
// settings.
func (c Config) estimator() (rl.Estimator, rl.Settings) {
	if l := c.policyLoss(); l.Advantages != nil {
		return l.Advantages(c.Settings)
	}
	e, ok := rl.EstimatorNamed(c.Advantage)
	if !ok {
		panic("train: unknown advantage estimator " + c.Advantage)
	}
	return e, c.Settings
}

// policyLoss returns the configured policy loss.
func (c Config) policyLoss() rl.PolicyLoss {
	l, ok := rl.PolicyLossNamed(c.Loss)
	if !ok {
		panic("train: unknown policy loss " + c.Loss)
	}
	return l
}

// advantages fills b.adv and b.ret. Where rollout correction rejected all tokens but one, estimators that whiten
// have nothing to compare: few says so, and the step learns nothing from rewards.
func advantages(c Config, b *batch) (few bool, err error) {
	e, settings := c.estimator()
	s := &rl.Graded{Batch: b.ofPolicy(), Group: b.group, Reward: b.reward, Score: b.rewardSums(),
		Baseline: b.baseline, Value: b.value, SumPiSquared: b.sumPiSquared, Process: b.process, Ret: b.ret}
	if e.Components {
		s.Components = b.components()
	}
	err = e.Estimate(s, settings)
	if few = errors.Is(err, rl.ErrTooFew) && b.sampledTokens() > 1; few {
		clear(b.adv)
	} else if err != nil {
		return false, fmt.Errorf("advantage %s: %w", e.Name, err)
	}
	if c.Distill.Teaches() {
		c.Distill.Teach(b.adv, b.old, b.ref, b.mask)
	}
	return few, nil
}

// resample draws the rows to train on, with replacement, if the estimator weighs rows
// (PF-PPO).
func (t *Trainer) resample(b *batch, step int) {
	n := len(b.traj)
	weight, uniform, index := make([]float64, n), make([]float64, n), make([]int, n)
	if e, settings := t.cfg.estimator(); e.Redraw == nil || !e.Redraw(weight, b.score, settings) {
		return
	}
	key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("pf_ppo/step=%d", step)))
	for i := range uniform {
		uniform[i] = float64(philox64(key, i)>>11) / (1 << 53)
	}
	rl.Resample(index, weight, uniform)
	b.pick(index, t.cfg.Samples)
}

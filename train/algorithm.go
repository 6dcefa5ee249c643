package train

import (
	"fmt"

	"exp/kernels"
	"exp/train/rl"
)

// The loop does not know which algorithm runs: the estimator and the loss are chosen
// by name in package rl, where their functions and the table of algorithms are.

// estimator returns the configured advantage estimator.
func (c Config) estimator() rl.Estimator {
	e, ok := rl.EstimatorNamed(c.Advantage)
	if !ok {
		panic("train: unknown advantage estimator " + c.Advantage)
	}
	return e
}

// policyLoss returns the configured policy loss.
func (c Config) policyLoss() rl.PolicyLoss {
	l, ok := rl.PolicyLossNamed(c.Loss)
	if !ok {
		panic("train: unknown policy loss " + c.Loss)
	}
	return l
}

// advantages fills b.adv and b.ret.
func advantages(c Config, b *batch) error {
	e := c.estimator()
	s := &rl.Graded{Batch: b.part(0, len(b.traj), b.old), Group: b.group, Reward: b.reward, Score: b.rewardSums(),
		Baseline: b.baseline, Value: b.value, SumPiSquared: b.sumPiSquared, Ret: b.ret}
	if e.Components {
		s.Components = b.components()
	}
	return e.Estimate(s, c.EstimatorSettings)
}

// resample draws the rows that PF-PPO trains on, with replacement, by their scores
// (arXiv:2409.06957).
func (t *Trainer) resample(b *batch, step int) {
	if t.cfg.Reweighting == 0 {
		return
	}
	n := len(b.traj)
	weight, uniform, index := make([]float64, n), make([]float64, n), make([]int, n)
	rl.ResamplingWeights(weight, b.score, t.cfg.Reweighting, t.cfg.ReweightPower)
	key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("pf_ppo/step=%d", step)))
	for i := range uniform {
		uniform[i] = float64(philox64(key, i)>>11) / (1 << 53)
	}
	rl.Resample(index, weight, uniform)
	b.pick(index, t.cfg.Samples)
}

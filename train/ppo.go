package train

import (
	"fmt"

	"exp/train/rl"
)

// ppo is proximal policy optimization with a critic (arXiv:1707.06347): GAE
// advantages, whitened over the step, and the clipped loss.
type ppo struct{ c Config }

func (a ppo) advantages(b *batch) error {
	rl.GAE(b.adv, b.ret, b.reward, b.value, b.mask, b.rows, a.c.Gamma, a.c.Lambda)
	if err := rl.Whiten(b.adv, b.mask, true); err != nil {
		return fmt.Errorf("ppo: %w", err)
	}
	return nil
}

func (a ppo) newLoss(n rl.Counts) policyLoss { return &clippedLoss{c: a.c, n: n} }

// clippedLoss is the policy loss of PPO and GRPO with their optional terms:
//
//	L = clipped + KL.LossCoef·KL - EntropyCoef·H
type clippedLoss struct {
	c           Config
	n           rl.Counts
	stats       rl.PolicyStats
	kl, entropy float64
}

func (l *clippedLoss) add(p *rl.Batch[float32], entropy, _ []float32, g gradients) {
	l.c.Aggregation.Coefficients(p.Coef, p.Mask, p.Rows, l.n)
	rl.PPO(g.logProb, p, l.c.Clip, &l.stats)
	if l.c.KL.LossCoef != 0 {
		rl.KLLoss(g.logProb, p, l.c.KL.LossEstimator, l.c.KL.LossCoef, &l.kl)
	}
	rl.EntropyBonus(g.entropy, entropy, p.Mask, p.Coef, l.c.EntropyCoef, &l.entropy)
}

func (l *clippedLoss) metrics() []rl.Metric {
	m := append(l.stats.Metrics(), rl.Metric{Name: "actor/entropy_loss", Value: l.entropy})
	if l.c.KL.LossCoef != 0 {
		m = append(m, rl.Metric{Name: "actor/kl_loss", Value: l.kl}, rl.Metric{Name: "actor/kl_coef", Value: l.c.KL.LossCoef})
	}
	return m
}

package train

import "exp/train/rl"

// grpo is group relative policy optimization (arXiv:2402.03300): the advantage of
// a completion is its reward against the other completions of its problem, with
// or without their standard deviation (without: Dr. GRPO, arXiv:2503.20783). The
// loss is PPO's.
type grpo struct{ c Config }

func (a grpo) advantages(b *batch) error {
	adv := b.rewardSums()
	rl.GroupAdvantage(adv, adv, b.group, a.c.ScaleStd)
	rl.Spread(b.adv, adv, b.mask, b.rows)
	copy(b.ret, b.adv)
	return nil
}

func (a grpo) newLoss(n rl.Counts) policyLoss { return &clippedLoss{c: a.c, n: n} }

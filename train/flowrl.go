package train

import "exp/train/rl"

// flowRL is trajectory balance with a learned partition function
// (arXiv:2509.15207); see rl.FlowRL for the loss and its variants.
type flowRL struct{ c Config }

// advantages puts FlowRL's reward, one number per completion, on every token.
func (a flowRL) advantages(b *batch) error {
	reward := b.rewardSums()
	if a.c.FlowReward != RawReward {
		rl.GroupAdvantage(reward, reward, b.group, a.c.FlowReward == GroupAdvantage)
	}
	rl.Spread(b.adv, reward, b.mask, b.rows)
	copy(b.ret, b.adv)
	return nil
}

func (a flowRL) newLoss(n rl.Counts) policyLoss { return &flowLoss{c: a.c, rows: n.Rows} }

type flowLoss struct {
	c     Config
	rows  int
	stats rl.FlowRLStats
}

func (l *flowLoss) add(p *rl.Batch[float32], _, logZ []float32, g gradients) {
	rl.FlowRL(g.logProb, g.logZ, p, logZ, l.rows, l.c.Flow, &l.stats)
}

func (l *flowLoss) metrics() []rl.Metric { return l.stats.Metrics() }

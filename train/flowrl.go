package train

import "exp/train/rl"

// flowLoss is trajectory balance with a learned partition function
// (arXiv:2509.15207); see rl.FlowRL for the loss and its variants.
type flowLoss struct {
	c     Config
	n     rl.Counts
	stats rl.FlowRLStats
}

func (l *flowLoss) add(p *rl.Batch[float32], _, logZ []float32, g gradients) {
	if l.c.Flow.Terms == rl.TokenTerms || l.c.Flow.Surrogate {
		l.c.Aggregation.Coefficients(p.Coef, p.Mask, p.Rows, l.n)
	}
	rl.FlowRL(g.logProb, g.logZ, p, logZ, l.n.Rows, l.c.Flow, &l.stats)
}

func (l *flowLoss) metrics() []rl.Metric { return l.stats.Metrics() }

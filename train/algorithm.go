package train

import "exp/train/rl"

// algorithm is all that distinguishes one RL algorithm from another; the loop does
// not know which one runs. Each has a file of its own.
type algorithm interface {
	// advantages fills b.adv and b.ret from b.reward and b.value.
	advantages(b *batch) error
	// newLoss starts the policy loss of a mini-batch.
	newLoss(n rl.Counts) policyLoss
}

// policyLoss computes the gradient of a mini-batch's loss, micro-batch by
// micro-batch, in order.
type policyLoss interface {
	// add adds the gradient of the rows of p. entropy [N] belongs to p's tokens, logZ
	// [B] to its rows (nil without a log Z head).
	add(p *rl.Batch[float32], entropy, logZ []float32, g gradients)
	// metrics are of the whole mini-batch.
	metrics() []rl.Metric
}

// gradients are where a loss leaves its derivatives; zero when add is called.
type gradients struct {
	logProb, entropy []float32 // [N]
	logZ             []float32 // [B]
}

func newAlgorithm(c Config) algorithm {
	switch c.Kind {
	case FlowRL:
		return flowRL{c}
	case PPO:
		return ppo{c}
	case GRPO:
		return grpo{c}
	}
	panic("train: unknown algorithm " + string(c.Kind))
}

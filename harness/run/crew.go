package run

import (
	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/generate"
)

// crew is ranks that do the same work in a stage.
type crew struct {
	all             int // ranks of the run
	ranks           int
	tensor, rollout int // neighbours that share products, in training and in sampling
	learns, samples bool
}

// everyone is all ranks of a stage in which all work alike.
func everyone(c *config.Run, ranks int) crew {
	w := crew{all: ranks, ranks: ranks, tensor: 1, rollout: 1, learns: true, samples: true}
	if ranks > 1 {
		w.tensor, w.rollout = c.Compute.TensorParallel, c.Compute.SampleTensor()
	}
	return w
}

// learnersOf returns the ranks that learn in training. If others sample, these sample validations only, from the
// weights that they train.
func learnersOf(c *config.Run, ranks int) crew {
	w := everyone(c, ranks)
	if w.ranks = learning(c, ranks); w.ranks < ranks {
		w.rollout, w.samples = w.tensor, c.Eval.Online.EverySteps > 0
	}
	return w
}

// samplersOf returns the ranks that only sample.
func samplersOf(c *config.Run, ranks int) crew {
	t := c.Compute.SampleTensor()
	return crew{all: ranks, ranks: ranks - learning(c, ranks), tensor: t, rollout: t, samples: true}
}

// learning returns how many of some ranks share the work of learning.
func learning(c *config.Run, ranks int) int { return max(1, ranks-c.Compute.RolloutRanks) }

// groups returns how many groups share the mini-batches.
func (w crew) groups() int { return w.ranks / w.tensor }

// judges reports whether one of the ranks has the reward model.
func (w crew) judges() bool { return w.samples && (!w.learns || w.ranks == w.all) }

// copies reports whether the ranks sample from a copy of the weights that they train.
func (w crew) copies() bool { return w.learns && w.samples && w.rollout != w.tensor }

// calls returns the largest calls of a rank's sampler in training.
func (w crew) calls(c *config.Run) []generate.Call {
	switch {
	case !w.learns:
		return stage.Calls(c, true, false, max(1, w.ranks/w.rollout))
	case w.ranks < w.all: // others sample for training
		return stage.Calls(c, false, true, 1)
	}
	return stage.Calls(c, true, true, max(1, w.ranks/w.rollout))
}

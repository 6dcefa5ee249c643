package stage

import (
	"exp/harness/config"
	"exp/train/generate"
)

// Crew is ranks that do the same work in a stage: all, those that learn, or those that only sample. Its ranks are
// neighbours.
type Crew struct {
	All             int // ranks of the run
	First, Ranks    int // the first of the crew's, and how many it has
	Tensor, Rollout int // neighbours that share products, in training and in sampling
	Learns, Samples bool
}

// Everyone is all ranks of a stage in which all work alike.
func Everyone(c *config.Run, ranks int) Crew {
	w := Crew{All: ranks, Ranks: ranks, Tensor: 1, Rollout: 1, Learns: true, Samples: true}
	if ranks > 1 {
		w.Tensor, w.Rollout = c.Compute.TensorParallel, c.Compute.SampleTensor()
	}
	return w
}

// Learners returns the ranks that learn in training. If others sample, these sample validations only, from the
// weights that they train.
func Learners(c *config.Run, ranks int) Crew {
	w := Everyone(c, ranks)
	if w.Ranks = max(1, ranks-c.Compute.RolloutRanks); w.Apart() {
		w.Rollout, w.Samples = w.Tensor, c.Eval.Online.EverySteps > 0
	}
	return w
}

// Samplers returns the ranks that only sample.
func Samplers(c *config.Run, ranks int) Crew {
	t, learning := c.Compute.SampleTensor(), Learners(c, ranks).Ranks
	return Crew{All: ranks, First: learning, Ranks: ranks - learning, Tensor: t, Rollout: t, Samples: true}
}

// CrewOf returns the crew of one of the ranks in training.
func CrewOf(c *config.Run, rank, ranks int) Crew {
	if w := Learners(c, ranks); rank < w.Ranks {
		return w
	}
	return Samplers(c, ranks)
}

// Apart reports whether some ranks only sample, and the others learn.
func (w Crew) Apart() bool { return w.Ranks < w.All }

// Groups returns how many groups share the mini-batches.
func (w Crew) Groups() int { return w.Ranks / w.Tensor }

// Judges reports whether the first of the ranks has the reward model.
func (w Crew) Judges() bool { return w.Samples && !(w.Learns && w.Apart()) }

// Copies reports whether the ranks sample from a copy of the weights that they train.
func (w Crew) Copies() bool { return w.Learns && w.Samples && w.Rollout != w.Tensor }

// Calls returns the largest calls of a rank's sampler in training.
func (w Crew) Calls(c *config.Run) []generate.Call {
	dealt := max(1, w.Ranks/w.Rollout)
	switch {
	case !w.Learns:
		return calls(c, true, false, dealt)
	case w.Apart(): // others sample for training
		return calls(c, false, true, 1)
	}
	return calls(c, true, true, dealt)
}

// crew returns this rank's crew in training.
func (e *Env) crew() Crew { return CrewOf(e.run(), e.group().Rank(), e.group().Size()) }

// validates reports whether this rank samples for validations: all do, but if some only sample, these wait, and
// of the others the first one samples with those that share its products.
func (e *Env) validates() bool {
	w := e.crew()
	return e.run().Eval.Online.EverySteps > 0 && (!w.Apart() || w.Learns && e.group().Rank() < w.Tensor)
}

// samples reports whether this rank needs a sampler.
func (e *Env) samples() bool {
	w := e.crew()
	return !w.Learns || !w.Apart() || e.validates()
}

// judges reports whether this rank grades alone what judges, commands and reward models grade.
func (e *Env) judges() bool { return e.crew().Judges() && e.group().Rank() == e.crew().First }

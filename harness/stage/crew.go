package stage

import (
	"exp/harness/config"
	"exp/train"
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

// Judges returns how many of the ranks, the first ones, score completions with the run's reward.
func (w Crew) Judges(c *config.Run) int {
	if !w.Samples || w.Learns && w.Apart() {
		return 0
	}
	if judges := rewardKindOf(&c.Reward).judges; judges != nil {
		return judges(&c.Reward, w.Ranks, w.besides(c))
	}
	return 1
}

// besides returns how many ranks score completions beside those of the crew that judge: if some ranks only sample, the
// first of the others scores validations that nothing but the reward judges.
func (w Crew) besides(c *config.Run) int {
	if w.Apart() && !w.Learns && c.JudgesAlone() && c.Eval.Online.EverySteps > 0 {
		return 1
	}
	return 0
}

// Scores reports whether one of the ranks holds what gives the run's reward: one that judges or, if others sample for
// training, the first one for validations that nothing else judges.
func (w Crew) Scores(c *config.Run) bool {
	return w.Judges(c) > 0 || w.Learns && w.Apart() && Samplers(c, w.All).besides(c) > 0
}

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

// crew returns this rank's crew in training, or where pass rates are measured.
func (e *Env) crew() Crew {
	if e.rating {
		return Everyone(e.run(), e.group().Size())
	}
	return CrewOf(e.run(), e.group().Rank(), e.group().Size())
}

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

// judges reports whether this rank scores completions with the run's reward.
func (e *Env) judges() bool { return e.group().Rank()-e.crew().First < e.crew().Judges(e.run()) }

// judging says how ranks divide what a grader of batches judges: the run's reward, or else the task.
func (e *Env) judging(byReward bool) (x train.Judging, err error) {
	if !byReward {
		return x, nil
	}
	x.Ranks = e.crew().Judges(e.run())
	if reads := rewardKindOf(&e.run().Reward).reads; reads != nil && x.Ranks > 1 {
		x.Alike, err = reads(&e.run().Reward)
	}
	return x, err
}

// seat returns this rank's place among the ranks that may score completions at the same time.
func (e *Env) seat() (place, of int) {
	c, w := e.run(), e.crew()
	if !w.Apart() {
		return e.group().Rank(), w.Judges(c)
	}
	samplers := Samplers(c, w.All)
	if place, of = e.group().Rank()-samplers.First, samplers.Judges(c); w.Learns {
		place = of
	}
	return place, of + samplers.besides(c)
}

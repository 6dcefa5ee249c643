package train

import (
	"context"
	"encoding/json"
	"errors"

	"exp/kernels"
	"exp/train/ranks"
)

// Ranks that only sample (Parts.Samplers) are the last ones of a run. In each step they sample,
// grade and verify the step that lies Config.Staleness ahead, while the others learn from one
// that was sampled before. At its end all ranks get the completions, and the samplers the new
// weights. A step is thus sampled by the same policy as without them, and records the same.

// joinRanks makes the trainer one of its ranks.
func (t *Trainer) joinRanks() (err error) {
	if t.Ranks == nil {
		t.Ranks = ranks.Alone{}
	}
	if t.RolloutTensor == 0 {
		t.RolloutTensor = t.Tensor
	}
	size := t.Ranks.Size() - t.Samplers
	switch {
	case t.Samplers == 0:
	case size < 1:
		return errors.New("train: all ranks sample, and none learns")
	case t.cfg.Staleness == 0:
		return errors.New("train: ranks that only sample need staleness of 1 or more")
	}
	t.learning, t.sampling = t.Ranks, t.Ranks
	if t.Samplers > 0 {
		t.learning, t.sampling = ranks.Between(t.Ranks, 0, size), ranks.Between(t.Ranks, size, t.Ranks.Size())
	}
	if !t.onlySamples() {
		if t.data, err = dataGroup(t.learning, t.Tensor, t.cfg.Slices); err != nil || t.Samplers > 0 {
			return err
		}
	}
	drawing, err := groupOf(t.sampling, t.RolloutTensor)
	if err != nil {
		return err
	}
	if t.onlySamples() {
		t.data = drawing
	}
	if drawing.Size() > 1 {
		t.Sampler = dealtSampler{t.Sampler, drawing, t.show}
	}
	return nil
}

// onlySamples reports whether this rank learns nothing.
func (t *Trainer) onlySamples() bool { return t.Ranks.Rank() >= t.Ranks.Size()-t.Samplers }

// material makes sure that the next step has its completions.
func (t *Trainer) material(ctx context.Context, clock *stopwatch) error {
	switch {
	case t.Samplers == 0:
		return t.collectAhead(ctx, clock)
	case len(t.pending) > 0:
		return nil
	}
	err := t.receive(nil)
	clock.lap("gen")
	return err
}

// sampleStep does the part of the next step of a rank that only samples.
func (t *Trainer) sampleStep(ctx context.Context, clock *stopwatch) error {
	first, before := len(t.pending) == 0, len(t.pending)
	err := t.collectAhead(ctx, clock)
	fresh := t.pending[before:]
	t.pending = t.pending[:before]
	if first { // the others wait for it
		if err := t.receive(fresh, err); err != nil {
			return err
		}
		fresh, err = nil, nil
	}
	t.step, t.pending = t.step+1, t.pending[1:]
	return t.finish(clock, fresh, err)
}

// finish ends a step with samplers: they hand over what they sampled, and get the weights.
func (t *Trainer) finish(clock *stopwatch, fresh []*collected, failed ...error) error {
	if t.Samplers == 0 {
		return nil
	}
	if err := t.receive(fresh, failed...); err != nil {
		return err
	}
	err := t.teach()
	clock.lap("gen")
	return err
}

// Meet waits until all ranks call it, for as long as that takes: some may sample, learn, validate or save
// before. It returns an error on every rank if any has one, as ranks.Agree does. Ranks should meet before they
// exchange device memory, where the limit of an exchange always applies.
//
// A rank that has an error waits only until the limit: another rank, the cause of the error, may never come. After a
// failed exchange no other follows, and the rank returns at once.
func (t *Trainer) Meet(failed error) error { return t.meet(t.Ranks, failed) }

// meet is Meet for some ranks.
func (t *Trainer) meet(g ranks.Group, failed error) error {
	if ranks.IsBroken(failed) {
		return failed
	}
	if t.Wait != nil && failed == nil {
		t.Wait(true)
		defer t.Wait(false)
	}
	return ranks.Agree(g, failed)
}

// receive gives every rank the steps that the samplers have sampled, or their error.
func (t *Trainer) receive(fresh []*collected, failed ...error) error {
	err := t.Meet(errors.Join(failed...))
	if err != nil {
		return err
	}
	var mine []byte
	if t.onlySamples() && t.sampling.Rank() == 0 {
		list := make([]Pending, len(fresh))
		for i, c := range fresh {
			list[i] = pendingOf(c)
		}
		if mine, err = json.Marshal(list); err != nil {
			panic("train: " + err.Error()) // a checkpoint holds it, too
		}
	}
	all, err := ranks.Share(t.Ranks, mine)
	if err != nil {
		return err
	}
	var list []Pending
	if err := json.Unmarshal(all[t.learning.Size()], &list); err != nil {
		return err
	}
	problem := t.problemIndex()
	for _, p := range list {
		c, err := collectedOf(p, problem, t)
		if err != nil {
			return err
		}
		t.pending, t.batches, t.meanSpread = append(t.pending, c), c.batches, c.meanSpread
	}
	return nil
}

// problemIndex returns the places of the problems by id.
func (t *Trainer) problemIndex() map[string]int {
	problem := make(map[string]int, len(t.Problems))
	for i := range t.Problems {
		problem[t.Problems[i].ID] = i
	}
	return problem
}

// teach gives the samplers the policy's weights and the coefficient that filters use.
func (t *Trainer) teach() error {
	give := t.copyWeights
	if t.Policy.Heads.Adapters != nil {
		give = t.giveAdapters
	}
	if err := give(); err != nil {
		return err
	}
	coef, ends := []float64{t.klCoef}, make([]int, t.Ranks.Size())
	for r := range ends {
		ends[r] = 1 // the first rank's
	}
	if err := ranks.Gather(t.Ranks, kernels.Host(coef), ends); err != nil {
		return err
	}
	if t.onlySamples() {
		t.klCoef = coef[0]
	}
	return nil
}

// giveAdapters gives the samplers the policy's adapters. Each learning rank sends a part.
func (t *Trainer) giveAdapters() error {
	rank, learning := t.Ranks.Rank(), t.learning.Size()
	params := t.Policy.Params()
	var parts []ranks.Part
	lo := 0
	for r, hi := range ranks.Shards(params.Len(), learning) {
		for s := learning; s < t.Ranks.Size() && lo < hi; s++ {
			if r == rank {
				parts = append(parts, ranks.Part{Data: params.Slice(lo, hi), Peer: s, Send: true})
			} else if s == rank {
				parts = append(parts, ranks.Part{Data: params.Slice(lo, hi), Peer: r})
			}
		}
		lo = hi
	}
	t.Backend.Sync()
	err := t.Ranks.Exchange(parts)
	if err == nil && t.onlySamples() {
		t.Policy.Refresh()
	}
	return err
}

// spread gives a restored state to all ranks, with the weights and moments that belong to each; Run
// teaches the samplers.
func (t *Trainer) spread(s *State, learners ...*learner) error {
	if t.Samplers == 0 {
		return spread(t.Ranks, s, learners...)
	}
	if !t.onlySamples() {
		if err := spread(t.learning, s, learners...); err != nil {
			return err
		}
	}
	return shareState(t.Ranks, s)
}

package train

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"

	"exp/train/ranks"
	"exp/train/rollout"
)

// dataGroup returns the ranks of g that share mini-batches with this one, where tensor neighbouring
// ranks share products; 0 stands for 1.
func dataGroup(g ranks.Group, tensor, slices int) (ranks.Group, error) {
	data, err := groupOf(g, tensor)
	if err == nil && data.Size() > slices {
		return nil, fmt.Errorf("train: %d ranks for %d slices: every rank needs one", data.Size(), slices)
	}
	return data, err
}

// groupOf returns the ranks of g that divide work with this one, where tensor neighbouring ranks share
// products; 0 stands for 1.
func groupOf(g ranks.Group, tensor int) (ranks.Group, error) {
	if g.Size()%max(1, tensor) != 0 {
		return nil, fmt.Errorf("train: %d ranks for products shared by %d: want a multiple", g.Size(), tensor)
	}
	data, _ := ranks.Grid(g, max(1, tensor))
	return data, nil
}

// dealtSampler deals requests among the ranks and returns everybody's completions. Which
// rank draws a completion changes no bit of it (rollout.Request).
type dealtSampler struct {
	rollout.Sampler
	group ranks.Group
	show  func(c *rollout.Completion) error // gives images that agents of other ranks brought their tokens here
}

// draw is one completion that is asked for.
type draw struct{ request, seed int }

// deal returns what each rank draws: whole requests in turn, or their seeds in turn if there
// are fewer requests than ranks.
func (s dealtSampler) deal(reqs []rollout.Request) [][]draw {
	size := s.group.Size()
	out := make([][]draw, size)
	n := 0
	for i := range reqs {
		for k := range reqs[i].Seeds {
			r := i % size
			if len(reqs) < size {
				r = n % size
			}
			out[r] = append(out[r], draw{i, k})
			n++
		}
	}
	return out
}

// Sample implements rollout.Sampler. done counts as if all ranks were as fast as this one.
func (s dealtSampler) Sample(ctx context.Context, reqs []rollout.Request, p rollout.Params,
	done func(n int)) ([][]rollout.Completion, error) {
	dealt := s.deal(reqs)
	var own []rollout.Request
	last := -1
	for _, d := range dealt[s.group.Rank()] {
		if d.request != last {
			r := reqs[d.request]
			own, last = append(own, rollout.Request{Prompt: r.Prompt, Problem: r.Problem}), d.request
		}
		seeds := &own[len(own)-1].Seeds
		*seeds = append(*seeds, reqs[d.request].Seeds[d.seed])
	}
	var list []rollout.Completion
	var err error
	if len(own) > 0 {
		var got [][]rollout.Completion
		got, err = s.Sampler.Sample(ctx, own, p, s.progress(dealt, done))
		for i := range got {
			list = append(list, got[i]...)
		}
	}
	lists, err := s.share(list, err)
	if err != nil {
		return nil, err
	}
	out := make([][]rollout.Completion, len(reqs))
	for i := range out {
		out[i] = make([]rollout.Completion, len(reqs[i].Seeds))
	}
	for r, draws := range dealt {
		for i, d := range draws {
			out[d.request][d.seed] = lists[r][i]
		}
	}
	return out, nil
}

// share returns every rank's completions, by rank.
func (s dealtSampler) share(list []rollout.Completion, err error) ([][]rollout.Completion, error) {
	named := make([]rollout.Completion, len(list))
	for i := range list {
		named[i] = *list[i].Named()
	}
	lists, err := share(s.group, named, err)
	if err != nil {
		return nil, err
	}
	for r := range lists {
		if r == s.group.Rank() {
			lists[r] = list
			continue
		}
		for i := range lists[r] {
			err = errors.Join(err, s.show(&lists[r][i]))
		}
	}
	return lists, err
}

// progress returns a function for the number of this rank's completions, which tells done of all ranks'.
func (s dealtSampler) progress(dealt [][]draw, done func(n int)) func(n int) {
	if done == nil {
		return nil
	}
	all := 0
	for _, list := range dealt {
		all += len(list)
	}
	own := len(dealt[s.group.Rank()])
	return func(n int) { done(n * all / own) }
}

// share returns every rank's list, by rank. If a rank failed, all ranks return an error.
func share[T any](g ranks.Group, mine []T, err error) ([][]T, error) {
	if err := ranks.Agree(g, err); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(mine); err != nil {
		panic("train: " + err.Error()) // memory takes everything
	}
	all, err := ranks.Share(g, b.Bytes())
	if err != nil {
		return nil, err
	}
	lists := make([][]T, len(all))
	for r := range all {
		if r == g.Rank() {
			lists[r] = mine
			continue
		}
		if err := gob.NewDecoder(bytes.NewReader(all[r])).Decode(&lists[r]); err != nil {
			return nil, fmt.Errorf("from rank %d: %w", r, err)
		}
	}
	return lists, nil
}

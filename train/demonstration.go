package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"exp/train/rl"
	"exp/train/rollout"
)

// Demonstrations are right completions that no policy of the run sampled. Each is the last member of its problem's
// group: estimators read its reward, and the policy loss leaves its tokens to a term of their own.

// drawGroups returns the groups of problems: completions of the policy, the last of them replaced by the demonstration
// where the problem has one.
func (t *Trainer) drawGroups(ctx context.Context, step int, problems []int, events *[]Event) ([]Trajectory, error) {
	n := t.cfg.Samples
	if t.cfg.Demonstrations.Weight == 0 {
		return t.sample(ctx, step, problems, func(int) int { return n })
	}
	shown, err := t.demonstrations(step, problems, events)
	if err != nil {
		return nil, err
	}
	own, err := t.sample(ctx, step, problems, func(p int) int {
		if shown[p] == nil {
			return n
		}
		return n - 1
	})
	if err != nil {
		return nil, err
	}
	var list []Trajectory
	for _, p := range problems {
		if c := shown[p]; c != nil {
			list = append(list, Trajectory{Problem: &t.Problems[p], Sample: n - 1, Prompt: t.prompt[p], Completion: c})
		}
	}
	if len(list) > 0 {
		if err := t.adopt(step, list); err != nil {
			return nil, err
		}
	}
	all := make([]Trajectory, 0, n*len(problems))
	for _, p := range problems {
		k := slices.IndexFunc(own, func(x Trajectory) bool { return x.Problem != &t.Problems[p] })
		if k < 0 {
			k = len(own)
		}
		all, own = append(all, own[:k]...), own[k:]
		if shown[p] != nil {
			all, list = append(all, list[0]), list[1:]
		}
	}
	return all, nil
}

// demonstrations returns the demonstrations of problems, by problem, where they fit in MaxNewTokens. An event counts
// the problems without one.
func (t *Trainer) demonstrations(step int, problems []int, events *[]Event) (map[int]*rollout.Completion, error) {
	list := make(map[int]*rollout.Completion, len(problems))
	var none, long int
	for _, p := range problems {
		c, err := t.Demonstration(&t.Problems[p])
		switch {
		case err != nil:
			return nil, fmt.Errorf("the demonstration of problem %s: %w", t.Problems[p].ID, err)
		case c == nil:
			none++
		case len(c.Tokens) > t.cfg.Sampling.MaxNewTokens:
			long++
		default:
			c.Finish = rollout.FinishShown
			list[p] = c
		}
	}
	if none+long > 0 {
		*events = append(*events, Event{Kind: "no-demonstration", Text: fmt.Sprintf("step %d: of %d problems %d have "+
			"no demonstration and %d one of more than %d tokens: the policy samples their whole groups", step,
			len(problems), none, long, t.cfg.Sampling.MaxNewTokens)})
	}
	return list, nil
}

// isShown reports whether the trajectory is a demonstration.
func (tr *Trajectory) isShown() bool { return tr.Completion.Finish == rollout.FinishShown }

// withoutShown returns the trajectories without demonstrations.
func withoutShown(all []Trajectory) []Trajectory {
	if !slices.ContainsFunc(all, func(tr Trajectory) bool { return tr.isShown() }) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(tr Trajectory) bool { return tr.isShown() })
}

// withoutShown returns the batch without demonstrations.
func (b *batch) withoutShown() *batch {
	var index []int
	for i, tr := range b.traj {
		if !tr.isShown() {
			index = append(index, i)
		}
	}
	if len(index) == len(b.traj) {
		return b
	}
	return b.chosen(index)
}

// shown returns the trained tokens of demonstrations and the other ones, both [N].
func (b *batch) shown() (shown, own []bool) {
	shown, own = make([]bool, len(b.mask)), slices.Clone(b.mask)
	for i, tr := range b.traj {
		if lo, hi := b.rows[i], b.rows[i+1]; tr.isShown() {
			copy(shown[lo:hi], b.mask[lo:hi])
			clear(own[lo:hi])
		}
	}
	return shown, own
}

// checkDemonstrations reports settings that cannot go with demonstrations.
func (c Config) checkDemonstrations(e rl.Estimator, l rl.PolicyLoss) error {
	d := c.Demonstrations
	var with string
	switch {
	case d.Weight == 0:
		return nil
	case !(d.Shaping > 0):
		return fmt.Errorf("train: demonstrations with shaping %g: want more than 0", d.Shaping)
	case c.Samples < 2:
		with = "groups of one completion"
	case !l.ByTokens || l.Whole:
		with = "the loss " + l.Name
	case e.Values || e.Process || e.Tracks:
		with = "the estimator " + e.Name
	case c.Self != RewardGraded:
		with = "rewards that completions give themselves"
	case c.KL.RewardCoef != 0:
		with = "a KL in the reward"
	case c.Correction.Bypass != 0:
		with = "rollout correction in bypass mode"
	case c.Staleness > 0:
		with = "stale completions"
	case c.Turns:
		with = "tools"
	default:
		return nil
	}
	return fmt.Errorf("train: demonstrations do not go with %s", with)
}

// checkDemonstrations reports parts that cannot go with demonstrations.
func (p Parts) checkDemonstrations(c Config) error {
	switch {
	case c.Demonstrations.Weight == 0:
		return nil
	case p.Demonstration == nil:
		return errors.New("train: no demonstrations of problems")
	case p.Recorded != nil:
		return errors.New("train: recorded rollouts take no demonstrations")
	case p.Samplers > 0:
		return errors.New("train: the ranks that sample compute demonstrations' log-probs, so no rank can only sample")
	}
	return nil
}

package train

import (
	"context"
	"errors"
	"fmt"

	"exp/kernels"
	"exp/train/rl"
	"exp/train/rollout"
)

// tracker holds what single-stream policy optimization (rl.SPOConfig) knows of each problem. It is brought up to date
// as completions are sampled, not as they are trained on. All ranks hold the same.
type tracker struct {
	rl.SPOConfig
	started bool
	known   []tracked // by problem
}

// tracked is one problem of a tracker.
type tracked struct {
	rl.BetaValue
	last *rollout.Completion // of the last visit; nil before, and where rho does not depend on it
}

// Tracked is a problem of a tracker in a State. The last completion is there with its sampler's log-probs, as bytes
// of a PendingRow; it has no text.
type Tracked struct {
	Problem string `json:"problem"`
	rl.BetaValue
	Tokens   []byte         `json:"tokens,omitempty"`
	LogProbs []byte         `json:"logprobs,omitempty"`
	Inserted []rollout.Span `json:"inserted,omitempty"`
	Asked    *rollout.Asked `json:"asked,omitempty"`
}

// newTracker returns the tracker of the configured estimator; nil if it has none.
func (t *Trainer) newTracker() (*tracker, error) {
	e, settings := t.cfg.estimator()
	switch {
	case !e.Tracks:
		return nil, nil
	case t.cfg.Samples != 1:
		return nil, fmt.Errorf("train: %s has one completion per problem, not %d", e.Name, t.cfg.Samples)
	case t.Recorded != nil:
		return nil, fmt.Errorf("train: %s chooses its problems, so rollouts cannot be recorded ones", e.Name)
	case t.Samplers > 0:
		return nil, fmt.Errorf("train: %s needs the state of its values where it samples: no rank can only sample",
			e.Name)
	}
	return &tracker{SPOConfig: rl.SPOSettings(settings), known: make([]tracked, len(t.Problems))}, nil
}

// choose returns the problems of a batch, counted from 1, and its epoch: in the order of the data, or drawn by the
// tracker.
func (t *Trainer) choose(batch int) (problems []int, epoch int) {
	problems, epoch = t.order.step(batch)
	if t.tracker == nil {
		return problems, epoch
	}
	weight, uniform := make([]float64, len(t.Problems)), make([]float64, t.cfg.PromptsPerStep)
	for i, x := range t.tracker.known {
		weight[i] = t.tracker.Weight(x.Value())
	}
	key := kernels.PhiloxKey(t.Seed(fmt.Sprintf("spo/step=%d", batch)))
	for i := range uniform {
		uniform[i] = float64(philox64(key, i)>>11) / (1 << 53)
	}
	problems = make([]int, t.cfg.PromptsPerStep)
	rl.DrawWithout(problems, weight, uniform)
	return problems, epoch
}

// startTracking samples the first completions of all problems, as step 0, and sets their first values. The
// completions are not recorded.
func (t *Trainer) startTracking(ctx context.Context, got *collected, clock *stopwatch) error {
	x := t.tracker
	for lo := 0; lo < len(x.known); lo += t.cfg.PromptsPerStep {
		hi := min(lo+t.cfg.PromptsPerStep, len(x.known))
		if x.First == 0 {
			for p := lo; p < hi; p++ {
				x.known[p].BetaValue = x.Start(0, 0)
			}
			continue
		}
		problems := make([]int, hi-lo)
		for i := range problems {
			problems[i] = lo + i
		}
		all, err := t.sample(ctx, 0, problems, func(int) int { return x.First })
		if err != nil {
			return fmt.Errorf("sampling first values: %w", err)
		}
		clock.lap("gen")
		if err := t.grade(ctx, 0, all, &got.events); err != nil {
			return fmt.Errorf("grading first values: %w", err)
		}
		clock.lap("reward")
		for i, p := range problems {
			var sum float64
			n := 0
			for _, tr := range all[i*x.First : (i+1)*x.First] {
				got.greedyTokens += tr.Completion.SampledTokens()
				if tr.Verdict.Status != rollout.Graded {
					continue
				}
				if err := trackable(&tr); err != nil {
					return err
				}
				sum += tr.Verdict.Reward
				n++
			}
			x.known[p].BetaValue = x.Start(sum, n)
		}
	}
	x.started = true
	return nil
}

// trackable returns an error unless a tracker can read a completion's reward.
func trackable(tr *Trajectory) error {
	if r := tr.Verdict.Reward; r < 0 || r > 1 {
		return fmt.Errorf("train: problem %s, sample %d: the reward is %v, but spo tracks rewards from 0 to 1: let "+
			"the task's reward keys, or your grader, give such", tr.Problem.ID, tr.Sample, r)
	}
	return nil
}

// track sets the baselines of a step's completions, the values of their problems before them, and brings the tracker
// up to date. It returns verl's metrics of the recipe spo.
func (t *Trainer) track(step int, all []Trajectory) (map[*rollout.Problem]float64, []rl.Metric, error) {
	for i := range all {
		if all[i].Verdict.Status == rollout.Graded {
			if err := trackable(&all[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	index, problems := t.problemIndex(), make([]int, len(all))
	for i := range all {
		problems[i] = index[all[i].Problem.ID]
	}
	x, distance := t.tracker, t.distances(step, problems)
	value := make(map[*rollout.Problem]float64, len(all))
	var values, weights, moved, rhos, first, n float64
	for i := range all {
		tr, known := &all[i], &x.known[problems[i]]
		value[tr.Problem] = known.Value()
		if tr.Verdict.Status != rollout.Graded {
			continue
		}
		if known.last == nil {
			first++
		}
		rho := x.Rho(distance[i])
		values, weights, moved = values+known.Value(), weights+(known.Alpha+known.Beta), moved+distance[i]
		rhos, n = rhos+rho, n+1
		known.BetaValue = known.Update(rho, tr.Verdict.Reward)
		if !x.Constant() {
			known.last = &rollout.Completion{Tokens: tr.Completion.Tokens, LogProbs: tr.Completion.LogProbs,
				Inserted: tr.Completion.Inserted, Asked: tr.Completion.Asked}
		}
	}
	if n == 0 {
		return value, nil, nil
	}
	m := []rl.Metric{{Name: "spo/p_hats", Value: values / n}, {Name: "spo/Neff", Value: weights / n},
		{Name: "spo/rho_clipped", Value: rhos / n}}
	if !x.Constant() {
		m = append(m, rl.Metric{Name: "spo/D", Value: moved / n},
			rl.Metric{Name: "spo/first_sampled_ratio", Value: first / n})
	}
	return value, m, nil
}

// distances returns how far the policy has moved since the last visits of problems: the change of the log-probs of
// the completions that it sampled then; 0 for a first visit.
func (t *Trainer) distances(step int, problems []int) []float64 {
	distance := make([]float64, len(problems))
	var again []Trajectory
	var place []int
	for i, p := range problems {
		if last := t.tracker.known[p].last; last != nil {
			again = append(again, Trajectory{Problem: &t.Problems[p], Prompt: last.PromptOf(t.prompt[p]),
				Completion: last, Verdict: rollout.Verdict{Status: rollout.Graded}})
			place = append(place, i)
		}
	}
	if len(again) == 0 {
		return distance
	}
	b := newBatch(again, rl.Overlong{}, nil)
	t.rows(t.passes, step, "last visits", len(again))
	now := t.passes.logProbs(t.Policy, b, 0, len(again), t.cfg.Sampling.Temperature)
	for k, i := range place {
		lo, hi := b.rows[k], b.rows[k+1]
		distance[i] = rl.Distance(now[lo:hi], b.roll[lo:hi], b.mask[lo:hi])
	}
	return distance
}

// state returns the tracker as a State holds it; nil before it has started.
func (x *tracker) state(problems []rollout.Problem) (list []Tracked) {
	if x == nil || !x.started {
		return nil
	}
	for i, k := range x.known {
		s := Tracked{Problem: problems[i].ID, BetaValue: k.BetaValue}
		if k.last != nil {
			last := k.last.Named()
			s.Tokens, s.LogProbs = littleEndian(last.Tokens), littleEndian(last.LogProbs)
			s.Inserted, s.Asked = last.Inserted, last.Asked
		}
		list = append(list, s)
	}
	return list
}

// restoreTracker sets the tracker to a state's.
func (t *Trainer) restoreTracker(s State) error {
	x := t.tracker
	if x == nil || s.Step == 0 && len(s.Tracked) == 0 {
		return nil
	}
	if len(s.Tracked) != len(t.Problems) {
		return fmt.Errorf("train: the checkpoint has the values of %d problems, data.train has %d", len(s.Tracked),
			len(t.Problems))
	}
	problem := t.problemIndex()
	for _, k := range s.Tracked {
		at, ok := problem[k.Problem]
		if !ok {
			return fmt.Errorf("train: checkpoint refers to problem %s, which is not in the data", k.Problem)
		}
		x.known[at] = tracked{BetaValue: k.BetaValue}
		if k.Tokens == nil {
			continue
		}
		last := &rollout.Completion{Inserted: k.Inserted, Asked: k.Asked}
		if err := errors.Join(fromLittleEndian(&last.Tokens, k.Tokens),
			fromLittleEndian(&last.LogProbs, k.LogProbs)); err != nil {
			return err
		}
		if err := t.show(last); err != nil {
			return err
		}
		x.known[at].last = last
	}
	x.started = true
	return nil
}

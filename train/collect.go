package train

import (
	"context"
	"fmt"
	"slices"

	"exp/train/rl"
	"exp/train/rollout"
)

// collected is the material a step learns from and records.
type collected struct {
	step    int
	sampled int          // steps the policy had finished when it sampled
	all     []Trajectory // recorded, in problem order
	groups  []int        // groups trained on: the index of each one's first completion in all, in problem order
	// baseline holds scores of greedy completions, or tracked values.
	baseline     map[*rollout.Problem]float64
	greedyTokens int     // of completions for baselines, which are not recorded
	batches      int     // batches of problems sampled up to the end of this step
	meanSpread   float64 // moving average of groups' standard deviations up to then
	epoch        int
	metrics      []rl.Metric
	events       []Event
	laid         *batch // see batch
}

// batch lays out the completions the step learns from.
func (c *collected) batch(cfg Config) *batch {
	if c.laid == nil {
		c.laid = newBatch(c.train(cfg.Samples), cfg.Overlong, c.baseline)
	}
	return c.laid
}

// train returns the completions of the groups that are trained on, samples per group.
func (c *collected) train(samples int) []Trajectory {
	out := make([]Trajectory, 0, len(c.groups)*samples)
	for _, at := range c.groups {
		out = append(out, c.all[at:at+samples]...)
	}
	return out
}

// candidates returns the completions that the step learns from if they have verdicts. It drops problems that lack a
// needed baseline.
func (c *collected) candidates(samples int) []Trajectory {
	return slices.DeleteFunc(c.train(samples), func(t Trajectory) bool {
		_, ok := c.baseline[t.Problem]
		return c.baseline != nil && !ok
	})
}

// collect samples and grades completions until the step has its groups. It records every
// completion.
//
// With a Filter it continues with further batches of problems in data order, as DAPO's
// trainer does; the next step continues after them. It skips a problem that this step has
// already sampled, so step, problem and sample name a completion's random stream whatever
// the filter does.
func (t *Trainer) collect(ctx context.Context, step int, clock *stopwatch) (*collected, error) {
	c := t.cfg
	got := &collected{step: step, sampled: t.step, batches: t.batches}
	if step == 1 && t.Recorded != nil && !t.Recorded.LogProbs {
		got.events = append(got.events, Event{Kind: "recorded-rollouts",
			Text: "the recorded rollouts have no log-probs: training treats the policy before each step as their " +
				"sampler, and rollout correction is off"})
	}
	if t.Recorded == nil {
		if err := t.prepare(ctx, got, clock); err != nil {
			return nil, err
		}
	}
	seen := make(map[int]bool)
	var dropped []int
	var self selfRewards
	spreads := spreads{least: float64(c.Filter.Spread * t.meanSpread)}
	for batch := 0; batch == 0 || len(got.groups) < c.PromptsPerStep && batch < c.Filter.MaxBatches; batch++ {
		got.batches++
		var problems []int
		var next []int
		next, got.epoch = t.choose(got.batches)
		for _, p := range next {
			if !seen[p] {
				seen[p] = true
				problems = append(problems, p)
			}
		}
		if len(problems) == 0 {
			continue
		}
		traj, given, err := t.draw(ctx, step, got, problems)
		if err != nil {
			return nil, fmt.Errorf("sampling: %w", err)
		}
		clock.lap("gen")
		if err := t.score(ctx, step, traj, given, &self, &got.events); err != nil {
			return nil, fmt.Errorf("grading: %w", err)
		}
		clock.lap("reward")
		at := len(got.all)
		got.all = append(got.all, traj...)
		keep := t.informative(traj, &spreads)
		for i, yes := range keep {
			if yes {
				got.groups = append(got.groups, at+i*c.Samples)
			} else {
				dropped = append(dropped, at+i*c.Samples)
			}
		}
	}
	groups, passed := len(got.groups)+len(dropped), len(got.groups)
	got.fill(c.PromptsPerStep, dropped)
	train := got.train(c.Samples)
	got.metrics = append(t.filterMetrics(got, float64(passed)/float64(groups), &spreads), self.metrics()...)
	if c.Overlong.Buffer > 0 {
		got.metrics = append(got.metrics, overlongMetrics(withoutShown(train), c.Overlong)...)
	}
	if err := t.findBaselines(ctx, step, got, train, clock); err != nil {
		return nil, err
	}
	return got, nil
}

// filterMetrics returns the metrics of a filter that a share of the groups has passed, and counts their spreads.
func (t *Trainer) filterMetrics(got *collected, passed float64, s *spreads) []rl.Metric {
	if t.cfg.Filter.By == FilterNone {
		return nil
	}
	list := []rl.Metric{{Name: "train/filter_batches", Value: float64(got.batches - t.batches)},
		{Name: "train/filter_passed", Value: passed}}
	if t.cfg.Filter.Spread > 0 {
		list = append(list, rl.Metric{Name: "train/filter_spread", Value: s.least})
		got.meanSpread = s.after(t.meanSpread)
	}
	return list
}

// prepare makes the sampler, and the tracker's first values, ready for a step.
func (t *Trainer) prepare(ctx context.Context, got *collected, clock *stopwatch) error {
	if err := t.PrepareSampler(); err != nil {
		return err
	}
	if t.tracker == nil || t.tracker.started {
		return nil
	}
	return t.startTracking(ctx, got, clock)
}

// findBaselines sets the baselines that the estimator reads.
func (t *Trainer) findBaselines(ctx context.Context, step int, got *collected, train []Trajectory,
	clock *stopwatch) error {
	switch e, _ := t.cfg.estimator(); {
	case e.Greedy:
		return t.collectGreedy(ctx, step, got, train, clock)
	case e.Tracks:
		value, metrics, err := t.track(step, train)
		got.baseline, got.metrics = value, append(got.metrics, metrics...)
		clock.lap("old_log_prob")
		return err
	}
	return nil
}

// score gives whole groups of completions their verdicts and rewards.
func (t *Trainer) score(ctx context.Context, step int, all []Trajectory, given []*float64, s *selfRewards,
	events *[]Event) error {
	if err := t.grade(ctx, step, all, events); err != nil {
		return err
	}
	err := t.rewardSelf(ctx, step, all, s)
	reward(all, given)
	return err
}

// fill takes dropped groups where fewer than want passed the filter, and tells so; it
// leaves out the rest.
func (c *collected) fill(want int, dropped []int) {
	passed := len(c.groups)
	if missing := want - passed; missing > 0 {
		c.groups = append(c.groups, dropped[:missing]...)
		c.events = append(c.events, Event{Kind: "filter-groups", Text: fmt.Sprintf(
			"step %d: %d of %d groups pass the filter; %d others fill the step up to %d",
			c.step, passed, passed+len(dropped), missing, want)})
	}
	c.groups = c.groups[:want]
}

// draw returns completions of problems, with any recorded rewards, from the recording if
// there is one, else from the policy.
func (t *Trainer) draw(ctx context.Context, step int, got *collected,
	problems []int) ([]Trajectory, []*float64, error) {
	if t.Recorded != nil {
		return t.recall(step, got.epoch, problems)
	}
	traj, err := t.drawGroups(ctx, step, problems, &got.events)
	return traj, nil, err
}

// spreads are the standard deviations of a step's groups.
type spreads struct {
	least float64 // that passes the filter
	sum   float64
	n     int
}

// spreadDecay weighs the average of the steps before against a step, as RLPR's code.
const spreadDecay = 0.99

// after returns the moving average after the step, given the one before; 0: none yet.
func (s *spreads) after(before float64) float64 {
	switch {
	case s.n == 0:
		return before
	case before == 0:
		return s.sum / float64(s.n)
	}
	return float64(spreadDecay*before) + float64((1-spreadDecay)*(s.sum/float64(s.n)))
}

// informative reports, per group, whether it passes the filter: its graded completions are
// not all alike, and differ as Filter wants them. With no filter, all groups pass.
func (t *Trainer) informative(all []Trajectory, s *spreads) []bool {
	c := t.cfg
	keep := make([]bool, len(all)/c.Samples)
	var final map[*rollout.Completion]float64
	if c.Filter.By == FilterFinal && c.KL.RewardCoef != 0 {
		final = t.finalRewards(all)
	}
	for i := range keep {
		group := all[i*c.Samples : (i+1)*c.Samples]
		keep[i] = c.Filter.By == FilterNone || c.Samples == 1 ||
			s.differ(c.compared(group, final)) && c.Filter.within(group)
	}
	return keep
}

// within reports whether a group is as Low, High and Complete want it. Completions without a verdict do not count.
func (f Filter) within(group []Trajectory) bool {
	cut := func(tr Trajectory) bool { return tr.Completion.Finish == rollout.FinishLength }
	if f.Complete && slices.ContainsFunc(group, cut) {
		return false
	}
	if f.By != FilterCorrect || f.High == 0 {
		return true
	}
	right, graded := 0, 0
	for i := range group {
		if v := &group[i].Verdict; v.Status == rollout.Graded && !group[i].isShown() {
			graded++
			if v.Correct {
				right++
			}
		}
	}
	share := float64(right) / float64(graded)
	return graded == 0 || f.Low <= share && share <= f.High
}

// compared returns what must differ within a group, of its graded completions.
func (c Config) compared(group []Trajectory, final map[*rollout.Completion]float64) (list []float64) {
	for i := range group {
		tr := &group[i]
		if tr.Verdict.Status != rollout.Graded {
			continue
		}
		x := tr.Verdict.Reward
		switch {
		case final != nil:
			x = final[tr.Completion]
		case c.Filter.By == FilterOverlong || c.Filter.By == FilterFinal:
			x = scoreOf(tr.Verdict, tr.Completion, c.Overlong)
		case c.Filter.By == FilterCorrect && tr.Verdict.Correct:
			x = 1
		case c.Filter.By == FilterCorrect:
			x = 0
		}
		list = append(list, x)
	}
	return list
}

// differ reports whether the numbers of a group are not all alike and spread enough, and counts the group.
func (s *spreads) differ(group []float64) bool {
	if len(group) < 2 {
		return false
	}
	std := rl.StdDev(group)
	s.sum, s.n = s.sum+std, s.n+1
	return std >= s.least && slices.ContainsFunc(group, func(x float64) bool { return x != group[0] })
}

// finalRewards returns the rewards of graded completions less the distance to the reference
// policy. It costs a pass of the reference.
func (t *Trainer) finalRewards(all []Trajectory) map[*rollout.Completion]float64 {
	b := newBatch(all, t.cfg.Overlong, nil)
	if t.foreign() && t.cfg.Correction.Bypass == 0 {
		b.old = t.passes.logProbs(t.Policy, b, 0, len(b.traj), t.cfg.Sampling.Temperature)
	}
	t.refer(b, 0, 0)
	rl.RewardKL(b.reward, b.reward, b.old, b.ref, b.mask, b.rows, t.cfg.KL.RewardEstimator, t.klCoef)
	final := make(map[*rollout.Completion]float64, len(b.traj))
	for i, r := range b.totals(true) {
		final[b.traj[i].Completion] = float64(r)
	}
	return final
}

// overlongMetrics returns the means of verl's overlong_reward and overlong over
// completions.
func overlongMetrics(all []Trajectory, o rl.Overlong) []rl.Metric {
	var sum, over float64
	for i := range all {
		if r := o.Reward(len(all[i].Completion.Tokens)); r < 0 {
			sum += r
			over++
		}
	}
	n := float64(len(all))
	return []rl.Metric{{Name: "train/overlong_reward", Value: sum / n}, {Name: "train/overlong", Value: over / n}}
}

// collectGreedy samples and grades the greedy completion of each problem: the baseline of
// ReMax (arXiv:2310.10505 alg. 1). Only their mean score is recorded. A problem whose
// greedy completion cannot be graded has no baseline and is not trained on.
func (t *Trainer) collectGreedy(ctx context.Context, step int, got *collected, train []Trajectory,
	clock *stopwatch) error {
	var reqs []rollout.Request
	var problems []*rollout.Problem
	for i := 0; i < len(train); i += t.cfg.Samples {
		tr := &train[i]
		problems = append(problems, tr.Problem)
		reqs = append(reqs, rollout.Request{Prompt: tr.Prompt, Seeds: []uint64{0}, // greedy: no randomness
			Problem: tr.Problem})
	}
	params := t.cfg.Sampling // with its penalties, as verl has them: the policy is what they make of it
	params.Temperature, params.TopK, params.TopP, params.MinP = 0, 0, 1, 0
	if err := t.PrepareSampler(); err != nil {
		return err
	}
	out, err := t.Sampler.Sample(ctx, reqs, params, func(n int) { t.phase(step, "greedy", n, len(reqs)) })
	if err != nil {
		return fmt.Errorf("sampling the baseline: %w", err)
	}
	clock.lap("gen")
	greedy := make([]Trajectory, len(problems))
	for i, p := range problems {
		greedy[i] = Trajectory{Problem: p, Prompt: out[i][0].PromptOf(reqs[i].Prompt), Completion: &out[i][0]}
	}
	if err := t.grade(ctx, step, greedy, &got.events); err != nil {
		return fmt.Errorf("grading the baseline: %w", err)
	}
	clock.lap("reward")
	got.baseline = make(map[*rollout.Problem]float64, len(problems))
	var sum float64
	for i := range greedy {
		got.greedyTokens += greedy[i].Completion.SampledTokens()
		if g := &greedy[i]; g.Verdict.Status == rollout.Graded {
			score := scoreOf(g.Verdict, g.Completion, t.cfg.Overlong)
			got.baseline[g.Problem] = score
			sum += score
		}
	}
	if len(got.baseline) == 0 {
		return fmt.Errorf("grading the baseline: %w", noneGraded(greedy))
	}
	got.metrics = append(got.metrics, rl.Metric{Name: "train/greedy_score", Value: sum / float64(len(got.baseline))})
	return nil
}

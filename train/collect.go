package train

import (
	"context"
	"fmt"

	"exp/train/rl"
	"exp/train/rollout"
)

// collected is what a step learns from.
type collected struct {
	train   []Trajectory // whole groups, in the order of their problems; some of the record's
	greedy  map[*rollout.Problem]float64
	batches int // of problems, sampled up to the end of this step
	epoch   int
	metrics []rl.Metric
}

// collect samples and grades completions until the step has its groups. All of them
// go into the record.
//
// With a Filter, further batches of problems follow in the order of the data, as in
// DAPO's trainer, which the next step then goes on from. A problem that this step
// has sampled already is passed over, so a completion's random stream is named by
// step, problem and sample whatever the filter does.
func (t *Trainer) collect(ctx context.Context, step int, rec *Step, clock *stopwatch) (*collected, error) {
	c := t.cfg
	want := c.PromptsPerStep * c.Samples
	got := &collected{batches: t.batches}
	seen := make(map[int]bool)
	var dropped []Trajectory
	groups, passed := 0, 0
	for batch := 0; batch == 0 || len(got.train) < want && batch < c.Filter.MaxBatches; batch++ {
		got.batches++
		var problems []int
		var next []int
		next, got.epoch = t.order.step(got.batches)
		for _, p := range next {
			if !seen[p] {
				seen[p] = true
				problems = append(problems, p)
			}
		}
		if len(problems) == 0 {
			continue
		}
		traj, err := t.sample(ctx, step, problems)
		if err != nil {
			return nil, fmt.Errorf("sampling: %w", err)
		}
		clock.lap("gen")
		if err := t.grade(ctx, step, traj, rec); err != nil {
			return nil, fmt.Errorf("grading: %w", err)
		}
		clock.lap("reward")
		rec.Trajectories = append(rec.Trajectories, traj...)
		for i := 0; i < len(traj); i += c.Samples {
			group := traj[i : i+c.Samples]
			groups++
			if c.informative(group) {
				passed++
				got.train = append(got.train, group...)
			} else {
				dropped = append(dropped, group...)
			}
		}
	}
	if missing := want - len(got.train); missing > 0 {
		got.train = append(got.train, dropped[:missing]...)
		rec.Events = append(rec.Events, Event{Kind: "filter-groups", Text: fmt.Sprintf(
			"step %d: %d of %d groups differ in their rewards; %d others fill the step up to its %d",
			step, passed, groups, missing/c.Samples, c.PromptsPerStep)})
	}
	got.train = got.train[:want]
	if c.Filter.By != MetricNone {
		got.metrics = []rl.Metric{
			{Name: "train/filter_batches", Value: float64(got.batches - t.batches)},
			{Name: "train/filter_passed", Value: float64(passed) / float64(groups)},
		}
	}
	if c.Overlong.Buffer > 0 {
		got.metrics = append(got.metrics, overlongMetrics(got.train, c.Overlong)...)
	}
	if c.Advantage == AdvReMax {
		if err := t.collectGreedy(ctx, step, got, rec, clock); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// informative says whether a group is trained on without need: all are unless the
// filter is on, then those whose graded completions are not all alike.
func (c Config) informative(group []Trajectory) bool {
	if c.Filter.By == MetricNone || c.Samples == 1 {
		return true
	}
	first, any := 0.0, false
	for i := range group {
		tr := &group[i]
		if tr.Verdict.Status != rollout.Graded {
			continue
		}
		x := tr.Verdict.Reward
		switch {
		case c.Filter.By == MetricOverlong:
			x = scoreOf(tr.Verdict, tr.Completion, c.Overlong)
		case c.Filter.By == MetricCorrect && tr.Verdict.Correct:
			x = 1
		case c.Filter.By == MetricCorrect:
			x = 0
		}
		if any && x != first {
			return true
		}
		first, any = x, true
	}
	return false
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

// collectGreedy samples and grades the likeliest completion of each problem: the
// baseline of ReMax (arXiv:2310.10505 alg. 1). They are no part of the record but
// for their mean score. A problem whose greedy completion cannot be graded has no
// baseline and is not trained on.
func (t *Trainer) collectGreedy(ctx context.Context, step int, got *collected, rec *Step, clock *stopwatch) error {
	var reqs []rollout.Request
	var problems []*rollout.Problem
	for i := 0; i < len(got.train); i += t.cfg.Samples {
		tr := &got.train[i]
		problems = append(problems, tr.Problem)
		reqs = append(reqs, rollout.Request{Prompt: tr.Prompt, Seeds: []uint64{0}}) // greedy: nothing is drawn
	}
	params := t.cfg.Sampling
	params.Temperature, params.TopK, params.TopP, params.MinP = 0, 0, 1, 0
	out, err := t.Sampler.Sample(ctx, reqs, params, func(n int) { t.phase(step, "greedy", n, len(reqs)) })
	if err != nil {
		return fmt.Errorf("sampling the baseline: %w", err)
	}
	clock.lap("gen")
	greedy := make([]Trajectory, len(problems))
	for i, p := range problems {
		greedy[i] = Trajectory{Problem: p, Prompt: reqs[i].Prompt, Completion: &out[i][0]}
	}
	if err := t.grade(ctx, step, greedy, rec); err != nil {
		return fmt.Errorf("grading the baseline: %w", err)
	}
	clock.lap("reward")
	got.greedy = make(map[*rollout.Problem]float64, len(problems))
	var sum float64
	for i := range greedy {
		if g := &greedy[i]; g.Verdict.Status == rollout.Graded {
			score := scoreOf(g.Verdict, g.Completion, t.cfg.Overlong)
			got.greedy[g.Problem] = score
			sum += score
		}
	}
	got.metrics = append(got.metrics, rl.Metric{Name: "train/greedy_score", Value: sum / float64(len(got.greedy))})
	return nil
}

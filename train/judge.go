package train

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"exp/train/ranks"
	"exp/train/rollout"
)

// Judging says how ranks that sample divide what a rollout.BatchGrader judges. Other graders judge each completion by
// itself, on all of them.
type Judging struct {
	// Ranks is how many judge, the first ones; 0 stands for 1. Their graders give a completion the same verdict.
	Ranks int
	// Alike, if not nil, returns what the grader reads of a completion. One rank judges those for which it is equal,
	// so that the grader can judge them once.
	Alike func(it rollout.Item) string
}

// judge calls the grader. Ranks that sample deal the trajectories among themselves.
func (t *Trainer) judge(ctx context.Context, step int, all []Trajectory) error {
	size := t.sampling.Size()
	err := t.judgeBy(ctx, t.Grader, t.Judging, all, func(n int) {
		t.phase(step, "grade", min(n*size, len(all)), len(all)) // as if all ranks were as fast as this one
	}, func(failed error) error { return ranks.Agree(t.sampling, failed) })
	for i := range all {
		all[i].Verdict.Reward += 0 // makes -0 +0
	}
	return err
}

// judgeBy sets the verdicts of g. It tells judged how many this rank has found, if g judges each completion by itself,
// and returns the error that agree makes of this rank's.
func (t *Trainer) judgeBy(ctx context.Context, g rollout.Grader, how Judging, all []Trajectory, judged func(n int),
	agree func(failed error) error) error {
	call := func(list []Trajectory) error {
		if batch, ok := g.(rollout.BatchGrader); ok {
			return judgeTogether(ctx, batch, list)
		}
		return judgeApart(ctx, g, list, judged)
	}
	if t.sampling.Size() == 1 {
		return call(all)
	}
	dealt := how.deal(g, all, t.sampling.Size())
	var own []Trajectory
	for _, at := range dealt[t.sampling.Rank()] {
		own = append(own, all[at])
	}
	var failed error
	if len(own) > 0 {
		failed = call(own)
	}
	if err := agree(failed); err != nil {
		return err
	}
	list := make([]sentVerdict, len(own))
	for i := range own {
		list[i] = sentOf(own[i].Verdict)
	}
	lists, err := share(t.sampling, list, nil)
	if err != nil {
		return err
	}
	for r, places := range dealt {
		if len(lists[r]) != len(places) {
			return fmt.Errorf("rank %d judged %d completions, not its %d: the ranks dealt them differently", r,
				len(lists[r]), len(places))
		}
		for i, at := range places {
			all[at].Verdict = lists[r][i].verdict()
		}
	}
	return nil
}

// deal returns the places in all that each of size ranks judges, in order. A grader of batches gets the most work
// first, each time on the rank with the least so far; completions that are alike count as one.
func (j Judging) deal(g rollout.Grader, all []Trajectory, size int) [][]int {
	dealt := make([][]int, size)
	if _, together := g.(rollout.BatchGrader); !together {
		for r := range dealt {
			for i := r * len(all) / size; i < (r+1)*len(all)/size; i++ {
				dealt[r] = append(dealt[r], i)
			}
		}
		return dealt
	}
	work := func(alike []int) int {
		x := &all[alike[0]]
		return 1 + len(x.Prompt) + len(x.Completion.Tokens)
	}
	groups := j.groups(all)
	slices.SortStableFunc(groups, func(a, b []int) int { return cmp.Compare(work(b), work(a)) })
	busy := make([]int, min(max(1, j.Ranks), size))
	for _, alike := range groups {
		r := slices.Index(busy, slices.Min(busy))
		busy[r] += work(alike)
		dealt[r] = append(dealt[r], alike...)
	}
	for _, places := range dealt {
		slices.Sort(places)
	}
	return dealt
}

// groups returns the places of completions that are alike, in the order of their first.
func (j Judging) groups(all []Trajectory) (list [][]int) {
	index := map[string]int{}
	for i := range all {
		k := len(list)
		if j.Alike != nil {
			read := j.Alike(itemOf(&all[i]))
			if known, ok := index[read]; ok {
				k = known
			}
			index[read] = k
		}
		if k == len(list) {
			list = append(list, nil)
		}
		list[k] = append(list[k], i)
	}
	return list
}

// sentVerdict is a verdict on its way to other ranks. Values are its numbers that gob would leave out, and so make +0,
// if they are -0.
type sentVerdict struct {
	Verdict rollout.Verdict
	Values  []float64
}

// sentValues returns pointers to such numbers.
func sentValues(v *rollout.Verdict) []*float64 {
	list := []*float64{&v.Reward, &v.Outcome}
	for i := range v.Steps {
		list = append(list, &v.Steps[i].Right, &v.Steps[i].Reward)
	}
	return list
}

func sentOf(v rollout.Verdict) sentVerdict {
	s := sentVerdict{Verdict: v}
	for _, x := range sentValues(&v) {
		s.Values = append(s.Values, *x)
	}
	return s
}

func (s sentVerdict) verdict() rollout.Verdict {
	for i, x := range sentValues(&s.Verdict) {
		*x = s.Values[i]
	}
	return s.Verdict
}

// Together returns g as a grader of batches on all ranks that sample. They give it the same completions in the same
// call, deal them as how says, wait for each other for as long as that takes, and all get all verdicts. A rank alone
// gets g itself.
func (t *Trainer) Together(g rollout.Grader, how Judging) rollout.Grader {
	if t.sampling.Size() == 1 {
		return g
	}
	return together{g, how, t}
}

// together is a grader on many ranks.
type together struct {
	rollout.Grader
	how Judging
	t   *Trainer
}

// Components implements rollout.ComponentGrader.
func (g together) Components() []string { return rollout.ComponentNames(g.Grader) }

// GradeAll implements rollout.BatchGrader.
func (g together) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	all := make([]Trajectory, len(items))
	for i, x := range items {
		all[i] = Trajectory{Problem: x.Problem, Sample: x.Sample, Completion: x.Completion}
	}
	err := g.t.judgeBy(ctx, g.Grader, g.how, all, func(int) {}, func(failed error) error {
		return g.t.meet(g.t.sampling, failed)
	})
	if err != nil {
		return nil, err
	}
	verdicts := make([]rollout.Verdict, len(all))
	for i := range all {
		verdicts[i] = all[i].Verdict
	}
	return verdicts, nil
}

func itemOf(x *Trajectory) rollout.Item {
	return rollout.Item{Problem: x.Problem, Sample: x.Sample, Completion: x.Completion}
}

// judgeTogether grades all trajectories in one call.
func judgeTogether(ctx context.Context, batch rollout.BatchGrader, all []Trajectory) error {
	items := make([]rollout.Item, len(all))
	for i := range all {
		items[i] = itemOf(&all[i])
	}
	verdicts, err := batch.GradeAll(ctx, items)
	if err != nil {
		return err
	}
	if len(verdicts) != len(all) {
		return fmt.Errorf("the grader returned %d verdicts for %d completions", len(verdicts), len(all))
	}
	for i := range all {
		all[i].Verdict = verdicts[i]
	}
	return nil
}

// judgeApart grades each trajectory by itself, on all processors, and tells judged how many are
// done. If several fail it returns the first trajectory's error.
func judgeApart(ctx context.Context, g rollout.Grader, all []Trajectory, judged func(n int)) error {
	threads := min(runtime.GOMAXPROCS(0), len(all))
	errs := make([]error, threads)
	var done sync.WaitGroup
	var mu sync.Mutex
	graded := 0
	for n := range threads {
		part := all[n*len(all)/threads : (n+1)*len(all)/threads]
		done.Go(func() {
			for i := range part {
				v, err := g.Grade(ctx, part[i].Problem, part[i].Completion)
				if err != nil {
					errs[n] = fmt.Errorf("problem %s: %w", part[i].Problem.ID, err)
					return
				}
				part[i].Verdict = v
				mu.Lock()
				graded++
				judged(graded)
				mu.Unlock()
			}
		})
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

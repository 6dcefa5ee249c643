package task

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"exp/train/rollout"
)

// gradeOnce grades each different (problem, text) pair once, using all cores: a policy that knows an answer
// repeats it, and running a program takes milliseconds. Errors are as in rollout.Grader, for the first item
// that fails.
func gradeOnce(ctx context.Context, items []rollout.Item, grade func(ctx context.Context, p *rollout.Problem,
	text string) (rollout.Verdict, error)) ([]rollout.Verdict, error) {
	type key struct{ problem, text string }
	index := make(map[key]int, len(items)) // into distinct
	var distinct []rollout.Item
	of := make([]int, len(items))
	for i, it := range items {
		k := key{it.Problem.ID, it.Completion.Text}
		at, ok := index[k]
		if !ok {
			at = len(distinct)
			index[k] = at
			distinct = append(distinct, it)
		}
		of[i] = at
	}

	verdicts, err := onAllCores(ctx, distinct, func(ctx context.Context, p *rollout.Problem,
		c *rollout.Completion) (rollout.Verdict, error) {
		return grade(ctx, p, c.Text)
	})
	if err != nil {
		return nil, err
	}
	all := make([]rollout.Verdict, len(items))
	for i, at := range of {
		all[i] = verdicts[at]
	}
	return all, nil
}

// onAllCores grades each item by itself, using all cores. Errors are as in rollout.Grader, for the first item that
// fails.
func onAllCores(ctx context.Context, items []rollout.Item, grade func(ctx context.Context, p *rollout.Problem,
	c *rollout.Completion) (rollout.Verdict, error)) ([]rollout.Verdict, error) {
	verdicts := make([]rollout.Verdict, len(items))
	errs := make([]error, len(items))
	var next atomic.Int64
	var failed atomic.Bool
	var group sync.WaitGroup
	for range min(runtime.NumCPU(), len(items)) {
		group.Go(func() {
			for !failed.Load() && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return
				}
				if verdicts[i], errs[i] = grade(ctx, items[i].Problem, items[i].Completion); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", items[i].Problem.ID, err)
		}
	}
	return verdicts, nil
}

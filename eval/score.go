package eval

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"exp/train/rollout"
)

// maxNotGraded is the largest share of samples without a verdict that leaves the scores valid.
const maxNotGraded = 0.01

// NotGradedError reports that too many samples have no verdict: the infrastructure failed, not the model.
type NotGradedError struct {
	NotGraded, Samples int
	ProblemID          string // of the first sample without a verdict
	K                  int
	Reason             string // why that sample has none
}

func (e *NotGradedError) Error() string {
	return fmt.Sprintf("%d of %d samples could not be graded, more than %g %%; the first is sample %d of "+
		"problem %s: %s",
		e.NotGraded, e.Samples, 100*maxNotGraded, e.K, e.ProblemID, e.Reason)
}

// Score grades samples and returns their verdicts in order. It makes up to parallelism calls of the grader
// at a time, or one call for all if the grader is a rollout.BatchGrader. If more than 1 % of the samples
// are not graded, the verdicts come with a *NotGradedError. Any other error comes without verdicts: the
// grader failed (the error names the first sample it failed on), a sample's problem is not in problems, or
// ctx was cancelled.
func Score(ctx context.Context, grader rollout.Grader, problems []rollout.Problem, samples []Sample,
	parallelism int) ([]rollout.Verdict, error) {
	byID := make(map[string]*rollout.Problem, len(problems))
	for i := range problems {
		byID[problems[i].ID] = &problems[i]
	}
	for _, s := range samples {
		if byID[s.ProblemID] == nil {
			return nil, fmt.Errorf("sample %d: unknown problem %s", s.K, s.ProblemID)
		}
	}

	if batch, ok := grader.(rollout.BatchGrader); ok {
		items := make([]rollout.Item, len(samples))
		for i := range samples {
			items[i] = rollout.Item{Problem: byID[samples[i].ProblemID], Sample: samples[i].K,
				Completion: &samples[i].Completion}
		}
		verdicts, err := batch.GradeAll(ctx, items)
		if err != nil {
			return nil, err
		}
		return verdicts, checkGraded(samples, verdicts)
	}

	verdicts := make([]rollout.Verdict, len(samples))
	errs := make([]error, len(samples))
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range max(1, min(parallelism, len(samples))) {
		wg.Go(func() {
			for !failed.Load() && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(samples) {
					return
				}
				s := &samples[i]
				verdicts[i], errs[i] = grader.Grade(ctx, byID[s.ProblemID], &s.Completion)
				if errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()

	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("grading sample %d of problem %s: %w", samples[i].K, samples[i].ProblemID, err)
		}
	}
	return verdicts, checkGraded(samples, verdicts)
}

func checkGraded(samples []Sample, verdicts []rollout.Verdict) error {
	e := &NotGradedError{Samples: len(samples)}
	for i, v := range verdicts {
		if v.Status == rollout.Graded {
			continue
		}
		if e.NotGraded == 0 {
			e.ProblemID, e.K, e.Reason = samples[i].ProblemID, samples[i].K, v.Reason
		}
		e.NotGraded++
	}
	if float64(e.NotGraded) > maxNotGraded*float64(e.Samples) {
		return e
	}
	return nil
}

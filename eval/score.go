package eval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"exp/train/rollout"
)

// Limit is the largest share of samples without a verdict that leaves scores valid. The zero value is 1 %.
type Limit struct {
	Share float64
	Key   string // of the configuration, which sets Share; empty: Share is 1 %
}

// share returns the limit, 0 to 1.
func (l Limit) share() float64 {
	if l.Key == "" {
		return 0.01
	}
	return l.Share
}

// NotGradedError reports that too many samples have no verdict: the infrastructure failed, not the model.
type NotGradedError struct {
	NotGraded, Samples int
	Limit              Limit
	Episodes           bool   // of an agent failed, before any grading
	ProblemID          string // of the first sample without a verdict
	K                  int
	Reason             string // why that sample has none
}

func (e *NotGradedError) Error() string {
	return fmt.Sprintf("%d of %d samples could not be graded, more than %.4g %%; the first is sample %d of "+
		"problem %s: %s",
		e.NotGraded, e.Samples, 100*e.Limit.share(), e.K, e.ProblemID, e.Reason)
}

// Hint says how to continue.
func (e *NotGradedError) Hint() string {
	h := "nothing was scored; fix the cause and run again: the completions are kept"
	if e.Episodes {
		h = "no episode is kept; fix the cause and run again"
	}
	if e.Limit.Key != "" {
		h += "; " + e.Limit.Key + " sets the limit"
	}
	return h
}

// Scoring says how samples are graded.
type Scoring struct {
	Parallelism int // calls of a grader at a time; 0 stands for 1
	Limit       Limit
}

// Score grades samples and returns their verdicts in order. A rollout.BatchGrader gets one call for all. If more
// samples than Limit allows are not graded, the verdicts come with a *NotGradedError. Any other error comes without
// verdicts: the grader failed (the error names the first sample it failed on), a sample's problem is not in problems,
// or ctx was cancelled.
func Score(ctx context.Context, grader rollout.Grader, problems []rollout.Problem, samples []Sample,
	o Scoring) ([]rollout.Verdict, error) {
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
		return verdicts, checkGraded(samples, verdicts, o.Limit)
	}

	verdicts := make([]rollout.Verdict, len(samples))
	errs := make([]error, len(samples))
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range max(1, min(o.Parallelism, len(samples))) {
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
	return verdicts, checkGraded(samples, verdicts, o.Limit)
}

// CheckEpisodes returns a *NotGradedError if more of an agent's episodes failed than the limit allows.
func CheckEpisodes(samples []Sample, limit Limit) error {
	verdicts := make([]rollout.Verdict, len(samples))
	for i, s := range samples {
		verdicts[i].Status = rollout.Graded // the agent's doing is done
		if v := s.Completion.AgentVerdict; v != nil {
			verdicts[i] = *v
		}
	}
	err := checkGraded(samples, verdicts, limit)
	var failed *NotGradedError
	if errors.As(err, &failed) {
		failed.Episodes = true
	}
	return err
}

func checkGraded(samples []Sample, verdicts []rollout.Verdict, limit Limit) error {
	e := &NotGradedError{Samples: len(samples), Limit: limit}
	for i, v := range verdicts {
		if v.Status == rollout.Graded {
			continue
		}
		if e.NotGraded == 0 {
			e.ProblemID, e.K, e.Reason = samples[i].ProblemID, samples[i].K, v.Reason
		}
		e.NotGraded++
	}
	if float64(e.NotGraded) > limit.share()*float64(e.Samples) {
		return e
	}
	return nil
}

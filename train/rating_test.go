package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"exp/train/ranks"
	"exp/train/rollout"
)

// Of four completions one is right, one wrong and cut off, one has no verdict, and one was wrong at half the reward.
func TestRatingCounts(t *testing.T) {
	p := &rollout.Problem{ID: "p"}
	graded := func(correct bool, reward float64) rollout.Verdict {
		return rollout.Verdict{Status: rollout.Graded, Correct: correct, Reward: reward}
	}
	tokens := func(n int, f rollout.Finish) *rollout.Completion {
		return &rollout.Completion{Tokens: make([]int32, n), Finish: f}
	}
	got := ratingOf([]Trajectory{
		{Problem: p, Completion: tokens(3, rollout.FinishStop), Verdict: graded(true, 1)},
		{Problem: p, Completion: tokens(5, rollout.FinishLength), Verdict: graded(false, 0)},
		{Problem: p, Completion: tokens(2, rollout.FinishStop), Verdict: rollout.Verdict{Status: rollout.NotGraded,
			Reward: 9}},
		{Problem: p, Completion: tokens(4, rollout.FinishStop), Verdict: graded(false, 0.5)},
	})
	want := Rating{Problem: "p", Samples: 4, Graded: 3, Correct: 1, Reward: 1.5, Truncated: 1, Tokens: 14}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// newRater makes a Rater of a toy's policy, of so many completions.
func newRater(t *testing.T, r *toyRun, n int) *Rater {
	t.Helper()
	tr := r.start()
	sampler := tr.Parts.Sampler
	if d, ok := sampler.(dealtSampler); ok {
		sampler = d.Sampler
	}
	x, err := NewRater(RaterConfig{Samples: n, Sampling: r.cfg.Sampling, MaxNotGraded: r.cfg.MaxNotGraded},
		Parts{Sampler: sampler, Grader: tr.Grader, Prompt: tr.Prompt, Problems: r.problems, Seed: hashSeed(7),
			Ranks: r.ranks, Tensor: r.tensor})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// rated rates all problems, so many in a call.
func rated(t *testing.T, x *Rater, together int) (list []Rating) {
	t.Helper()
	for lo := 0; lo < len(x.t.Problems); lo += together {
		got, _, err := x.Rate(context.Background(), lo, min(lo+together, len(x.t.Problems)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, got...)
	}
	return list
}

// A rating says how often the policy is right. It depends neither on the calls, nor on the ranks, nor on how the
// grader is asked.
func TestRatings(t *testing.T) {
	want := rated(t, newRater(t, newToyRun(t, GRPO, 1), 6), 10)
	differ := map[int]bool{}
	for i, x := range want {
		if x.Problem != fmt.Sprint("p", i) || x.Samples != 6 || x.Graded != 6 || x.Tokens < 6 {
			t.Errorf("problem %d: %+v", i, x)
		}
		differ[x.Correct] = true
	}
	if len(want) != 10 || len(differ) < 2 {
		t.Errorf("%d ratings, right ones %v: they say nothing", len(want), differ)
	}
	for _, together := range []int{1, 3} {
		r := newToyRun(t, GRPO, 2)
		r.together = together == 3
		if got := rated(t, newRater(t, r, 6), together); !slices.Equal(got, want) {
			t.Errorf("%d in a call: %+v, want %+v", together, got, want)
		}
	}
	fewer := rated(t, newRater(t, newToyRun(t, GRPO, 1), 2), 10)
	for i, x := range fewer {
		if x.Correct > want[i].Correct {
			t.Errorf("problem %d: %d of its first 2 are right, but %d of 6", i, x.Correct, want[i].Correct)
		}
	}
	for _, size := range []int{2, 3} {
		lists := make([][]Rating, size)
		var done sync.WaitGroup
		for i, g := range ranks.InProcess(size) {
			r := newToyRun(t, GRPO, 1)
			r.ranks, r.cfg.Slices = g, 8
			r.together = size == 3
			x := newRater(t, r, 6)
			done.Go(func() { lists[i] = rated(t, x, 4) })
		}
		done.Wait()
		for i, got := range lists {
			if !slices.Equal(got, want) {
				t.Errorf("rank %d of %d: %+v, want %+v", i, size, got, want)
			}
		}
	}
}

// Too few verdicts end the work, and a problem without a completion has no rating.
func TestRatingsWithoutVerdicts(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.MaxNotGraded = 0.25
	grade := r.grade
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		if p.ID < "p3" {
			return rollout.Verdict{Status: rollout.NotGraded, Reason: "the judge is away"}
		}
		return grade(p, c)
	}
	x := newRater(t, r, 4)
	_, _, err := x.Rate(context.Background(), 0, 10)
	var few *NotGradedError
	if !errors.As(err, &few) || few.NotGraded != 12 || !strings.Contains(err.Error(),
		"grading: 12 of 40 completions could not be graded, more than 25 %") {
		t.Errorf("3 of 10 problems without a verdict: %v", err)
	}
	list, events, err := x.Rate(context.Background(), 2, 10) // one of eight
	if err != nil || list[0].Graded != 0 || list[0].Samples != 4 || list[1].Graded != 4 || len(events) != 1 {
		t.Errorf("%+v, %v, %v", list, events, err)
	}
	if _, err := NewRater(RaterConfig{}, Parts{}); err == nil {
		t.Error("no completion rates a problem")
	}
}

package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"exp/train/rollout"
)

// numbered returns n samples of problem p with the texts 0 to n-1.
func numbered(n int) []Sample {
	samples := make([]Sample, n)
	for k := range samples {
		samples[k] = Sample{ProblemID: "p", K: k, Completion: rollout.Completion{Text: strconv.Itoa(k)}}
	}
	return samples
}

var problemP = []rollout.Problem{{ID: "p"}}

// Verdicts come in sample order, whatever the parallelism.
func TestScoreOrder(t *testing.T) {
	echo := fakeGrader(func(p *rollout.Problem, text string) (rollout.Verdict, error) {
		return rollout.Verdict{Status: rollout.Graded, Answer: p.ID + text}, nil
	})
	for _, parallelism := range []int{0, 1, 3, 100} {
		verdicts, err := Score(context.Background(), echo, problemP, numbered(57), Scoring{Parallelism: parallelism})
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range verdicts {
			if want := fmt.Sprintf("p%d", k); v.Answer != want {
				t.Fatalf("parallelism %d: verdict %d is of %q, want %q", parallelism, k, v.Answer, want)
			}
		}
	}
}

func TestScoreNotGraded(t *testing.T) {
	tests := []struct {
		samples, broken int
		fails           bool
	}{
		{200, 2, false}, // 1 % is allowed
		{200, 3, true},
		{10, 1, true},
		{10, 0, false},
		{0, 0, false},
	}
	for _, tt := range tests {
		grader := fakeGrader(func(_ *rollout.Problem, text string) (rollout.Verdict, error) {
			if k, _ := strconv.Atoi(text); k >= 5 && k < 5+tt.broken {
				return rollout.Verdict{Reason: "sandbox gone"}, nil
			}
			return rollout.Verdict{Status: rollout.Graded}, nil
		})
		verdicts, err := Score(context.Background(), grader, problemP, numbered(tt.samples), Scoring{Parallelism: 4})
		var broken *NotGradedError
		if got := errors.As(err, &broken); got != tt.fails || !tt.fails && err != nil {
			t.Errorf("%d of %d: error %v, want one: %v", tt.broken, tt.samples, err, tt.fails)
			continue
		}
		if len(verdicts) != tt.samples {
			t.Errorf("%d of %d: %d verdicts", tt.broken, tt.samples, len(verdicts))
		}
		if tt.fails && (broken.NotGraded != tt.broken || broken.K != 5 || broken.Reason != "sandbox gone") {
			t.Errorf("%d of %d: %+v", tt.broken, tt.samples, broken)
		}
	}
}

// A limit of the configuration replaces 1 %, and errors name its key.
func TestScoreLimit(t *testing.T) {
	const key = "eval.final.max_not_graded"
	grader := fakeGrader(func(_ *rollout.Problem, text string) (rollout.Verdict, error) {
		if text < "3" {
			return rollout.Verdict{Reason: "sandbox gone"}, nil
		}
		return rollout.Verdict{Status: rollout.Graded}, nil
	})
	episodes := numbered(10)
	for k := range episodes {
		v, _ := grader(nil, episodes[k].Completion.Text)
		episodes[k].Completion.AgentVerdict = &v
	}
	episodes[9].Completion.AgentVerdict = nil // the run's graders judge it
	for share, fails := range map[float64]bool{0: true, 0.07: true, 0.2: true, 0.3: false, 1: false} {
		limit := Limit{Share: share, Key: key}
		_, err := Score(context.Background(), grader, problemP, numbered(10), Scoring{Limit: limit})
		for name, err := range map[string]error{"samples": err, "episodes": CheckEpisodes(episodes, limit)} {
			var broken *NotGradedError
			if errors.As(err, &broken) != fails || !fails && err != nil {
				t.Errorf("%s, share %v: %v", name, share, err)
				continue
			}
			if fails && (broken.NotGraded != 3 || !strings.HasSuffix(broken.Hint(), "; "+key+" sets the limit") ||
				!strings.Contains(err.Error(), fmt.Sprintf("3 of 10 samples could not be graded, more than %v %%; the first is sample 0 ", math.Round(100*share))) ||
				strings.Contains(broken.Hint(), "the completions are kept") != (name == "samples")) {
				t.Errorf("%s, share %v: %v; %s", name, share, err, broken.Hint())
			}
		}
	}
}

func TestScoreGraderFails(t *testing.T) {
	var calls atomic.Int64
	grader := fakeGrader(func(_ *rollout.Problem, text string) (rollout.Verdict, error) {
		calls.Add(1)
		if text == "3" {
			return rollout.Verdict{}, errors.New("no more disk")
		}
		return rollout.Verdict{Status: rollout.Graded}, nil
	})
	_, err := Score(context.Background(), grader, problemP, numbered(1000), Scoring{Parallelism: 1})
	if err == nil || err.Error() != "grading sample 3 of problem p: no more disk" {
		t.Errorf("error %v", err)
	}
	if got := calls.Load(); got != 4 {
		t.Errorf("%d calls, want to stop after 4", got)
	}
}

func TestScoreUnknownProblem(t *testing.T) {
	_, err := Score(context.Background(), fakeGrader(nil), nil, numbered(1), Scoring{Parallelism: 1})
	if err == nil || !strings.Contains(err.Error(), "unknown problem p") {
		t.Errorf("error %v", err)
	}
}

func TestScoreCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	grader := fakeGrader(func(*rollout.Problem, string) (rollout.Verdict, error) {
		cancel()
		return rollout.Verdict{Status: rollout.Graded}, nil
	})
	if _, err := Score(ctx, grader, problemP, numbered(1000), Scoring{Parallelism: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

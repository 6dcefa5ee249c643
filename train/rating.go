package train

import (
	"context"
	"fmt"

	"exp/train/ranks"
	"exp/train/rollout"
)

// Rating counts what completions of a problem by one policy are.
type Rating struct {
	Problem   string
	Samples   int
	Graded    int     // with a verdict
	Correct   int     // of these, the right ones
	Reward    float64 // the sum of their rewards
	Truncated int     // that the token limit cut off
	Tokens    int     // sampled
}

// RaterConfig holds the settings of a Rater.
type RaterConfig struct {
	Samples      int // completions per problem
	Sampling     rollout.Params
	MaxNotGraded float64 // as in Config, of the completions of a call
}

// Rater samples and grades completions of problems by a policy that does not learn, as a Trainer does in a step. No
// bit of a Rating depends on which problems are rated in one call, or on the number of ranks.
type Rater struct{ t *Trainer }

// NewRater makes a Rater. Of p it reads Sampler, Grader, Judging, Prompt, Problems, Seed, Show, Ranks, Tensor and
// Phase, which hears of step 0.
func NewRater(c RaterConfig, p Parts) (*Rater, error) {
	if c.Samples < 1 {
		return nil, fmt.Errorf("train: %d completions rate no problem", c.Samples)
	}
	if p.Ranks == nil {
		p.Ranks = ranks.Alone{}
	}
	t := &Trainer{Parts: p, sampling: p.Ranks, passes: &passes{},
		cfg: Config{Samples: c.Samples, Sampling: c.Sampling, MaxNotGraded: c.MaxNotGraded}}
	drawing, err := groupOf(p.Ranks, p.Tensor)
	if err != nil {
		return nil, err
	}
	if drawing.Size() > 1 {
		t.Sampler = dealtSampler{t.Sampler, drawing, t.show}
	}
	if _, err := t.encodePrompts(); err != nil {
		return nil, err
	}
	return &Rater{t}, nil
}

// Rate rates problems lo to hi-1. All ranks call it alike, and get the same.
func (r *Rater) Rate(ctx context.Context, lo, hi int) (list []Rating, events []Event, err error) {
	defer ranks.Recover(&err)
	n := r.t.cfg.Samples
	problems := make([]int, hi-lo)
	for i := range problems {
		problems[i] = lo + i
	}
	all, err := r.t.sample(ctx, 0, problems, func(int) int { return n })
	if err != nil {
		return nil, nil, fmt.Errorf("sampling: %w", err)
	}
	if err := r.t.grade(ctx, 0, all, &events); err != nil {
		return nil, nil, fmt.Errorf("grading: %w", err)
	}
	for i := range problems {
		list = append(list, ratingOf(all[i*n:(i+1)*n]))
	}
	return list, events, nil
}

// ratingOf counts the completions of a problem, at least one.
func ratingOf(group []Trajectory) Rating {
	x := Rating{Problem: group[0].Problem.ID, Samples: len(group)}
	for i := range group {
		c, v := group[i].Completion, group[i].Verdict
		x.Tokens += c.SampledTokens()
		if c.Finish == rollout.FinishLength {
			x.Truncated++
		}
		if v.Status != rollout.Graded {
			continue
		}
		x.Graded++
		x.Reward += v.Reward
		if v.Correct {
			x.Correct++
		}
	}
	return x
}

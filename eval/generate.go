package eval

import (
	"context"
	"fmt"

	"exp/train/rollout"
)

// Sample is completion K, from 0, of a problem.
type Sample struct {
	ProblemID  string
	K          int
	Completion rollout.Completion
}

// Generator samples completions.
type Generator struct {
	Sampler rollout.Sampler
	Prompt  func(p *rollout.Problem) ([]int32, error)
	// Seed is the random stream of a label (see SampleLabel). It must not return
	// streams that training uses.
	Seed   func(label string) uint64
	Params rollout.Params
}

// SampleLabel names the random stream of completion k of a problem. It says
// nothing of how many completions there are, so the first of many are the same
// as of few.
func SampleLabel(problemID string, k int) string {
	return fmt.Sprintf("prompt=%s/sample=%d", problemID, k)
}

// Generate samples the completions from first to n-1 of each problem, n of them if
// first is 0, and returns them in the order of the problems, then of k. They are the
// same whether those before first were sampled at the same time, earlier or never.
// done, if not nil, is called now and then with the number of finished completions.
// An error names the problem whose prompt cannot be encoded.
func (g *Generator) Generate(ctx context.Context, problems []rollout.Problem, first, n int,
	done func(int)) ([]Sample, error) {
	if first >= n {
		return nil, nil
	}
	reqs := make([]rollout.Request, len(problems))
	for i := range problems {
		p := &problems[i]
		prompt, err := g.Prompt(p)
		if err != nil {
			return nil, fmt.Errorf("problem %s: prompt: %w", p.ID, err)
		}
		reqs[i] = rollout.Request{Prompt: prompt, Seeds: make([]uint64, n-first)}
		for k := range reqs[i].Seeds {
			reqs[i].Seeds[k] = g.Seed(SampleLabel(p.ID, first+k))
		}
	}
	completions, err := g.Sampler.Sample(ctx, reqs, g.Params, done)
	if err != nil {
		return nil, err
	}

	samples := make([]Sample, 0, len(problems)*(n-first))
	for i, p := range problems {
		for k, c := range completions[i] {
			samples = append(samples, Sample{ProblemID: p.ID, K: first + k, Completion: c})
		}
	}
	return samples, nil
}

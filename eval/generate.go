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
	Encode  func(text string) ([]int32, error)
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

// Generate samples n completions of each problem and returns them in the order of
// the problems, then of k. done, if not nil, is called now and then with the number
// of finished completions. An error names the problem whose prompt cannot be
// encoded.
func (g *Generator) Generate(ctx context.Context, problems []rollout.Problem, n int, done func(int)) ([]Sample, error) {
	reqs := make([]rollout.Request, len(problems))
	for i, p := range problems {
		prompt, err := g.Encode(p.Prompt)
		if err != nil {
			return nil, fmt.Errorf("problem %s: prompt: %w", p.ID, err)
		}
		reqs[i] = rollout.Request{Prompt: prompt, Seeds: make([]uint64, n)}
		for k := range n {
			reqs[i].Seeds[k] = g.Seed(SampleLabel(p.ID, k))
		}
	}
	completions, err := g.Sampler.Sample(ctx, reqs, g.Params, done)
	if err != nil {
		return nil, err
	}

	samples := make([]Sample, 0, len(problems)*n)
	for i, p := range problems {
		for k, c := range completions[i] {
			samples = append(samples, Sample{ProblemID: p.ID, K: k, Completion: c})
		}
	}
	return samples, nil
}

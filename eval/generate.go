package eval

import (
	"context"
	"fmt"

	"exp/train/rollout"
)

// Sample is completion K of a problem; K counts from 0.
type Sample struct {
	ProblemID  string
	K          int
	Completion rollout.Completion
}

// Generator samples completions.
type Generator struct {
	Sampler rollout.Sampler
	Prompt  func(p *rollout.Problem) ([]int32, error)
	// Seed maps a label (see SampleLabel) to a random stream. It must not return streams that training
	// uses.
	Seed   func(label string) uint64
	Params rollout.Params
}

// SampleLabel names the random stream of completion k of a problem. The label does not depend on how many
// completions are sampled, so the first few are always the same.
func SampleLabel(problemID string, k int) string {
	return fmt.Sprintf("prompt=%s/sample=%d", problemID, k)
}

// Generate samples completions first to n-1 of each problem and returns them by problem, then by k. With
// first = 0 that is n per problem. The completions do not depend on whether those before first were sampled
// in the same call, earlier or never. If done is not nil, Generate calls it now and then with the number of
// finished completions. If a prompt cannot be encoded, the error names the problem.
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
		reqs[i] = rollout.Request{Prompt: prompt, Seeds: make([]uint64, n-first), Problem: p}
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

// Again samples completions again and returns them in order; of each of had, only the problem and K count.
func (g *Generator) Again(ctx context.Context, problems []rollout.Problem, had []Sample,
	done func(int)) ([]Sample, error) {
	byID := map[string]*rollout.Problem{}
	for i := range problems {
		byID[problems[i].ID] = &problems[i]
	}
	reqs := make([]rollout.Request, len(had))
	for i, s := range had {
		p := byID[s.ProblemID]
		if p == nil {
			return nil, fmt.Errorf("unknown problem %s", s.ProblemID)
		}
		prompt, err := g.Prompt(p)
		if err != nil {
			return nil, fmt.Errorf("problem %s: prompt: %w", p.ID, err)
		}
		reqs[i] = rollout.Request{Prompt: prompt, Seeds: []uint64{g.Seed(SampleLabel(p.ID, s.K))}, Problem: p}
	}
	completions, err := g.Sampler.Sample(ctx, reqs, g.Params, done)
	if err != nil {
		return nil, err
	}
	got := make([]Sample, len(had))
	for i, s := range had {
		got[i] = Sample{ProblemID: s.ProblemID, K: s.K, Completion: completions[i][0]}
	}
	return got, nil
}

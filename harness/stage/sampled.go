package stage

import (
	"fmt"

	"exp/eval"
	"exp/experiments/ident"
	"exp/train/rollout"
)

// Sampled holds completions of a suite that were sampled before, of the same problems by the same
// weights with the same streams and settings, but another number of them. Completion k of a problem
// does not depend on their number (eval.SampleLabel), so they equal the first ones of this
// evaluation bit for bit.
type Sampled struct {
	Completions ident.Digest
	N           int // of each problem
}

// earlier returns the completions in Env.Sampled that are among the first n of each problem, and
// their number per problem. If they cannot be read it says so and returns none: all are sampled
// again.
func (e *Env) earlier(problems []rollout.Problem, n int) (samples []eval.Sample, each int) {
	if e.Sampled == nil {
		return nil, 0
	}
	samples, err := e.readSampled(problems, n)
	if err != nil {
		e.event("sampled-again", "the earlier completions are unusable, sampling all again: %v", err)
		return nil, 0
	}
	return samples, min(n, e.Sampled.N)
}

func (e *Env) readSampled(problems []rollout.Problem, n int) ([]eval.Sample, error) {
	b, err := e.Blobs.Bytes(e.Sampled.Completions)
	if err != nil {
		return nil, err
	}
	all, err := readCompletions(b)
	if err != nil {
		return nil, err
	}
	if want := len(problems) * e.Sampled.N; len(all) != want {
		return nil, fmt.Errorf("there are %d, not %d of each of %d problems", len(all), e.Sampled.N, len(problems))
	}
	var first []eval.Sample
	for i, s := range all {
		if p, k := problems[i/e.Sampled.N].ID, i%e.Sampled.N; s.ProblemID != p || s.K != k {
			return nil, fmt.Errorf("completion %d is number %d of problem %s, not number %d of %s", i, s.K,
				s.ProblemID, k, p)
		}
		if s.K < n {
			first = append(first, s)
		}
	}
	return first, nil
}

// joined puts the fresh completions of each problem after its earlier ones; all problems have the
// same number of each.
func joined(earlier, fresh []eval.Sample, problems int) []eval.Sample {
	if len(earlier) == 0 {
		return fresh
	}
	all := make([]eval.Sample, 0, len(earlier)+len(fresh))
	had, added := len(earlier)/problems, len(fresh)/problems
	for i := range problems {
		all = append(all, earlier[i*had:(i+1)*had]...)
		all = append(all, fresh[i*added:(i+1)*added]...)
	}
	return all
}

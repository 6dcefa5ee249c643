package stage

import (
	"bytes"
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

// earlier are completions that were sampled before, and their lines in the completions blob. The lines are
// written again as they are: JSON keeps bytes that are not UTF-8 as escapes, which a text read back has not.
type earlier struct {
	samples []eval.Sample
	lines   [][]byte
	each    int // of each problem
}

// earlier returns the completions in Env.Sampled that are among the first n of each problem. If they cannot
// be read it says so and returns none: all are sampled again.
func (e *Env) earlier(problems []rollout.Problem, n int) earlier {
	if e.Sampled == nil {
		return earlier{}
	}
	had, err := e.readSampled(problems, n)
	if err != nil {
		e.event("sampled-again", "the earlier completions are unusable, sampling all again: %v", err)
		return earlier{}
	}
	return had
}

func (e *Env) readSampled(problems []rollout.Problem, n int) (had earlier, err error) {
	b, err := e.Blobs.Bytes(e.Sampled.Completions)
	if err != nil {
		return had, err
	}
	all, err := readCompletions(b)
	if err != nil {
		return had, err
	}
	if want := len(problems) * e.Sampled.N; len(all) != want {
		return had, fmt.Errorf("there are %d, not %d of each of %d problems", len(all), e.Sampled.N, len(problems))
	}
	lines := bytes.SplitAfter(b, []byte{'\n'})
	had.each = min(n, e.Sampled.N)
	for i, s := range all {
		if p, k := problems[i/e.Sampled.N].ID, i%e.Sampled.N; s.ProblemID != p || s.K != k {
			return earlier{}, fmt.Errorf("completion %d is number %d of problem %s, not number %d of %s", i, s.K,
				s.ProblemID, k, p)
		}
		if s.K < n {
			had.samples = append(had.samples, s)
			had.lines = append(had.lines, lines[i])
		}
	}
	return had, nil
}

// joined puts the fresh completions, or lines, of each problem after its earlier ones; all problems have the
// same number of each.
func joined[T any](earlier, fresh []T, problems int) []T {
	if len(earlier) == 0 {
		return fresh
	}
	all := make([]T, 0, len(earlier)+len(fresh))
	had, added := len(earlier)/problems, len(fresh)/problems
	for i := range problems {
		all = append(all, earlier[i*had:(i+1)*had]...)
		all = append(all, fresh[i*added:(i+1)*added]...)
	}
	return all
}

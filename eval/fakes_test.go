package eval

import (
	"context"
	"fmt"
	"hash/fnv"

	"exp/train/rollout"
)

// fakeSampler completes a prompt with a digit drawn from the seed.
type fakeSampler struct {
	requests []rollout.Request
	params   rollout.Params
	err      error
}

func (s *fakeSampler) Sample(ctx context.Context, reqs []rollout.Request, p rollout.Params, done func(int)) ([][]rollout.Completion, error) {
	s.requests, s.params = reqs, p
	if s.err != nil {
		return nil, s.err
	}
	out := make([][]rollout.Completion, len(reqs))
	for i, r := range reqs {
		for _, seed := range r.Seeds {
			out[i] = append(out[i], rollout.Completion{Text: fmt.Sprint(seed % 10)})
		}
	}
	if done != nil {
		done(len(reqs))
	}
	return out, nil
}

// fakeGrader judges with a function; it is safe for concurrent use if the function is.
type fakeGrader func(p *rollout.Problem, text string) (rollout.Verdict, error)

func (f fakeGrader) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return f(p, c.Text)
}

func encodeBytes(p *rollout.Problem) ([]int32, error) {
	var ids []int32
	for _, b := range []byte(p.Prompt) {
		if b == '!' {
			return nil, fmt.Errorf("no token for %q", b)
		}
		ids = append(ids, int32(b))
	}
	return ids, nil
}

func labelSeed(label string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(label))
	return h.Sum64()
}

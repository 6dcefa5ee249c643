// Package eval measures a policy: it samples completions for problems (Generator),
// has them judged (Score) and turns the verdicts into metrics with intervals
// (Summarize). The three are apart so that each can be repeated alone: a new grader
// re-scores without sampling, a new metric needs neither.
//
// It knows no model, no store and no task: problems, a sampler and a grader are
// handed in. Tasks are in eval/task, the statistics in eval/stat.
package eval

import (
	"fmt"

	"exp/eval/stat"
	"exp/eval/task"
	"exp/train/rollout"
)

// Config is the protocol of an evaluation: what, besides weights, problems and
// seeds, its numbers depend on.
type Config struct {
	N      int            // samples per problem
	PassK  []int          // the k of pass@k, each at most N
	Params rollout.Params // how to sample
}

// Check returns a *task.ConfigError for a protocol that cannot be carried out.
// prefix is where the keys stand, such as eval.final.
func (c Config) Check(prefix string) error {
	bad := func(key, format string, args ...any) error {
		return &task.ConfigError{Key: prefix + "." + key, Problem: fmt.Sprintf(format, args...)}
	}
	if c.N < 1 {
		return bad("n", "%d samples per problem; at least 1", c.N)
	}
	for _, k := range c.PassK {
		if k < 1 {
			return bad("pass_k", "pass@%d does not exist", k)
		}
		if k > c.N {
			return bad("pass_k", "pass@%d needs %d samples per problem, and n is %d", k, k, c.N)
		}
	}
	if c.Params.MaxNewTokens < 1 {
		return bad("max_new_tokens", "%d tokens; at least 1", c.Params.MaxNewTokens)
	}
	return nil
}

const (
	// Level is the coverage of every interval.
	Level = 0.95
	// bootstrapDraws is the number for problems of cli-store-reports: the ends of a
	// 95 % interval are then known to a hundredth of its width or so.
	bootstrapDraws = 10_000
)

func resampling(seed uint64) stat.Resampling {
	return stat.Resampling{Draws: bootstrapDraws, Seed: seed, Level: Level}
}

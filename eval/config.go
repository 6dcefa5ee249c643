// Package eval measures a policy: it samples completions for problems (Generator),
// has them judged (Score) and turns the verdicts into metrics with intervals
// (Summarize). The three are apart so that each can be repeated alone: a new grader
// re-scores without sampling, a new metric needs neither.
//
// It knows no model, no store and no task: problems, a sampler and a grader are
// handed in. Tasks are in eval/task, the statistics in eval/stat.
package eval

import (
	"exp/eval/stat"
	"exp/train/rollout"
)

// Config is the protocol of an evaluation: what, besides weights, problems and
// seeds, its numbers depend on.
type Config struct {
	N      int            // samples per problem
	PassK  []int          // the k of pass@k, each at most N
	Params rollout.Params // how to sample
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

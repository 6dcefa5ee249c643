// Package eval measures a policy: it samples completions for problems (Generator), has them graded (Score)
// and turns the verdicts into metrics with intervals (Summarize). Each step can be repeated alone: a new
// grader re-scores without sampling, and a new metric needs neither.
//
// The package knows no models, stores or tasks: callers pass in the problems, a sampler and a grader. Tasks
// are in eval/task, statistics in eval/stat.
package eval

import (
	"exp/eval/stat"
	"exp/train/rollout"
)

// Config is the protocol of an evaluation: everything its numbers depend on except weights, problems and
// seeds.
type Config struct {
	N      int            // samples per problem
	Params rollout.Params // sampling parameters
}

const (
	// Level is the coverage of every interval.
	Level = 0.95
	// bootstrapDraws is the number of resamples of problems. It fixes the ends of a 95 % interval to about a
	// hundredth of its width.
	bootstrapDraws = 10_000
)

func resampling(seed uint64) stat.Resampling {
	return stat.Resampling{Draws: bootstrapDraws, Seed: seed, Level: Level}
}

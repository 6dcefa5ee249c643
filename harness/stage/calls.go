package stage

import (
	"exp/harness/config"
	"exp/train/generate"
	"exp/train/rl"
)

// calls returns the largest calls of a sampler in training: those for a step if it samples for training, and
// those for a validation if it samples for these. So many ranks deal a call among themselves. It returns
// nil, which stands for any calls, if the configuration does not say how large they are.
func calls(c *config.Run, training, validations bool, dealt int) (list []generate.Call) {
	add := func(requests, samples int) {
		if samples == 0 {
			return
		}
		if requests < dealt { // their completions are dealt instead
			samples = (requests*samples + dealt - 1) / dealt
		} else {
			requests = (requests + dealt - 1) / dealt
		}
		list = append(list, generate.Call{Requests: requests, Samples: samples, Prompt: c.Data.MaxPromptTokens,
			New: c.Rollout.MaxNewTokens})
	}
	if training && c.Rollout.Source != recordedSource {
		add(c.Train.PromptsPerStep, c.Rollout.N)
	}
	if e, _ := rl.EstimatorNamed(c.Algo.Advantage); training && e.Greedy {
		add(c.Train.PromptsPerStep, 1)
	}
	if training {
		add(c.Train.PromptsPerStep, FirstValues(c))
	}
	if o := c.Eval.Online; validations && o.EverySteps > 0 {
		problems := o.Problems
		if n := c.GeneratedProblems("val"); c.Data.Val.Source == config.Generated && (problems == 0 || n < problems) {
			problems = n
		}
		if problems == 0 {
			return nil // all of a file
		}
		add(problems, o.N)
	}
	if len(list) == 0 { // nobody calls it
		add(1, 1)
	}
	return list
}

// FirstValues returns how many completions of every problem are sampled before training, for tracked values.
func FirstValues(c *config.Run) int {
	if e, _ := rl.EstimatorNamed(c.Algo.Advantage); !e.Tracks {
		return 0
	}
	return rl.SPOSettings(c.Algo.Settings).First
}

package train

import (
	"fmt"

	"exp/train/rl"
	"exp/train/rollout"
)

// Step is the record of a finished step that the Recorder receives. The recorder must not
// keep its slices past the call.
type Step struct {
	Step int // counted from 1
	Of   int
	// Metrics depend on the run alone and come in a fixed order; a re-execution gives the
	// same bits.
	Metrics []rl.Metric
	// System holds measurements of this machine: seconds, rates.
	System []rl.Metric
	// Trajectories are all completions of the step in problem order.
	Trajectories []Trajectory
	// GreedyTokens counts the sampled tokens of ReMax's baselines and of SPO's first values, which are no
	// Trajectories.
	GreedyTokens int
	Events       []Event
}

// Trajectory is one graded completion.
type Trajectory struct {
	Problem    *rollout.Problem
	Sample     int // index among the problem's completions
	Prompt     []int32
	Completion *rollout.Completion
	Verdict    rollout.Verdict
}

// Event is something a person should see.
type Event struct {
	Kind string // "nonfinite", "not-graded", …
	Text string
}

// tallied joins equal neighbours and says how many there were.
func tallied(all []Event) []Event {
	var out []Event
	for i, n := 0, 1; i < len(all); i, n = i+n, 1 {
		e := all[i]
		for i+n < len(all) && all[i+n] == e {
			n++
		}
		if n > 1 {
			e.Text = fmt.Sprintf("%s (%d times)", e.Text, n)
		}
		out = append(out, e)
	}
	return out
}

// Recorder receives finished steps.
type Recorder interface {
	Step(s *Step) error
}

package train

import (
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

// Recorder receives finished steps.
type Recorder interface {
	Step(s *Step) error
}

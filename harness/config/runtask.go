package config

import "time"

// Task selects the task and holds the block of its kind.
type Task struct {
	Kind         string       `key:"kind"`
	Countdown    Countdown    `key:"countdown"`    // Kind is "countdown"
	Words        Words        `key:"words"`        // Kind is "words"
	Stories      Stories      `key:"stories"`      // Kind is "stories"
	Outcomes     Outcomes     `key:"outcomes"`     // Kind is "outcomes"
	Functions    Functions    `key:"functions"`    // Kind is "functions"
	Math         Math         `key:"math"`         // Kind is "math"
	Code         Code         `key:"code"`         // Kind is "code"
	Instructions Instructions `key:"instructions"` // Kind is "instructions"
	Prompts      Prompts      `key:"prompts"`      // Kind is PromptsTask
	Mixed        Mixed        `key:"mixed"`        // Kind is MixedTask; the blocks of its kinds count too
}

// Mixed is the task of problems of several kinds.
type Mixed struct {
	Kinds    map[string]any `key:"kinds"` // texts: the kind of each data source or file
	Column   string         `key:"column"`
	Generate Generate       `key:"generate"`
}

// Generate has the number of problems of each kind that a mixed task makes for a split.
type Generate struct {
	Train map[string]any `key:"train"`
	Val   map[string]any `key:"val"`
	Test  map[string]any `key:"test"`
}

// of returns the numbers of a split, as they were written.
func (g *Generate) of(split string) map[string]any {
	return map[string]map[string]any{"train": g.Train, "val": g.Val, "test": g.Test}[split]
}

// Counts returns the numbers of a split, "train", "val" or "test".
func (g *Generate) Counts(split string) map[string]int {
	counts := map[string]int{}
	for kind, n := range g.of(split) {
		if n, ok := n.(int64); ok {
			counts[kind] = int(n)
		}
	}
	return counts
}

// GeneratedProblems returns how many problems of a split, "train", "val" or "test", the task makes.
func (r *Run) GeneratedProblems(split string) (n int) {
	if r.Task.Kind != MixedTask {
		if s := r.Data.split(split); s.Source == Generated {
			n = s.Size
		}
		return n
	}
	for _, count := range r.Task.Mixed.Generate.Counts(split) {
		n += count
	}
	return n
}

// Problems returns how many problems a split has; 0 if that depends on a file.
func (r *Run) Problems(split string) int {
	s := r.Data.split(split)
	switch {
	case s.Source == Generated:
		return r.GeneratedProblems(split)
	case r.Task.Kind == MixedTask && s.Size > 0:
		return s.Size + r.GeneratedProblems(split)
	}
	return s.Size
}

// Instructions is the task of following instructions that a program can check.
type Instructions struct {
	Rules   string `key:"rules"`
	Partial bool   `key:"partial"`
}

// Prompts is the task of any prompts, which the reward judges alone.
type Prompts struct {
	Pass float64 `key:"pass"`
}

// Math is mathematics with gold answers, read from files.
type Math struct {
	Grader string `key:"grader"`
}

// Countdown is the task of reaching a target with given numbers.
type Countdown struct {
	MinNumbers    int    `key:"min_numbers"`
	MaxNumbers    int    `key:"max_numbers"`
	LargestNumber int    `key:"largest_number"`
	LargestTarget int    `key:"largest_target"`
	Operators     string `key:"operators"`
	Use           string `key:"use"`
	MinSolutions  int    `key:"min_solutions"`
}

// Words is the task of arithmetic word problems.
type Words struct {
	LargestNumber int `key:"largest_number"`
	Steps         int `key:"steps"`
}

// Stories is the task of longer word problems.
type Stories struct {
	MinSteps      int `key:"min_steps"`
	MaxSteps      int `key:"max_steps"`
	LargestNumber int `key:"largest_number"`
}

// Outcomes is the toy task with a known optimum.
type Outcomes struct {
	Count int     `key:"count"`
	Modes []Mode  `key:"modes"`
	Beta  float64 `key:"beta"`
}

// Mode is one bump in the reward of Outcomes.
type Mode struct {
	Center int     `key:"center"`
	Width  float64 `key:"width"`
	Height float64 `key:"height"`
}

// Functions is the task of finding a function from examples.
type Functions struct {
	Arguments     int `key:"arguments"`
	LargestNumber int `key:"largest_number"`
	HiddenTests   int `key:"hidden_tests"`
}

// Code is the task of writing programs.
type Code struct {
	CPULimit time.Duration `key:"cpu_limit"`
	MemLimit int64         `key:"mem_limit"` // bytes
	Rules    string        `key:"rules"`
	Partial  bool          `key:"partial"`
}

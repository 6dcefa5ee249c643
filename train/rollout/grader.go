package rollout

import "context"

// Status says whether a completion has a verdict at all. A broken grader is not a wrong
// answer.
type Status uint8

const (
	NotGraded Status = iota // the grader could not decide; Verdict.Reason says why
	Graded
)

func (s Status) String() string {
	if s == Graded {
		return "graded"
	}
	return "not graded"
}

// Basis is the ground for a verdict "right". A policy that learns to earn rewards without being right does so where
// the basis is weak.
type Basis uint8

const (
	BasisUnsaid Basis = iota // the grader does not say
	ByProof
	ByConvention // equal by a choice that others make otherwise
	ByUnit       // words after the value are taken for a unit or a counted noun
	ByGuess      // a step is not sure
)

// Weak reports whether the basis is known, and no proof.
func (b Basis) Weak() bool { return b > ByProof }

func (b Basis) String() string {
	return [...]string{"", "proof", "convention", "unit", "guess"}[b]
}

// Verdict is a grader's result for one completion.
type Verdict struct {
	Status  Status
	Correct bool
	// Reward is maximised by training; it is 0 where Status is NotGraded.
	Reward float64
	// Answer is the extracted answer in canonical form: two completions gave the same
	// solution exactly if their Answers are equal. Empty if no answer was found.
	Answer string
	// Reason explains the verdict in a few words: "correct", "uses 7 twice",
	// "no expression".
	Reason string
	// Basis is the ground for a verdict "right".
	Basis Basis
	// Components are the named parts of the reward, in the order of the grader's names
	// (ComponentGrader); nil if it has none or Status is NotGraded.
	Components []float64
	// Steps are the answer's steps, if each earns a reward of its own; Reward is then what they earn and Outcome.
	Steps   []Step  `json:",omitempty"`
	Outcome float64 `json:",omitempty"` // the part of Reward that no step earned; 0 without Steps
}

// Grader judges completions. It is safe for concurrent use.
type Grader interface {
	// Grade judges the completion's text. It returns an error only if the grader cannot
	// continue at all; a completion that cannot be graded gets a Verdict.
	Grade(ctx context.Context, p *Problem, c *Completion) (Verdict, error)
}

// Item is one completion of a batch to grade.
type Item struct {
	Problem    *Problem
	Sample     int // index among the problem's completions
	Completion *Completion
}

// BatchGrader is a Grader that prefers to judge many completions at once, because it runs a
// program, queries a server or computes a model.
type BatchGrader interface {
	Grader
	// GradeAll returns a verdict for each item, in order; a verdict depends on its item
	// alone. Errors are as for Grade.
	GradeAll(ctx context.Context, items []Item) ([]Verdict, error)
}

// ComponentGrader is a Grader whose rewards have named parts.
type ComponentGrader interface {
	Grader
	// Components are the names of Verdict.Components; they never change.
	Components() []string
}

// ComponentNames returns the names of the parts of g's rewards, or nil.
func ComponentNames(g Grader) []string {
	if c, ok := g.(ComponentGrader); ok {
		return c.Components()
	}
	return nil
}

package rollout

import "context"

// Status says whether a completion has a verdict at all. A grader that broke is
// not a wrong answer.
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

// Verdict is what a grader says of one completion.
type Verdict struct {
	Status  Status
	Correct bool
	// Reward is what training maximises; it is 0 where Status is NotGraded.
	Reward float64
	// Answer is the extracted answer in canonical form: two completions gave the
	// same solution exactly if their Answers are equal. Empty if there is none.
	Answer string
	// Reason explains the verdict in a few words: "correct", "uses 7 twice",
	// "no expression".
	Reason string
}

// Grader judges completions. It is safe for concurrent use.
type Grader interface {
	// Grade judges the completion's text. Its error is for a grader that cannot go
	// on at all; a completion that cannot be graded is a Verdict.
	Grade(ctx context.Context, p *Problem, c *Completion) (Verdict, error)
}

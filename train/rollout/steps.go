package rollout

// How the probabilities that the steps of an answer are right become its score.
const (
	StepsMin     = "min"
	StepsProduct = "product"
	StepsLast    = "last"
	StepsMean    = "mean"
)

// How a process reward model reads the steps of an answer.
const (
	StepsApart = "apart" // every step and every separator encoded by itself
	StepsMarks = "marks" // one text, with separators in it
	StepsTurns = "turns" // the user's turns of a chat, which the assistant answers by the separator
)

// StepLayouts lists them.
func StepLayouts() []string { return []string{StepsApart, StepsMarks, StepsTurns} }

// StepScores lists how the probabilities become a score.
func StepScores() []string { return []string{StepsMin, StepsProduct, StepsLast, StepsMean} }

// Step is a step of an answer that a process reward model has scored.
type Step struct {
	// End is behind the last of its tokens, in Completion.Tokens. The last step takes all that is left; several steps
	// may end in the same token.
	End    int     `json:"end"`
	Right  float64 `json:"right"`  // the probability that it is right
	Reward float64 `json:"reward"` // what it earns in training
}

// Earned returns the sum of what steps earn.
func Earned(steps []Step) (sum float64) {
	for _, s := range steps {
		sum += s.Reward
	}
	return sum
}

// Sound reports whether a process reward model holds each of the steps for right rather than wrong.
func Sound(steps []Step) bool {
	for _, s := range steps {
		if s.Right < 0.5 {
			return false
		}
	}
	return true
}

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

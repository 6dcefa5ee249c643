package rollout

// How the probabilities that the steps of an answer are right become its score.
const (
	StepsMin     = "min"
	StepsProduct = "product"
	StepsLast    = "last"
	StepsMean    = "mean"
)

// StepScores lists them.
func StepScores() []string { return []string{StepsMin, StepsProduct, StepsLast, StepsMean} }

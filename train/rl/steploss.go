package rl

// StepLoss returns the loss of the score that a process reward model gives a step of an answer, the logit that the
// step is right, and its derivative by the score:
//
//	-log σ(score)   of a right step,   -log σ(-score)   of a wrong one
//
// This is the cross entropy of arXiv:2305.20050 §2.6 and arXiv:2312.08935 eq. 4. With score = z₁ - z₀ it is the one of
// TRL's PRMTrainer, whose model has a logit for wrong and one for right.
func StepLoss(score float64, right bool) (loss, slope float64) {
	if right {
		return softplus(-score), -sigmoid(-score)
	}
	return softplus(score), sigmoid(score)
}

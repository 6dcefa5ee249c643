package rl

// GRPOProcess sets adv [N] to the advantages of GRPO with process supervision (arXiv:2402.03300 §4.1.3), added to
// those of the outcome:
//
//	A[t] = GroupAdvantage of the row's outcome + weight·Σ_k (r[k] - mean)/std
//
// k runs over the steps of the row that end at t or after it; mean and std are of the rewards of all steps of all
// answers of the group, as StepAdvantage has them. Without scale nothing is divided. The paper has process rewards
// alone: outcomes of 0. Each step adds a term, so an answer loses less by few steps below the mean than by many, and
// gains more by many above it. outcome and group are [B]. At masked-out tokens adv is 0.
func GRPOProcess[T Float](adv, outcome []T, steps *Steps, group []int, mask []bool, rows Rows, weight float64,
	scale bool) {
	sameLen(rows.Len(), len(outcome), len(group))
	perRow := make([]T, len(outcome))
	GroupAdvantage(perRow, outcome, group, scale)
	Spread(adv, perRow, mask, rows)
	own, toGo := make([]float64, len(steps.Reward)), make([]float64, len(mask))
	StepAdvantage(own, steps.Reward, steps.groups(group), scale)
	steps.toGo(toGo, own, rows)
	for t, a := range toGo {
		if mask[t] {
			adv[t] = T(float64(adv[t]) + float64(weight*a))
		}
	}
}

// processWeight is the weight of the steps' advantages.
var processWeight = Setting{Key: "grpo_process.weight", Default: 1.0, Range: "[0, inf)", Late: true,
	Help: "weight of the advantages of steps beside the outcome's; reward.step_weight cancels where each is divided " +
		"by its standard deviation"}

// processEstimator is the estimator "grpo_process".
func processEstimator() Estimator {
	return Estimator{Name: "grpo_process", Groups: true, Steps: true, Settings: []Setting{scaleStd, processWeight},
		Estimate: func(s *Graded, c Settings) error {
			GRPOProcess(s.Adv, s.Outcome, s.Steps, s.Group, s.Mask, s.Rows, c.Float(processWeight), c.Bool(scaleStd))
			copy(s.Ret, s.Adv)
			return nil
		}}
}

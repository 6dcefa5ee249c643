package rl

import "math"

// ProbDiff compares the sampler's probabilities of the sampled tokens with the
// trainer's, as verl does (calculate_debug_metrics), over unmasked tokens:
//
//	training/rollout_probs_diff_{max,mean,std}   of |exp(rollLogProb) - exp(oldLogProb)|; sample std
//	training/rollout_actor_probs_pearson_corr    correlation of the two
//	training/rollout_probs_diff_valid            1, or 0 where nothing is unmasked and the
//	                                             others are NaN
//
// rollLogProb, oldLogProb and mask are [N].
func ProbDiff[T Float](rollLogProb, oldLogProb []T, mask []bool) []Metric {
	sameLen(len(mask), len(rollLogProb), len(oldLogProb))
	var diff, roll, old moments
	largest, valid, product := math.NaN(), 0.0, 0.0
	for t, on := range mask {
		if !on {
			continue
		}
		p, q := exp(float64(rollLogProb[t])), exp(float64(oldLogProb[t]))
		d := math.Abs(p - q)
		if valid == 0 {
			largest, valid = d, 1
		}
		largest = max(largest, d)
		diff.add(d)
		before := p - roll.mean
		roll.add(p)
		old.add(q)
		product += float64(before * (q - old.mean))
	}
	mean := diff.mean
	if valid == 0 {
		mean = math.NaN()
	}
	return []Metric{
		{"training/rollout_probs_diff_valid", valid},
		{"training/rollout_probs_diff_max", largest},
		{"training/rollout_probs_diff_mean", mean},
		{"training/rollout_probs_diff_std", math.Sqrt(diff.sampleVar())},
		{"training/rollout_actor_probs_pearson_corr", product / math.Sqrt(float64(roll.ss*old.ss))},
	}
}

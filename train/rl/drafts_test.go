package rl

// DraftMetrics are verl's metrics of speculative decoding: how many tokens of a smaller
// model's drafts the policy accepted. drafted, accepted and verified are [B], of each
// completion the tokens that were drafted, how many of them were accepted, and the
// passes that judged them.
//
//	rollout/spec_accept_rate     mean of accepted/drafted, 0 where nothing was drafted
//	rollout/spec_accept_length   mean of 1 + accepted/verified, the tokens of a pass; 0 where there was none
//
// Nil of no completions. Our own sampler drafts nothing; this is for rollouts of
// samplers that do.
func DraftMetrics(drafted, accepted, verified []int) []Metric {
	sameLen(len(drafted), len(accepted), len(verified))
	if len(drafted) == 0 {
		return nil
	}
	var rate, length float64
	for i, n := range accepted {
		if drafted[i] > 0 {
			rate += float64(n) / float64(drafted[i])
		}
		if verified[i] > 0 {
			length += 1 + float64(n)/float64(verified[i])
		}
	}
	rows := float64(len(drafted))
	return []Metric{{"rollout/spec_accept_length", length / rows}, {"rollout/spec_accept_rate", rate / rows}}
}

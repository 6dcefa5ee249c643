package rl

// Bypass adds a policy loss that corrects for the sampler directly, without log-
// probs of the trainer before the first update, to s, and its gradient to
// dlogProb [N]. OldLogProb of the batch is the sampler's. weight and kept [N] are
// the importance weights and the mask after rejection that rollout correction
// makes of the log-ratio logProb - OldLogProb; constants to the gradient.
//
//	BypassPPO         PPO on the kept tokens, without weights
//	BypassReinforce   Reinforce on the kept tokens, l = -A·logProb, times weight
//
// weight may be nil, for 1; Weight of the batch is not read. Coef is the batch's:
// with counts of the whole mini-batch, as in verl's engine, rejected tokens stay
// in the denominator. Statistics are over kept tokens. clip is not read by
// BypassReinforce. It panics if a token is kept that Mask has not. This is verl's
// loss mode "bypass_mode".
func Bypass[T Float](dlogProb []T, b *Batch[T], weight []T, kept []bool, loss BypassLoss, clip Clip, s *PolicyStats) {
	sameLen(len(b.Mask), len(kept))
	for t, on := range kept {
		if on && !b.Mask[t] {
			panic("rl: a kept token that is masked out")
		}
	}
	part := *b
	part.Mask, part.Weight = kept, nil
	switch loss {
	case BypassPPO:
		PPO(dlogProb, &part, clip, s)
	case BypassReinforce:
		part.Weight = weight
		Reinforce(dlogProb, &part, s)
	default:
		panic("rl: unknown bypass loss")
	}
}

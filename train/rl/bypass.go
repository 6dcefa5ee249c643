package rl

// BypassLoss is the loss under bypass mode; zero if the mode is off.
type BypassLoss uint8

const (
	BypassPPO       BypassLoss = 1 + iota // verl's ppo_clip: the ratio is the correction
	BypassReinforce                       // verl's reinforce: the weights are
)

// Bypass adds a policy loss that corrects for the sampler directly, without the trainer's
// log-probs before the first update, to s, and its gradient to dlogProb [N]. OldLogProb of
// the batch is the sampler's. weight and kept [N] are the importance weights and the mask
// after rejection that rollout correction derives from the log-ratio logProb - OldLogProb;
// both are constant to the gradient.
//
//	BypassPPO         PPO on the kept tokens, without weights
//	BypassReinforce   Reinforce on the kept tokens, l = -A·logProb, times weight
//
// weight may be nil, for 1; the batch's Weight is not read. Coef is the batch's: with
// counts of the whole mini-batch, as in verl's engine, rejected tokens stay in the
// denominator. Statistics cover kept tokens. BypassReinforce does not read clip. It panics
// if kept contains a token outside Mask. This is verl's loss mode "bypass_mode".
func Bypass[T Float](dlogProb []T, b *Batch[T], weight []T, kept []bool, loss BypassLoss, clip Clip, s *PolicyStats) {
	sameLen(len(b.Mask), len(kept))
	for t, on := range kept {
		if on && !b.Mask[t] {
			panic("rl: a kept token is masked out")
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

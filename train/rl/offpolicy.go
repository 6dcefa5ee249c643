package rl

// DropOffPolicy leaves out what a policy that has moved on would unlearn from rows it no longer writes (off-policy
// sequence masking, DeepSeek-V3.2, arXiv:2512.02556 eq. 8–9; TRL's off_policy_mask_threshold): in rows where the mean
// of OldLogProb - LogProb over unmasked tokens, an estimate of KL(π_old‖π), is above bound nats, it sets negative
// elements of adv [N] to 0. The tokens still count in denominators. It adds the sum of Coef over the tokens left out
// to dropped: their share of the loss, if Coef sums to 1. It reads LogProb, OldLogProb, Mask, Rows and Coef.
func DropOffPolicy[T Float](adv []T, b *Batch[T], bound float64, dropped *float64) {
	sameLen(len(b.Mask), len(adv), len(b.LogProb), len(b.OldLogProb), len(b.Coef))
	for i := range b.Rows.Len() {
		var sum, n float64
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			if b.Mask[t] {
				sum += float64(b.OldLogProb[t]) - float64(b.LogProb[t])
				n++
			}
		}
		if n == 0 || sum/n <= bound {
			continue
		}
		for t := b.Rows[i]; t < b.Rows[i+1]; t++ {
			if b.Mask[t] && adv[t] < 0 {
				adv[t] = 0
				*dropped += b.Coef[t]
			}
		}
	}
}

package rl

import "math"

// maxLogSequenceRatio bounds GSPO's log-ratio before exp, above only, as in verl.
const maxLogSequenceRatio = 10

// GSPO adds the clipped loss on a ratio of whole rows (arXiv:2507.18071 eq. 5,
// and eq. 13 where advantages differ within a row) to s, and its gradient to
// dlogProb [N]. With D = logProb - oldLogProb and S the mean of D over the row's
// unmasked tokens, bounded to 10 above, per unmasked token
//
//	l = max(-A·e^S, -A·clip(e^S, 1-low, 1+high))
//
// and the loss is Σ coef·w·l. A token's dl/dlogProb is -A·e^S, and 0 where the clip or the
// bound acts: it covers its own term only, which equals the gradient of the loss if A and w
// are constant within a row. This is verl's loss mode "gspo". The caller's Coef
// decides how it is aggregated, as in verl 0.9.1; verl before always took SeqMeanTokenMean,
// whatever is configured. low and high are a few 1e-4 in the paper.
func GSPO[T Float](dlogProb []T, b *Batch[T], low, high float64, s *PolicyStats) {
	b.check(dlogProb)
	clip := Clip{Low: low, High: high, Dual: math.Inf(1)}
	for i := range b.Rows.Len() {
		lo, hi := b.Rows[i], b.Rows[i+1]
		var sum, n float64
		for t := lo; t < hi; t++ {
			if b.Mask[t] {
				d, _ := b.move(t)
				sum += d
				n++
			}
		}
		mean, inside := bound(sum/n, math.Inf(-1), maxLogSequenceRatio)
		addRange(dlogProb, b, lo, hi, s, func(t int) tokenTerm {
			d, adv := b.move(t)
			x := clip.term(mean, inside, adv)
			x.kl = -d
			return x
		})
	}
}

// gspoLoss is the loss "gspo".
func gspoLoss() PolicyLoss {
	l := tokenLoss("gspo", []Setting{clipLow, clipHigh}, func(m *Micro, c Settings, s *PolicyStats) {
		GSPO(m.DLogProb, m.Batch, c.Float(clipLow), c.Float(clipHigh), s)
	})
	l.ByTokens = false // the ratio is the completion's
	return l
}
